//! Beam search on whole models, against transformers' own.

use std::collections::BTreeMap;

use setun::{
    BeamOptions, BeamText, CustomModel, Device, EarlyStopping, Engine, GenerateOptions, Inferencer,
    InferencerOptions, Model, Ragged, SamplerOptions,
    text::{Logprobs, Sampler},
};
use setun_tests::{
    golden::{Golden, MODELS, Prompt, Searched},
    run::exact,
};

/// Tolerances of `fixtures/README.md`: of scores, and where an int8 code may have flipped.
const STRICT: f64 = 1e-3;
const FLIPPED: f64 = 0.05;

fn load(golden: &Golden) -> Box<dyn setun::forward::Model> {
    let model = Model::open(&golden.folder).expect("a golden model");
    model.load_onto(exact(&Device::Cpu)).expect("a processor").model
}

fn engine(golden: &Golden, eos_tokens: Vec<u32>) -> Engine {
    let model = CustomModel::boxed("golden", load(golden)).eos_tokens(eos_tokens);
    Engine::builder(model).build().expect("an engine")
}

fn options(searched: &Searched) -> BeamOptions {
    let early_stopping =
        if searched.early_stopping { EarlyStopping::Full } else { EarlyStopping::Unlikely };
    BeamOptions {
        length_penalty: searched.length_penalty,
        early_stopping,
        num_return_sequences: searched.num_beams,
        ..BeamOptions::new(searched.num_beams)
    }
}

/// The prompts of a model that have searches.
fn searched(golden: &Golden) -> impl Iterator<Item = (&String, &Prompt)> {
    golden.prompts.iter().filter(|(_, prompt)| !prompt.beam.is_empty())
}

/// How texts of a search compare with those of transformers.
#[derive(Debug, Default)]
struct Compared {
    texts: usize,
    /// Of these, the same text in the same place, with its score.
    same: usize,
}

impl Compared {
    /// Scores have to be within the loose bound for each token, as a code may flip at any that is
    /// decoded, whatever its prompt is. Where they are within the strict one texts have to be the
    /// same, but for those of equal scores.
    fn add(&mut self, what: &str, found: &[BeamText], expected: &Searched) {
        assert_eq!(found.len(), expected.scores.len(), "{what}");
        let is_close = |a: f64, b: f64| (a - b).abs() <= STRICT;
        let pairs = || found.iter().zip(&expected.scores);
        let is_strict = pairs().all(|(beam, &score)| is_close(beam.score, score));
        for (place, (beam, &score)) in pairs().enumerate() {
            let length = f64::from(u32::try_from(beam.tokens.len()).expect("few"));
            let loose = FLIPPED * length / length.powf(expected.length_penalty);
            let found = beam.score;
            assert!((found - score).abs() <= loose, "{what}, text {place}: {found}, not {score}");
            let mut others = expected.scores.iter().zip(&expected.sequences);
            let is_there =
                others.any(|(&other, text)| is_close(other, score) && *text == beam.tokens);
            assert!(is_there || !is_strict, "{what}, text {place}: {:?}", beam.tokens);
            self.same += usize::from(is_strict && beam.tokens == expected.sequences[place]);
            self.texts += 1;
        }
    }
}

/// Whether a code is known to flip after this prompt: then other beams may be kept, and nothing
/// later is the same.
fn flips(prompt: &Prompt) -> bool {
    prompt.greedy_one_pass_maxdiff_own_f32.is_some_and(|difference| difference > STRICT)
}

#[test]
fn texts_and_scores_are_those_of_transformers() {
    let (mut compared, mut skipped) = (Compared::default(), 0);
    for model in MODELS {
        let golden = Golden::read(model);
        let mut engines = BTreeMap::new();
        let mut inferencer = Inferencer::new(load(&golden), InferencerOptions::default());
        for (name, prompt) in searched(&golden) {
            let ids = golden.ids(&format!("{name}.ids"));
            for (number, expected) in prompt.beam.iter().enumerate() {
                let eos = expected.eos;
                let engine = engines
                    .entry(eos)
                    .or_insert_with(|| engine(&golden, eos.into_iter().collect()));
                let (beams, most) = (options(expected), expected.max_new_tokens);
                let found = search(engine, std::slice::from_ref(&ids), most, beams).remove(0);
                let what = format!("{model} {name}, search {number}");
                for beam in &found {
                    let score = score(&mut inferencer, &ids, beam, expected.length_penalty);
                    assert!((beam.score - score).abs() <= 1e-12, "{what}: {} {score}", beam.score);
                }
                if flips(prompt) {
                    skipped += 1;
                } else {
                    compared.add(&what, &found, expected);
                }
            }
        }
    }
    assert_eq!(skipped, 5, "the searches of one prompt");
    let Compared { texts, same } = compared;
    assert!(texts >= (MODELS.len() * 3 - 1) * 5 * 4, "{texts} texts");
    assert!(same * 100 >= texts * 90, "{compared:?}");
}

/// The texts after each prompt, all in the same steps.
fn search(
    engine: &Engine,
    prompts: &[Vec<u32>],
    most: usize,
    options: BeamOptions,
) -> Vec<Vec<BeamText>> {
    let start = |prompt: &Vec<u32>| {
        let tokens = GenerateOptions::new().max_tokens(most);
        engine.beams(prompt.clone(), options, tokens).expect("a search")
    };
    let searches: Vec<_> = prompts.iter().map(start).collect();
    searches.into_iter().map(|search| search.wait().expect("texts").texts).collect()
}

/// The score of a text whose tokens are run in one step: beams that share memory change no bit of
/// the sum.
fn score(inferencer: &mut Inferencer, prompt: &[u32], beam: &BeamText, length_penalty: f64) -> f64 {
    let mut greedy = Sampler::new(SamplerOptions::default()).expect("sound options");
    let mut cache = inferencer.cache(1).expect("a cache");
    let text = Ragged::from_rows([[prompt, &beam.tokens].concat()]);
    let logits = inferencer.prefill_blocking(&text, &mut cache, &mut greedy).expect("a step");
    let places = (prompt.len() - 1..).zip(&beam.tokens);
    let logprob = |(place, &token): (usize, &u32)| {
        let logits = logits.token_logits.item(0, place).expect("a row");
        f64::from(Logprobs::new(logits).row()[token as usize])
    };
    let length = f64::from(u32::try_from(beam.tokens.len()).expect("few"));
    places.map(logprob).fold(0.0, |sum, logprob| sum + logprob) / length.powf(length_penalty)
}

/// The searches of all prompts in one batch find, to the bit, what each finds alone.
#[test]
fn searches_do_not_depend_on_the_batch() {
    for model in ["bitnet-h64/packed", "llama-bitlinear/packed"] {
        let golden = Golden::read(model);
        let prompts: Vec<_> =
            searched(&golden).map(|(name, _)| golden.ids(&format!("{name}.ids"))).collect();
        let engine = engine(&golden, vec![]);
        let options = BeamOptions { num_return_sequences: 3, ..BeamOptions::new(3) };
        let together = search(&engine, &prompts, 12, options);
        for (row, prompt) in prompts.iter().enumerate() {
            let alone = search(&engine, std::slice::from_ref(prompt), 12, options);
            assert_eq!(alone[0], together[row], "{model}, row {row}");
        }
    }
}

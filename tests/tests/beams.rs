//! Beam search on whole models, against transformers' own.

use std::collections::BTreeMap;

use setun::{
    Beam, BeamOptions, CacheType, Device, DeviceOptions, EarlyStopping, Inferencer,
    InferencerOptions, Model, Ragged, SamplerOptions, text::Sampler,
};
use setun_tests::golden::{Golden, MODELS, Prompt, Searched};

/// Tolerances of `fixtures/README.md`: of scores, and where an int8 code may have flipped.
const STRICT: f64 = 1e-3;
const FLIPPED: f64 = 0.05;

fn inferencer(golden: &Golden, eos_tokens: Vec<u32>) -> Inferencer {
    let model = Model::open(&golden.folder).expect("a golden model");
    let device =
        DeviceOptions { device: Device::Cpu, cache: CacheType::F32, ..DeviceOptions::default() };
    let options = InferencerOptions { eos_tokens, ..InferencerOptions::default() };
    Inferencer::new(model.load_onto(device).expect("a processor").model, options)
}

fn options(searched: &Searched) -> BeamOptions {
    let early_stopping =
        if searched.early_stopping { EarlyStopping::Full } else { EarlyStopping::Unlikely };
    BeamOptions {
        length_penalty: searched.length_penalty,
        early_stopping,
        best: searched.num_beams,
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
    /// All scores have to be within the loose bound: a code may flip at any token that is decoded,
    /// whatever its prompt is. Where they are within the strict one texts have to be the same, but
    /// for those of equal scores.
    fn add(&mut self, what: &str, found: &[Beam], expected: &Searched) {
        assert_eq!(found.len(), expected.scores.len(), "{what}");
        let is_close = |a: f64, b: f64| (a - b).abs() <= STRICT;
        let pairs = || found.iter().zip(&expected.scores);
        let is_strict = pairs().all(|(beam, &score)| is_close(beam.score, score));
        for (place, (beam, &score)) in pairs().enumerate() {
            let found = beam.score;
            assert!((found - score).abs() <= FLIPPED, "{what}, text {place}: {found}, not {score}");
            let mut others = expected.scores.iter().zip(&expected.sequences);
            let is_there =
                others.any(|(&other, text)| is_close(other, score) && *text == beam.tokens);
            assert!(is_there || !is_strict, "{what}, text {place}: {:?}", beam.tokens);
            let is_same = is_strict && beam.tokens == expected.sequences[place];
            self.same += usize::from(is_same);
            self.texts += 1;
        }
        if !is_strict {
            println!(
                "{what}: {:?} {:?}",
                found.iter().map(|b| b.score).collect::<Vec<_>>(),
                expected.scores
            );
        }
    }
}

#[test]
fn texts_and_scores_are_those_of_transformers() {
    let sampler = Sampler::new(SamplerOptions::default()).expect("sound options");
    let mut compared = Compared::default();
    for model in MODELS {
        let golden = Golden::read(model);
        let mut inferencers = BTreeMap::new();
        for (name, prompt) in searched(&golden) {
            let ids = Ragged::from_rows([golden.ids(&format!("{name}.ids"))]);
            for (number, expected) in prompt.beam.iter().enumerate() {
                let eos = expected.eos;
                let inferencer = inferencers
                    .entry(eos)
                    .or_insert_with(|| inferencer(&golden, eos.into_iter().collect()));
                let (cache, most) =
                    (inferencer.cache(1).expect("a cache"), expected.max_new_tokens);
                let found =
                    inferencer.beams_blocking(&ids, &cache, most, &options(expected), &sampler);
                let what = format!("{model} {name}, search {number}");
                compared.add(&what, &found.expect("texts")[0], expected);
            }
        }
    }
    let Compared { texts, same } = compared;
    assert!(texts >= MODELS.len() * 3 * 5 * 4, "{texts} texts");
    assert!(same * 10 >= texts * 9, "{compared:?}");
}

/// The searches of all prompts in one batch find, to the bit, what each finds alone.
#[test]
fn searches_do_not_depend_on_the_batch() {
    let sampler = Sampler::new(SamplerOptions::default()).expect("sound options");
    for model in ["bitnet-h64/packed", "llama-bitlinear/packed"] {
        let golden = Golden::read(model);
        let prompts: Vec<_> =
            searched(&golden).map(|(name, _)| golden.ids(&format!("{name}.ids"))).collect();
        let mut inferencer = inferencer(&golden, vec![]);
        let options = BeamOptions { best: 3, ..BeamOptions::new(3) };
        let mut found = |prompts: &[Vec<u32>]| {
            let cache = inferencer.cache(prompts.len()).expect("a cache");
            let prompts = Ragged::from_rows(prompts);
            inferencer.beams_blocking(&prompts, &cache, 12, &options, &sampler).expect("texts")
        };
        let together = found(&prompts);
        for (row, prompt) in prompts.iter().enumerate() {
            assert_eq!(found(std::slice::from_ref(prompt))[0], together[row], "{model}, row {row}");
        }
    }
}

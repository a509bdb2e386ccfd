//! Speculation on whole models: texts, logits and caches are those of decoding without a draft.

use std::path::{Path, PathBuf};

use setun::{
    Device, DeviceOptions, Inferencer, InferencerOptions, Model, Ragged, SamplerOptions,
    speculation::{
        Draft, DraftModel, PromptLookup, SpeculationCounts, SpeculationOptions,
        SpeculativeInferencer, Verify,
    },
    text::Sampler,
};
use setun_tests::{
    fixture,
    golden::{Golden, PROMPTS},
};

/// Of one vocabulary: each drafts for the others.
const ALIKE: [&str; 3] =
    ["bitnet-h64/packed", "bitnet-h320-f432/packed", "llama-rmsnorm-bias/packed"];

fn golden_folder(model: &str) -> PathBuf {
    fixture("golden").join(model)
}

/// The story model that comes with the crate.
fn stories() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/setun/embedded/stories.safetensors")
}

fn load(path: &Path) -> Box<dyn setun::forward::Model> {
    let options = DeviceOptions { device: Device::Cpu, ..DeviceOptions::default() };
    Model::open(path).expect("a model").load_onto(options).expect("a processor").model
}

fn inferencer(path: &Path) -> Inferencer {
    let eos_tokens = Model::open(path).expect("a model").config().eos_tokens.clone();
    Inferencer::new(load(path), InferencerOptions { eos_tokens, ..InferencerOptions::default() })
}

fn sampler(temperature: f32) -> Sampler {
    let options = SamplerOptions { temperature, top_k: 30, ..SamplerOptions::default() };
    Sampler::new(options).expect("sound options")
}

/// Decodes without and with each draft, and compares.
fn compare(
    target: &Path,
    drafts: Vec<Box<dyn Draft>>,
    (prompts, count): (&[Vec<u32>], usize),
    temperature: f32,
) -> Vec<SpeculationCounts> {
    let mut strategy = sampler(temperature);
    let mut plain = inferencer(target);
    let query = Ragged::from_rows(prompts);
    let mut cache = plain.cache(prompts.len()).expect("a cache");
    let first = plain.prefill_blocking(&query, &mut cache, &mut strategy).expect("a step").next();
    let expected = plain.decode_blocking(&first, &mut cache, count, &mut strategy).expect("a text");
    let with = |draft| {
        let options = SpeculationOptions::default();
        let fast = SpeculativeInferencer::new(inferencer(target), draft, options);
        let mut fast = fast.expect("one vocabulary");
        let mut same = fast.inferencer().cache(prompts.len()).expect("a cache");
        fast.inferencer().prefill_blocking(&query, &mut same, &mut strategy).expect("a step");
        let verify = Verify::Equal(&mut strategy);
        let found = fast.decode_blocking(&first, &mut same, count, verify).expect("a text");
        assert!(found.inferred == expected, "{}: {:?}", target.display(), found.counts);
        assert_eq!(same.lengths(), cache.lengths());
        found.counts
    };
    drafts.into_iter().map(with).collect()
}

#[test]
fn texts_of_random_models_are_those_without_a_draft() {
    for (number, model) in ALIKE.into_iter().enumerate() {
        let golden = Golden::read(model);
        let prompts = PROMPTS.map(|prompt| golden.ids(&format!("{prompt}.ids")));
        for temperature in [0.0, 0.8] {
            let [other, same] = [ALIKE[(number + 1) % 3], model].map(|model| {
                let draft = DraftModel::new(load(&golden_folder(model)), sampler(temperature));
                Box::new(draft) as Box<dyn Draft>
            });
            let drafts = vec![Box::new(PromptLookup::new(1, 3)) as Box<dyn Draft>, other, same];
            let counts = compare(&golden.folder, drafts, (&prompts, 40), temperature);
            assert!(counts.iter().all(|counts| counts.proposed > 0), "{counts:?}");
            assert_eq!(counts[2].accepted, counts[2].proposed, "its own draft");
            assert!(counts[1].accepted < counts[1].proposed, "the draft is another");
        }
    }
}

#[test]
fn stories_are_those_without_a_draft_and_repetition_is_guessed() {
    let path = stories();
    let model = Model::open(&path).expect("the story model");
    let tokens = |text: &str| {
        let tokenizer = model.tokenizer().expect("a good one").expect("a tokenizer");
        tokenizer.encode(text, true).expect("tokens")
    };
    let lookup = || vec![Box::new(PromptLookup::default()) as Box<dyn Draft>];
    let begins = ["Once upon a time", "The dog", "Lily was sad because", "A frog and a bird"];
    let begins = begins.map(tokens);
    for temperature in [0.0, 0.9] {
        compare(&path, lookup(), (&begins, 120), temperature);
    }
    // A text that repeats itself goes on so.
    let passage = tokens(&["The bird sang a song."; 4].join(" "));
    let counts = compare(&path, lookup(), (&[passage], 120), 0.0);
    let [SpeculationCounts { tokens, verifications, .. }] = counts[..] else { panic!("one draft") };
    assert!(tokens >= 4 * verifications, "{counts:?}");
}

//! Batches through the inferencer, on whole models: against single steps of the model, reference
//! outputs of transformers and the engine's texts.

use setun::{
    CacheType, Device, Engine, GenerateOptions, Inferencer, InferencerOptions, Model, Ragged,
    SamplerOptions, text::Sampler,
};
use setun_tests::{
    golden::{Golden, MODELS, PROMPTS, max_difference},
    run::{Runner, bits, devices, exact},
};

/// Tolerances of `fixtures/README.md`, as in `goldens.rs`.
const STRICT: f32 = 1e-4;
const FLIPPED: f32 = 0.6;

fn open(golden: &Golden) -> Model {
    Model::open(&golden.folder).expect("a golden model")
}

/// With end tokens of its own.
fn inferencer(golden: &Golden, device: &Device, eos_tokens: Vec<u32>) -> Inferencer {
    let loaded = open(golden).load_onto(exact(device)).expect("the device is here");
    let options = InferencerOptions { eos_tokens, ..InferencerOptions::default() };
    Inferencer::new(loaded.model, options)
}

fn greedy() -> Sampler {
    Sampler::new(SamplerOptions::default()).expect("sound options")
}

fn prompts(golden: &Golden) -> Vec<Vec<u32>> {
    PROMPTS.map(|prompt| golden.ids(&format!("{prompt}.ids"))).to_vec()
}

/// All prompts of a model in one ragged batch.
#[test]
fn logits_of_a_batch_are_those_of_single_steps_and_of_the_reference() {
    for (number, model) in MODELS.into_iter().enumerate() {
        let golden = Golden::read(model);
        // Every device once, or more often if there are fewer than models.
        let devices = devices();
        let device = devices[number % devices.len()].clone();
        let mut inferencer = inferencer(&golden, &device, vec![]);
        let mut runner = Runner::open(&golden.folder, &device);
        let prompts = prompts(&golden);
        let mut cache = inferencer.cache(prompts.len()).expect("a cache");
        let found = inferencer
            .prefill_blocking(&Ragged::from_rows(&prompts), &mut cache, &mut greedy())
            .expect("a step");
        let vocabulary = found.token_logits.width();
        for (row, (name, ids)) in PROMPTS.into_iter().zip(&prompts).enumerate() {
            let rows = found.token_logits.row(row).chunks(vocabulary);
            let rows: Vec<_> = rows.map(<[f32]>::to_vec).collect();
            let alone = runner.logits(ids, ids.len());
            assert!(bits(&rows) == bits(&alone), "{model} {name} on {device}");
            let positions = golden.ids(&format!("{name}.logit_positions"));
            let there: Vec<f32> =
                positions.iter().flat_map(|&p| rows[p as usize].clone()).collect();
            let expected = golden.floats(&format!("{name}.logits_f32")).expect("logits");
            let difference = max_difference(&there, &expected);
            let bound = if golden.prompts[name].is_strict() { STRICT } else { FLIPPED };
            assert!(difference <= bound, "{model} {name} on {device}: {difference}");
        }
    }
}

/// Whether greedy tokens are the reference's, up to the first whose margin a flipped code could
/// overcome.
fn check(what: &str, found: &[u32], expected: &[u32], margins: &[f32]) {
    let differing = found.iter().zip(expected).position(|(a, b)| a != b);
    match differing {
        None => assert_eq!(found.len(), expected.len(), "{what}"),
        Some(step) => assert!(margins[step] < 0.3, "{what}, step {step}: {}", margins[step]),
    }
}

#[test]
fn greedy_batches_continue_as_the_reference_does() {
    let mut ended = 0;
    for model in MODELS {
        let golden = Golden::read(model);
        let mut plain = inferencer(&golden, &Device::Cpu, vec![]);
        let prompts = prompts(&golden);
        let mut cache = plain.cache(prompts.len()).expect("a cache");
        let query = Ragged::from_rows(&prompts);
        let first = plain.prefill_blocking(&query, &mut cache, &mut greedy()).expect("a step");
        let rest = plain.decode_blocking(&first.next(), &mut cache, 31, &mut greedy());
        let rest = rest.expect("a text").token_ids;
        for (row, name) in PROMPTS.into_iter().enumerate() {
            let expected = &golden.prompts[name];
            let found = [first.token_ids.row(row), rest.row(row)].concat();
            let what = format!("{model} {name}");
            check(&what, &found, &expected.greedy, &expected.greedy_margin);
            let Some(with_eos) = &expected.greedy_with_eos else { continue };
            let mut ending = inferencer(&golden, &Device::Cpu, vec![with_eos.eos]);
            let mut cache = ending.cache(1).expect("a cache");
            let query = Ragged::from_rows([&prompts[row]]);
            let first = ending.prefill_blocking(&query, &mut cache, &mut greedy()).expect("a step");
            let mut found = first.token_ids.row(0).to_vec();
            if !first.ended[0] {
                let rest = ending.decode_blocking(&first.next(), &mut cache, 31, &mut greedy());
                found.extend_from_slice(rest.expect("a text").token_ids.row(0));
            }
            assert_eq!(cache.lengths()[0], prompts[row].len() + found.len() - 1, "{what}");
            check(&what, &found, &with_eos.tokens, &expected.greedy_margin);
            ended += usize::from(found.last() == Some(&with_eos.eos));
        }
    }
    assert!(ended >= MODELS.len(), "{ended} texts ended");
}

/// Sampled, with a seed: a row of a batch is a generation of the engine.
#[test]
fn sampled_rows_are_the_engines_texts() {
    for model in ["bitnet-h64/packed", "llama-headdim-rope3/packed"] {
        let golden = Golden::read(model);
        let eos_tokens = open(&golden).config().eos_tokens.clone();
        let mut inferencer = inferencer(&golden, &Device::Auto, eos_tokens);
        let engine = Engine::builder(open(&golden)).cache_type(CacheType::F32).build();
        let engine = engine.expect("an engine");
        let sampling = GenerateOptions::new()
            .temperature(0.9)
            .top_k(40)
            .top_p(0.95)
            .repetition_penalty(1.1)
            .max_tokens(24);
        let mut sampler = Sampler::new(SamplerOptions {
            temperature: 0.9,
            top_k: 40,
            top_p: 0.95,
            repetition_penalty: 1.1,
            ..SamplerOptions::default()
        })
        .expect("sound options");
        let prompts = prompts(&golden);
        let mut cache = inferencer.cache(prompts.len()).expect("a cache");
        for row in 0..prompts.len() {
            cache.set_draws(row, 5 + row as u64, 0).expect("a row");
        }
        let query = Ragged::from_rows(&prompts);
        let first = inferencer.prefill_blocking(&query, &mut cache, &mut sampler).expect("a step");
        let rest = inferencer.decode_blocking(&first.next(), &mut cache, 23, &mut sampler);
        let rest = rest.expect("a text").token_ids;
        for (row, prompt) in prompts.into_iter().enumerate() {
            let options = sampling.clone().seed(5 + row as u64);
            let expected = engine.complete(prompt, options).expect("a text").tokens;
            assert_eq!([first.token_ids.row(row), rest.row(row)].concat(), expected, "{model}");
        }
    }
}

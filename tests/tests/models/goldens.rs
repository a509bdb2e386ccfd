//! Whole models against reference outputs of transformers, by the scalar definitions and on
//! every other device that is here. Tolerances are those of `fixtures/README.md`: 1e-4 where
//! no int8 code is near a rounding tie; 0.6, and a bound on differing codes, where one is.

use setun::{CacheType, Engine, GenerateOptions, Model, ops::ScalarBackend};
use setun_tests::{
    fixture,
    golden::{Golden, MODELS, PROMPTS, Tensors, max_difference},
    run::{FLIPPED, Runner, devices},
    taps::tapped,
};

const STRICT: f32 = 1e-4;

/// Margin of two logits, in the reference, that a flipped code may overcome.
const TIE: f32 = 0.02;

/// Tokens that are compared with each processor, over all models.
const MIN_PROCESSED: usize = 900;

/// Greedy tokens that must agree of the 192 of a model's six prompts.
const MIN_GREEDY: usize = 176;

fn open(golden: &Golden) -> Model {
    Model::open(&golden.folder).expect("a golden model")
}

#[test]
fn logits() {
    for model in MODELS {
        let golden = Golden::read(model);
        for device in devices() {
            let mut runner = Runner::open(&golden.folder, &device);
            for prompt in PROMPTS {
                let ids = golden.ids(&format!("{prompt}.ids"));
                let rows = runner.logits(&ids, ids.len());
                let positions = golden.ids(&format!("{prompt}.logit_positions"));
                let found: Vec<f32> =
                    positions.iter().flat_map(|&p| rows[p as usize].clone()).collect();
                let expected = golden.floats(&format!("{prompt}.logits_f32")).expect("logits");
                let difference = max_difference(&found, &expected);
                let bound = if golden.prompts[prompt].is_strict() { STRICT } else { FLIPPED };
                assert!(difference <= bound, "{model} {prompt} on {device}: {difference}");
            }
        }
    }
}

#[test]
fn hidden_states_and_int8_codes() {
    for model in MODELS {
        let golden = Golden::read(model);
        for prompt in ["p1", "p7", "z7", "p33"] {
            let has_hidden = golden.floats(&format!("{prompt}.hidden_f32.0")).is_some();
            assert!(has_hidden || prompt == "p33", "{model} {prompt}: no hidden states");
            if !has_hidden {
                continue;
            }
            let strict = golden.prompts[prompt].is_strict();
            let ids = golden.ids(&format!("{prompt}.ids"));
            let taps = tapped(&golden.folder, ScalarBackend, &ids);
            for (index, found) in taps.hidden.iter().enumerate() {
                let name = format!("{prompt}.hidden_f32.{index}");
                let expected = golden.floats(&name).expect("hidden states");
                check_hidden(model, &name, found, &expected, strict);
            }
            let name = format!("{prompt}.residual_f32.last");
            let expected = golden.floats(&name).expect("the last residual");
            check_hidden(model, &name, &taps.residual, &expected, strict);
            for (layer, found) in &taps.codes {
                let name = format!("{prompt}.int8.{layer}");
                let expected = golden.codes(&name);
                assert!(
                    expected.is_some() || !["p1", "p7"].contains(&prompt),
                    "{model}: no {name}"
                );
                if let Some(expected) = expected {
                    check_codes(model, &name, found, &expected, strict);
                }
            }
        }
    }
}

fn check_hidden(model: &str, name: &str, found: &[f32], expected: &[f32], strict: bool) {
    let scale = expected.iter().fold(1.0f32, |max, x| max.max(x.abs()));
    let bound = if strict { STRICT * scale } else { FLIPPED * scale };
    let difference = max_difference(found, expected);
    assert!(difference <= bound, "{model} {name}: {difference} of {scale}");
}

fn check_codes(model: &str, name: &str, found: &[i8], expected: &[i8], strict: bool) {
    let differing = found.iter().zip(expected).filter(|(a, b)| a != b).count();
    assert_eq!(found.len(), expected.len(), "{model} {name}");
    if strict {
        assert_eq!(differing, 0, "{model} {name}");
    } else {
        assert!(differing * 100 <= found.len(), "{model} {name}: {differing} codes differ");
        let far =
            found.iter().zip(expected).any(|(a, b)| (i16::from(*a) - i16::from(*b)).abs() > 1);
        assert!(!far, "{model} {name}: a code differs by more than 1");
    }
}

/// Greedy tokens agree up to the first near tie, and nearly all of them are compared.
#[test]
fn greedy_continuations() {
    for model in MODELS {
        let golden = Golden::read(model);
        for device in devices() {
            let mut runner = Runner::open(&golden.folder, &device);
            let mut agreeing = 0;
            for prompt in PROMPTS {
                let expected = &golden.prompts[prompt];
                let ids = golden.ids(&format!("{prompt}.ids"));
                let found = runner.greedy(&ids, expected.greedy.len());
                let place = format!("{model} {prompt} on {device}");
                agreeing +=
                    agreeing_tokens(&found, &expected.greedy, &expected.greedy_margin, &place);
            }
            assert!(agreeing >= MIN_GREEDY, "{model} on {device}: {agreeing} tokens agree");
        }
    }
}

/// The number of tokens before the first that differs, which must be a near tie.
fn agreeing_tokens(found: &[u32], expected: &[u32], margins: &[f32], place: &str) -> usize {
    assert_eq!(found.len(), expected.len(), "{place}");
    let differing = found.iter().zip(expected).position(|(a, b)| a != b);
    if let Some(step) = differing {
        assert!(margins[step] < TIE, "{place}, step {step}: {}", margins[step]);
    }
    differing.unwrap_or(found.len())
}

/// The sampler's penalty and its ban on n-grams, through the engine, against transformers' own.
#[test]
fn greedy_continuations_with_processors() {
    let mut compared = [0; 2];
    for model in MODELS {
        let golden = Golden::read(model);
        let eos = open(&golden).config().eos_tokens.clone();
        let builder = Engine::builder(open(&golden)).cache_type(CacheType::F32);
        let engine = builder.build().expect("an engine");
        for (name, prompt) in &golden.prompts {
            let processed = [
                (&prompt.greedy_penalised, GenerateOptions::new().repetition_penalty(1.3)),
                (&prompt.greedy_no_repeat, GenerateOptions::new().no_repeat_ngram(3)),
            ];
            for (compared, (expected, options)) in compared.iter_mut().zip(processed) {
                let Some(expected) = expected else { continue };
                let ids = golden.ids(&format!("{name}.ids"));
                let options = options.temperature(0.0).max_tokens(expected.tokens.len());
                let found = engine.complete(ids, options).expect("a continuation").tokens;
                // The reference goes on after an end token.
                let end = expected.tokens.iter().position(|token| eos.contains(token));
                let until = end.map_or(expected.tokens.len(), |end| end + 1);
                assert_eq!(found, expected.tokens[..until], "{model} {name}");
                *compared += until;
            }
        }
    }
    assert!(compared.iter().all(|&count| count >= MIN_PROCESSED), "{compared:?} tokens compared");
}

/// A trained model against an independent float64 implementation.
#[test]
fn logits_of_a_real_model() {
    let folder = fixture("golden/real-tinystories-1m");
    for device in devices() {
        let mut runner = Runner::open(&folder, &device);
        for prompt in ["bos", "once", "dog"] {
            let golden = Tensors::read(&folder.join(format!("golden-{prompt}.safetensors")));
            let ids = golden.ids("ids");
            let found = runner.logits(&ids, ids.len()).concat();
            let difference = max_difference(&found, &golden.floats("logits").expect("logits"));
            assert!(difference <= 1e-3, "{prompt} on {device}: {difference}");
        }
    }
}

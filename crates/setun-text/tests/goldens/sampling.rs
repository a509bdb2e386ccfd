//! Probabilities as the logits processors of transformers leave them.

use std::collections::BTreeMap;

use crate::support::{entries, ids, json, read};
use safetensors::SafeTensors;
use serde_json::Value;
use setun_text::{Draw, Sampler, SamplerOptions, SamplerState, Step};

/// The tolerance of the golden file: transformers computes in f32.
const TOLERANCE: f64 = 1e-6;

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let bytes = file.tensor(name).expect("a tensor of the file").data();
    bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect()
}

fn history(file: &SafeTensors<'_>) -> Vec<u32> {
    let tensor = file.tensor("history").expect("a tensor of the file");
    let width = tensor.data().len() / tensor.shape().iter().product::<usize>();
    let id = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    tensor.data().chunks_exact(width).map(id).collect()
}

fn options(parameters: &Value) -> SamplerOptions {
    #[expect(clippy::cast_possible_truncation, reason = "options are f32")]
    let number = |name: &str, default: f32| parameters[name].as_f64().map_or(default, |n| n as f32);
    let count = |name: &str| {
        parameters[name].as_u64().map_or(0, |count| usize::try_from(count).expect("small"))
    };
    let list = |name: &str| parameters[name].as_array().cloned().unwrap_or_default();
    let ids = |name: &str| {
        list(name).iter().map(|id| serde_json::from_value(id.clone()).expect("an id")).collect()
    };
    let mut biases = parameters["logit_bias"].clone();
    if biases.is_null() {
        biases = serde_json::json!({});
    }
    SamplerOptions {
        temperature: number("temperature", 1.0),
        top_k: count("top_k"),
        top_p: number("top_p", 1.0),
        min_p: number("min_p", 0.0),
        repetition_penalty: number("repetition_penalty", 1.0),
        typical_p: number("typical_p", 1.0),
        epsilon_cutoff: number("epsilon_cutoff", 0.0),
        eta_cutoff: number("eta_cutoff", 0.0),
        no_repeat_ngram: count("no_repeat_ngram"),
        min_tokens: count("min_tokens"),
        banned_tokens: ids("banned_tokens"),
        end_tokens: ids("end_tokens"),
        banned_sequences: list("banned_sequences").iter().map(crate::support::ids).collect(),
        logit_bias: serde_json::from_value(biases).expect("numbers by token"),
        ..SamplerOptions::default()
    }
}

#[test]
fn probabilities_are_those_of_the_reference() {
    let bytes = read("golden/units/sampling.safetensors");
    let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let history = history(&file);
    for case in entries(&json("golden/units/sampling.json")["cases"]) {
        let kind = case["raw"].as_str().expect("a name");
        let expected = floats(&file, &format!("probs.{kind}.{}", case["index"]));
        let sampler = Sampler::new(options(&case["params"])).expect("in range");
        let step = Step::new(&history, history.len(), Draw::default());
        let found = sampler
            .probabilities(&floats(&file, &format!("raw.{kind}")), &step, &SamplerState::default())
            .expect("finite logits");
        assert_eq!(case["kept"], found.len(), "{case}");
        if matches!(kind, "ties" | "uniform") && case["params"]["top_p"].is_number() {
            // Among exact ties the reference keeps whichever its sort put last.
            same_values(found, expected, case);
        } else {
            same_tokens(&found, &expected, case);
        }
    }
}

/// Chains of every step that transformers has, in the order that it gives them.
#[test]
fn probabilities_are_those_of_whole_chains() {
    let file = json("sampling/processors.json");
    for case in entries(&file["cases"]) {
        let history = &file["histories"][case["history"].as_str().expect("a name")];
        let prompt_tokens = history["prompt_tokens"].as_u64().expect("a count");
        let prompt_tokens = usize::try_from(prompt_tokens).expect("small");
        let row = &file["rows"][case["row"].as_str().expect("a name")];
        let logits: Vec<f32> = serde_json::from_value(row.clone()).expect("numbers");
        let expected: BTreeMap<u32, f64> =
            serde_json::from_value(case["probabilities"].clone()).expect("numbers by token");
        let history = ids(&history["ids"]);
        let step = Step::new(&history, prompt_tokens, Draw::default());
        let sampler = Sampler::new(options(&case["options"])).expect("in range");
        let found = sampler.probabilities(&logits, &step, &SamplerState::default());
        let found: BTreeMap<u32, f64> = found.expect("some are left").into_iter().collect();
        assert!(found.keys().eq(expected.keys()), "{case}: {found:?}");
        for (token, probability) in found {
            let difference = (probability - expected[&token]).abs();
            assert!(difference <= TOLERANCE, "token {token} differs by {difference}: {case}");
        }
    }
}

fn same_tokens(found: &[(u32, f64)], expected: &[f32], case: &Value) {
    let mut ours = vec![None; expected.len()];
    for &(token, probability) in found {
        ours[token as usize] = Some(probability);
    }
    for (token, (ours, &theirs)) in ours.into_iter().zip(expected).enumerate() {
        // In f32 a small probability may be 0 and still be kept: then only its value counts.
        assert!(ours.is_some() || theirs == 0.0, "token {token} is missing: {case}");
        let difference = (ours.unwrap_or(0.0) - f64::from(theirs)).abs();
        assert!(difference <= TOLERANCE, "token {token} differs by {difference}: {case}");
    }
}

fn same_values(found: Vec<(u32, f64)>, mut expected: Vec<f32>, case: &Value) {
    expected.sort_by(|left, right| right.total_cmp(left));
    for ((token, ours), theirs) in found.into_iter().zip(expected) {
        let difference = (ours - f64::from(theirs)).abs();
        assert!(difference <= TOLERANCE, "token {token} differs by {difference}: {case}");
    }
}

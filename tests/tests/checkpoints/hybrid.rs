//! Layers with a recurrent state beside layers that attend, against transformers' results.

use std::fs;

use setun::{Format, Inferencer, InferencerOptions, Model, Ragged, SamplerOptions, text::Sampler};
use setun_tests::{
    fixture,
    golden::{Tensors, max_difference},
    run::{Runner, bits, devices, exact},
};

use super::bonsai::{converted, open};

/// Float32 and float64 evaluations of prompts without a code near a rounding tie differ by 5.5e-5 at most.
const STRICT: f32 = 1e-3;

/// Models with files of several writers, and bounds of the prompts of 33 and 130 tokens: twice what the reference
/// in float32 has beside its own in float64, at least 0.02, as codes lie near ties there.
const GOLDENS: [(&str, &[&str], [f32; 2]); 5] = [
    ("qwen35-r2", &["hf"], [0.02, 0.02]),
    ("qwen35-r1", &["hf", "type142.gguf", "type143-alpha-beta-f16.gguf"], [0.02, 0.22]),
    ("qwen35-wrapper-r3", &["mlx"], [0.02, 0.02]),
    ("qwen35-mtp", &["type142-mtp-q8_0.gguf"], [0.02, 0.02]),
    ("qwen35-hadamard-r2", &["mlx", "type42g64.gguf", "type143.gguf"], [0.02, 0.3]),
];

const PROMPTS: [&str; 5] = ["p1", "p3", "p7", "p33", "p130"];

#[test]
fn logits_are_those_of_transformers() {
    let root = fixture("families");
    for (model, files, [middle, long]) in GOLDENS {
        let golden = Tensors::read(&root.join(model).join("golden.safetensors"));
        for device in devices() {
            let mut first = vec![];
            for file in files {
                let opened = Model::open(root.join(model).join(file)).expect("a model");
                let mut runner = Runner::new(opened, exact(&device));
                for (prompt, bound) in PROMPTS.iter().zip([STRICT, STRICT, STRICT, middle, long]) {
                    let ids = golden.ids(&format!("{prompt}.ids"));
                    let rows = runner.logits(&ids, ids.len());
                    let positions = golden.ids(&format!("{prompt}.positions"));
                    let found: Vec<f32> =
                        positions.iter().flat_map(|&at| rows[at as usize].clone()).collect();
                    let expected = golden.floats(&format!("{prompt}.logits_int8_group"));
                    let difference = max_difference(&found, &expected.expect("logits"));
                    let place = format!("{prompt} of {model}, {file} on {device}");
                    assert!(difference <= bound, "{place}: {difference}");
                    for chunk in [1, 7, 64] {
                        assert_eq!(
                            bits(&runner.logits(&ids, chunk)),
                            bits(&rows),
                            "{place}, {chunk}"
                        );
                    }
                    first.push((*prompt, bits(&rows)));
                }
            }
            // Decays are stored as such, or as logarithms, whose exponentials may be others by a bit.
            let alike =
                if model == "qwen35-hadamard-r2" { &first[PROMPTS.len()..] } else { &first };
            for (index, (prompt, rows)) in alike.iter().enumerate() {
                assert!(*rows == alike[index % PROMPTS.len()].1, "{prompt} of {model} on {device}");
            }
        }
    }
}

#[test]
fn conversions_give_the_same_bits() {
    for (model, name) in
        [("qwen35-r1", "type143-alpha-beta-f16.gguf"), ("qwen35-hadamard-r2", "type143.gguf")]
    {
        let folder = fixture("families").join(model);
        let source = fs::read(folder.join(name)).expect("a file");
        let ids = Tensors::read(&folder.join("golden.safetensors")).ids("p33.ids");
        let logits = |name: &str, bytes: &[u8]| {
            let device = devices().swap_remove(0);
            bits(&Runner::new(open(name, bytes).expect(name), exact(&device)).logits(&ids, 33))
        };
        let expected = logits(name, &source);
        let container = Format::Setun(Box::default());
        let once = converted(name, &source, container.clone(), "m.setun");
        assert!(logits("m.setun", &once["m.setun"]) == expected, "{model}");
        let again = converted("m.setun", &once["m.setun"], container, "n.setun");
        assert!(logits("n.setun", &again["n.setun"]) == expected, "{model} again");
    }
}

#[test]
fn a_cache_that_is_cut_goes_on_as_before() {
    let folder = fixture("families/qwen35-r1");
    let ids = Tensors::read(&folder.join("golden.safetensors")).ids("p33.ids");
    let device = devices().swap_remove(0);
    let loaded = Model::open(folder.join("hf")).expect("a model").load_onto(exact(&device));
    let loaded = loaded.expect("the device is here");
    let mut inferencer = Inferencer::new(loaded.model, InferencerOptions::default());
    let mut greedy = Sampler::new(SamplerOptions::default()).expect("sound options");
    let mut cache = inferencer.cache(1).expect("a cache");
    let mut run = |tokens: &[u32], cache: &mut _| {
        let query = Ragged::from_rows([tokens]);
        let found = inferencer.prefill_blocking(&query, cache, &mut greedy).expect("a step");
        bits(&[found.token_logits.row(0).to_vec()]).concat()
    };
    let whole = run(&ids, &mut cache);
    let vocabulary = whole.len() / ids.len();
    for len in [30, 17, 1, 0] {
        cache.truncate(len);
        assert!(run(&ids[len..], &mut cache) == whole[len * vocabulary..], "from {len} on");
    }
}

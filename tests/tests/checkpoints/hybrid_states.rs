//! Hidden states and recurrent states of hybrid models, against transformers' results.
//!
//! The references have float activations. Here activations are int8 with a scale for each 128 columns, whose error
//! is at most 1/254 of the largest one of its group, so that states are near the references and not equal to them.
//! An error of layout, order or formula makes them as far apart as the references are long.

use setun::ops::ScalarBackend;
use setun_tests::{
    fixture,
    golden::{Tensors, max_difference},
    taps::{Tapped, tapped},
};

/// Models, a file of each, the layer with the recurrent state, and heads of keys and values.
const MODELS: [(&str, &str, usize, [usize; 2]); 6] = [
    ("qwen35-r1", "hf", 0, [1, 1]),
    ("qwen35-r1", "type143-alpha-beta-f16.gguf", 0, [1, 1]),
    ("qwen35-wrapper-r3", "mlx", 0, [2, 6]),
    ("qwen35-mtp", "type142-mtp-q8_0.gguf", 0, [2, 4]),
    ("qwen35-hadamard-r2", "type143.gguf", 0, [2, 4]),
    ("qwen35-hadamard-tied-r3", "type143.gguf", 1, [2, 6]),
];

/// Width of the heads of all these delta nets.
const WIDTH: usize = 128;

/// The greatest distance from the references, as a part of their length: half more than the greatest that was found,
/// 0.045 of hidden states and 0.014 of recurrent ones, which two layers at most come before.
const BOUNDS: [f32; 2] = [0.07, 0.02];

/// Whole texts, and texts whose last position alone has a reference.
const PROMPTS: [(&str, &str); 4] =
    [("p1", "hidden"), ("p3", "hidden"), ("p33", "hidden_last"), ("p130", "hidden_last")];

fn open(model: &str, file: &str, prompt: &str) -> (Tensors, Tapped) {
    let folder = fixture("families").join(model);
    let golden = Tensors::read(&folder.join("golden.safetensors"));
    let ids = golden.ids(&format!("{prompt}.ids"));
    let taps = tapped(folder.join(file), ScalarBackend, &ids);
    (golden, taps)
}

/// Checks numbers against those of this name by the length of their difference.
fn check(golden: &Tensors, model: &str, name: &str, found: &[f32], bound: f32) {
    let expected = golden.floats(name).unwrap_or_else(|| panic!("{model} has no {name}"));
    assert_eq!(found.len(), expected.len(), "{model} {name}");
    let length = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
    let difference = length(&mut found.iter().zip(&expected).map(|(a, b)| a - b));
    let scale = length(&mut expected.iter().copied());
    assert!(difference <= bound * scale, "{model} {name}: {difference} of {scale}");
}

#[test]
fn hidden_states_are_near_those_of_float_activations() {
    for (model, file, ..) in MODELS {
        for (prompt, kind) in PROMPTS {
            let (golden, taps) = open(model, file, prompt);
            let last = taps.hidden.len() - 1;
            let named =
                taps.hidden[..last].iter().enumerate().map(|(at, row)| (at.to_string(), row));
            let residual = (last.to_string(), &taps.residual);
            // Heads of rotated models have their input rotated.
            let has_norm = !model.starts_with("qwen35-hadamard");
            let normed = has_norm.then(|| ("norm".to_owned(), &taps.hidden[last]));
            for (place, rows) in named.chain([residual]).chain(normed) {
                let name = format!("{prompt}.{kind}.{place}");
                let size = golden.floats(&name).map_or(0, |expected| expected.len());
                check(&golden, model, &name, &rows[rows.len() - size..], BOUNDS[0]);
            }
        }
    }
}

#[test]
fn embeddings_are_those_of_the_reference() {
    for (model, file, ..) in MODELS {
        let (golden, taps) = open(model, file, "p3");
        let expected = golden.floats("p3.hidden.0").expect("the embedding");
        assert!(max_difference(&taps.hidden[0], &expected) <= 1e-4, "{model} {file}");
    }
}

#[test]
fn recurrent_states_are_near_those_of_float_activations() {
    for (model, file, layer, heads) in MODELS {
        let (golden, taps) = open(model, file, "p7");
        let check = |name: &str, found: &[f32]| check(&golden, model, name, found, BOUNDS[1]);
        let (matrices, ring) = taps.state.split_at(heads[1] * WIDTH * WIDTH);
        let of = |name: &str| format!("p7.state.{layer}.{name}");
        let rows = matrices.chunks_exact(WIDTH);
        check(&of("row_sums"), &rows.map(|row| row.iter().sum()).collect::<Vec<_>>());
        let column = |head: &[f32], at: usize| head.chunks_exact(WIDTH).map(|row| row[at]).sum();
        let heads_of = matrices.chunks_exact(WIDTH * WIDTH);
        let column_sums: Vec<f32> =
            heads_of.flat_map(|head| (0..WIDTH).map(move |at| column(head, at))).collect();
        check(&of("column_sums"), &column_sums);
        check(&format!("p7.conv_state.{layer}"), &last_inputs(ring, heads, 7));
    }
}

/// The reference's part of the last head is that after the greedy continuation of 32 tokens, which are all one.
#[test]
fn recurrent_states_stay_near_over_a_continuation() {
    for (model, file, layer, value_heads, token) in
        [("qwen35-r1", "hf", 0, 1, 95), ("qwen35-hadamard-tied-r3", "type143.gguf", 1, 6, 54)]
    {
        let folder = fixture("families").join(model);
        let golden = Tensors::read(&folder.join("golden.safetensors"));
        let ids = [golden.ids("p7.ids"), vec![token; 32]].concat();
        let taps = tapped(folder.join(file), ScalarBackend, &ids);
        let matrices = &taps.state[..value_heads * WIDTH * WIDTH];
        let last = matrices[(value_heads - 1) * WIDTH * WIDTH..].chunks_exact(WIDTH);
        let last: Vec<f32> = last.flat_map(|row| row[..64].to_vec()).collect();
        let name = format!("p7.state.{layer}.last_head_first_64_columns");
        check(&golden, model, &name, &last, BOUNDS[1]);
    }
}

/// The last three inputs of the convolution, `[channels, 3]`, out of a ring of rows that have the channels of each
/// key head together. `positions` are taken in.
fn last_inputs(ring: &[f32], [keys, values]: [usize; 2], positions: usize) -> Vec<f32> {
    let group = values / keys;
    let of_key_head = 2 * WIDTH + group * (WIDTH + 2);
    let rows: Vec<&[f32]> = ring.chunks_exact(keys * of_key_head).collect();
    let channel = |key_head: usize, at: usize| {
        (positions - 3..positions).map({
            let rows = &rows;
            move |position| rows[position % rows.len()][key_head * of_key_head + at]
        })
    };
    let part = |first: usize, count: usize| {
        (0..keys).flat_map(move |head| (first..first + count).map(move |at| (head, at)))
    };
    let channels = part(0, WIDTH).chain(part(WIDTH, WIDTH)).chain(part(2 * WIDTH, group * WIDTH));
    channels.flat_map(|(head, at)| channel(head, at)).collect()
}

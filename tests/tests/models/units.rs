//! Single definitions against reference values of transformers; tolerances are those of
//! `fixtures/README.md`'s source: codes and ties exactly, float results to a few parts in a
//! million.

use setun::{
    checkpoint::config::{RopeConfig, RopeScaling},
    forward::rope::inverse_frequencies,
    ops::{
        TernaryMatrix,
        gate::gate_output,
        op::Activation,
        quantize::quantize_row,
        rms_norm::rms_norm_row,
        rope_append::{RopeTable, rotate_head},
        ternary::{Scales, pack_row, padded_columns, row_bytes},
        ternary_matmul::{QuantizedRow, ternary_matmul_output},
    },
};
use setun_tests::{
    fixture,
    golden::{Tensors, max_difference},
};

fn units() -> Tensors {
    Tensors::read(&fixture("golden/units/units.safetensors"))
}

/// Numbers in names such as `rmsnorm.320.x`, for a prefix and an end.
fn cases(units: &Tensors, prefix: &str, end: &str) -> Vec<String> {
    let names = units.names().into_iter();
    let mut cases: Vec<String> = names
        .filter_map(|name| Some(name.strip_prefix(prefix)?.strip_suffix(end)?.to_owned()))
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no tensors {prefix}*{end}");
    cases
}

#[test]
fn ties_round_to_even() {
    let units = units();
    for case in cases(&units, "ties.", ".x") {
        let x = units.floats(&format!("ties.{case}.x")).expect("x");
        let mut codes = vec![0; x.len()];
        quantize_row(&x, &mut codes);
        assert_eq!(Some(codes), units.codes(&format!("ties.{case}.q")), "ties.{case}");
    }
}

#[test]
fn linear_layers_of_both_classes() {
    let units = units();
    for case in cases(&units, "linear.", ".x_f32") {
        let name = |part: &str| format!("linear.{case}.{part}");
        let x = units.floats(&name("x_f32")).expect("x");
        let codes = units.codes(&format!("pack.{case}.codes")).expect("codes");
        let columns = x.len() / 6; // six rows of activations
        let rows = codes.len() / columns;
        let scale =
            |class: &str| units.bf16(&name(&format!("weight_scale_{class}"))).expect("a scale")[0];
        let layers = [
            ("autobitlinear", "autobitlinear_offline", scale("autobitlinear")),
            ("bitlinear", "bitlinear", 1.0 / scale("bitlinear")),
        ];
        for (class, result, scale) in layers {
            let matrix = matrix(&codes, rows, columns, scale);
            let expected_codes = units.codes(&name(&format!("q_{class}_f32"))).expect("q");
            let expected = units.floats(&name(&format!("y_{result}_f32"))).expect("y");
            for (row, x) in x.chunks_exact(columns).enumerate() {
                let mut quantized = vec![0; padded_columns(columns)];
                let scales = [quantize_row(x, &mut quantized).scale];
                assert_eq!(quantized[..columns], expected_codes[row * columns..][..columns]);
                let x = QuantizedRow { codes: &quantized, scales: &scales, group: None };
                let y: Vec<f32> = (0..rows)
                    .map(|output| ternary_matmul_output(&matrix, output, x, None))
                    .collect();
                let expected = &expected[row * rows..][..rows];
                let largest = expected.iter().fold(0.0f32, |max, y| max.max(y.abs()));
                let difference = max_difference(&y, expected);
                assert!(difference <= 2e-6 * largest, "{result} {case}, row {row}: {difference}");
            }
        }
    }
}

fn matrix(weights: &[i8], rows: usize, columns: usize, scale: f32) -> TernaryMatrix {
    let mut packed = vec![0; rows * row_bytes(columns)];
    for (row, packed) in packed.chunks_exact_mut(row_bytes(columns)).enumerate() {
        let weights = &weights[row * columns..][..columns];
        let codes: Vec<u8> = weights.iter().map(|w| (w + 1).cast_unsigned()).collect();
        pack_row(&codes, packed);
    }
    TernaryMatrix::new(rows, columns, packed, Scales::Tensor(scale)).expect("ternary weights")
}

#[test]
fn norms() {
    let units = units();
    for case in cases(&units, "rmsnorm.", ".x") {
        let part = |part: &str| units.floats(&format!("rmsnorm.{case}.{part}")).expect("a tensor");
        let (x, gain, expected) = (part("x"), part("w"), part("y"));
        for (x, expected) in x.chunks_exact(gain.len()).zip(expected.chunks_exact(gain.len())) {
            let mut y = vec![0.0; gain.len()];
            rms_norm_row(x, &gain, 1e-5, &mut y);
            for (y, expected) in y.iter().zip(expected) {
                assert!((y - expected).abs() <= 1e-6 * expected.abs(), "{case}: {y} {expected}");
            }
        }
    }
}

#[test]
fn activations() {
    let units = units();
    let x = units.floats("act.x").expect("x");
    for (name, activation) in [("relu2", Activation::ReluSquared), ("silu", Activation::Silu)] {
        let expected = units.floats(&format!("act.{name}")).expect("y");
        for (x, expected) in x.iter().zip(expected) {
            let y = gate_output(activation, *x, 1.0);
            assert!((y - expected).abs() <= 1e-6 * expected.abs(), "{name}({x}): {y} {expected}");
        }
    }
}

#[test]
fn rotary_embeddings() {
    let units = units();
    for (head_dim, theta) in [(32, 1e4), (64, 1_000_042.0), (128, 5e5)] {
        let part = |part: &str| units.floats(&format!("rope.{head_dim}.{part}")).expect("a tensor");
        let rope = RopeConfig { theta, dimensions: head_dim, scaling: RopeScaling::Default };
        let frequencies = inverse_frequencies(&rope);
        for (found, expected) in frequencies.iter().zip(part("inv_freq")) {
            assert!((found - expected).abs() <= 2e-7 * expected, "{head_dim}: {found} {expected}");
        }
        let positions = units.ids(&format!("rope.{head_dim}.pos"));
        let table = RopeTable::new(4096, &frequencies).expect("a table");
        for (before, after) in [("q", "q_rot"), ("k", "k_rot")] {
            let (x, expected) = (part(before), part(after));
            let rows = x.chunks_exact(head_dim).zip(expected.chunks_exact(head_dim));
            for (index, (x, expected)) in rows.enumerate() {
                let position = positions[index % positions.len()] as usize;
                let (cos, sin) = table.at(position);
                let mut head = x.to_vec();
                rotate_head(&mut head, cos, sin);
                // Far out the reference's own angles, products of floats, are that inexact.
                let bound = if position < 130 { 1e-5 } else { 2e-3 };
                let difference = max_difference(&head, expected);
                assert!(difference <= bound, "{before} {head_dim} at {position}: {difference}");
            }
        }
    }
}

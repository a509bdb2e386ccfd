//! Random models as a whole: loaded as any other model, and run.

use std::collections::BTreeMap;

use serde_json::Value;
use setun::{
    Model,
    forward::{Batch, PagedCache, RequestedOutput, Transformer, TransformerOptions},
    ops::{Op, ScalarBackend},
};

use super::{
    ShapeName, Synthetic, noise,
    shape::{Hybrid, Shape, ShapeKind},
};
use crate::source::ModelFiles;

/// Large enough for statistics, small enough for the scalar definitions.
const SHAPE: Shape = Shape {
    name: "test",
    kind: ShapeKind::BitNet,
    hidden: 512,
    ffn: 1408,
    layers: 4,
    heads: 8,
    kv_heads: 2,
    vocab: 997,
    context: 64,
};

/// Loads without any file, in the pieces that are requested.
fn load(synthetic: Synthetic) -> Model {
    ModelFiles::synthetic(synthetic).load().expect("a whole model")
}

#[test]
fn ranges_of_the_weight_file_are_parts_of_the_whole() {
    let synthetic = Synthetic::new(&SHAPE, 3, Some(0.75)).expect("a shape");
    let end = synthetic.weight_file_bytes();
    let mut whole = vec![];
    synthetic.read_weights(0..end + 100, &mut whole);
    assert_eq!(whole.len() as u64, end, "nothing after the end");
    for step in [1_000_003, 4 << 20] {
        let mut pieces = vec![];
        for start in (0..end).step_by(step) {
            synthetic.read_weights(start..(start + step as u64).min(end), &mut pieces);
        }
        assert!(pieces == whole, "pieces of {step}");
    }
}

#[test]
fn seeds_give_other_models_and_the_same_again() {
    let bytes = |seed| {
        let mut bytes = vec![];
        let synthetic = Synthetic::new(&SHAPE, seed, None).expect("a shape");
        synthetic.read_weights(0..500_000, &mut bytes);
        bytes
    };
    assert!(bytes(0) == bytes(0));
    assert!(bytes(0) != bytes(1));
}

#[test]
fn gates_are_closed_at_the_requested_rate() {
    for (closed, expected) in
        [(None, 0.5), (Some(0.5), 0.5), (Some(0.75), 0.75), (Some(0.9), 0.9), (Some(0.2), 0.2)]
    {
        let model = load(Synthetic::new(&SHAPE, 1, closed).expect("a shape"));
        for (layer, found) in closed_shares(&model).into_iter().enumerate() {
            assert!(
                (found - expected).abs() < 0.05,
                "asked for {closed:?}: {found} of layer {layer}"
            );
        }
    }
}

/// The share of closed gates of each layer, over some random tokens.
fn closed_shares(model: &Model) -> Vec<f64> {
    let (config, weights) = (model.config().clone(), model.weights().clone());
    let options = TransformerOptions::default();
    let mut transformer =
        Transformer::new(ScalarBackend, config, weights, options).expect("a model");
    let tokens: Vec<_> = (0..24).map(|i| u32::try_from(noise(9, i) % 997).unwrap()).collect();
    let rows = tokens.len();
    let plan = transformer.plan(rows, 1, true).expect("a plan").plan;

    let mut cache = PagedCache::new(options.block_positions, 8);
    let sequence = cache.create();
    cache.extend(sequence, rows).expect("room");
    let mut batch = Batch::default();
    batch.push_run(sequence, 0, &tokens, RequestedOutput::Logits);
    let gates = plan.ops().iter().filter_map(|op| match op {
        Op::Gate { out, .. } => Some((*out, rows)),
        _ => None,
    });
    let reads: Vec<_> = gates.collect();
    let step = transformer.forward_with_taps(&plan, &batch, &mut cache, &reads);
    let outputs = pollster::block_on(step).expect("a step");
    let share = |bytes: &Vec<u8>| {
        let values: Vec<f32> = bytemuck::pod_collect_to_vec(bytes);
        let closed = values.iter().filter(|&&value| value == 0.0).count();
        f64::from(u32::try_from(closed).unwrap()) / f64::from(u32::try_from(values.len()).unwrap())
    };
    outputs.iter().map(share).collect()
}

/// A model that only repeats its last token would make a poor check of other engines.
#[test]
fn greedy_texts_are_not_one_token() {
    let engine = setun::Engine::builder(load(Synthetic::new(&SHAPE, 0, None).expect("a shape")))
        .build()
        .expect("an engine");
    let options = setun::GenerateOptions::new().temperature(0.0).max_tokens(24);
    let tokens = engine.complete(vec![1, 2, 3], options).expect("a text").tokens;
    let mut distinct = tokens.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(tokens.len(), 24, "there is no end token");
    assert!(distinct.len() > 6, "{tokens:?}");
}

/// The difference of the two published files of Bonsai 2, of 28 and 34 bytes for each 128 weights, gives the
/// number of its ternary weights. The older model has 96 matrices more, of 48 rows.
#[test]
fn the_27b_shapes_have_their_published_sizes() {
    let rotated = (7_206_168_928 - 5_946_648_928) / 6 * 128;
    for (name, matrices, weights) in [
        (ShapeName::Bonsai2_27b, 402, rotated),
        (ShapeName::Bonsai27b, 498, rotated + 96 * 48 * 5120),
    ] {
        let tensors = tensors(&Synthetic::new(&name.shape(), 0, None).expect("a shape"));
        let codes = tensors.iter().filter(|(_, info)| info["dtype"] == "U32");
        let sizes: Vec<u64> = codes.map(|(_, info)| 16 * elements(info)).collect();
        assert_eq!((sizes.len(), sizes.iter().sum()), (matrices, weights), "{name:?}");
        let others = tensors.keys().filter(|name| {
            let parts = ["norm.weight", "conv1d.weight", "A_log", "dt_bias"];
            parts.iter().any(|part| name.ends_with(part))
        });
        assert_eq!(others.count(), 353, "{name:?}");
    }
}

/// The tensors that a weight file lists.
fn tensors(synthetic: &Synthetic) -> BTreeMap<String, Value> {
    let (mut length, mut header) = (vec![], vec![]);
    synthetic.read_weights(0..8, &mut length);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
    synthetic.read_weights(8..8 + length, &mut header);
    let mut tensors: BTreeMap<_, _> = serde_json::from_slice(&header).expect("JSON");
    tensors.remove("__metadata__");
    tensors
}

fn elements(info: &Value) -> u64 {
    let sizes = info["shape"].as_array().expect("a shape").iter();
    sizes.map(|size| size.as_u64().expect("a size")).product()
}

/// Delta nets and attention, with and without rotated inputs, whose heads of values are three times their
/// heads of keys: the logits are finite and depend on the token before.
#[test]
fn hybrid_models_load_and_run() {
    for rotation in [None, Some(128)] {
        let hybrid = Hybrid { head_dim: 64, key_heads: 1, value_heads: 3, rotation };
        let shape = Shape {
            kind: ShapeKind::Hybrid(hybrid),
            hidden: 256,
            ffn: 384,
            heads: 4,
            kv_heads: 2,
            ..SHAPE
        };
        let model = load(Synthetic::new(&shape, 5, None).expect("a shape"));
        assert_eq!(model.config().hadamard.is_some(), rotation.is_some());
        let engine = setun::Engine::builder(model).build().expect("an engine");
        let text = |tokens: &[u32]| {
            let options = setun::GenerateOptions::new().temperature(0.0).max_tokens(12);
            engine.complete(tokens.to_vec(), options).expect("a text").tokens
        };
        let (found, other) = (text(&[1, 2, 3]), text(&[7, 2, 3]));
        assert_eq!(found.len(), 12);
        assert_ne!(found, other, "{rotation:?}: the first token is forgotten");
    }
}

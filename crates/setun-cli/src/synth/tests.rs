//! Random models as a whole: loaded as any other model, and run.

use setun::{
    Model,
    forward::{Batch, PagedCache, RequestedOutput, Transformer, TransformerOptions},
    ops::{Op, ScalarBackend},
};

use super::{
    Synthetic, noise,
    shape::{Shape, ShapeKind},
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

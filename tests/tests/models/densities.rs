//! Densities in a profile against codes that the definitions wrote: open gates, and
//! codes into `down` that are not zero.

use setun::{
    Device, DeviceOptions, Model,
    forward::{
        Batch, Density, LayerDensity, Model as _, Outputs, PagedCache, Profile, RequestedOutput,
        Transformer, TransformerOptions, layout::LinearLayout,
    },
    ops::{
        ScalarBackend, WeightData,
        op::Activation,
        ternary::{TernaryMatrix, padded_columns},
        ternary_dot::ternary_dot,
    },
};
use setun_tests::{fixture, golden::MODELS, run::devices};

const ROWS: usize = 48;

/// The embedded model, which is of relu², and the others that are small.
fn models() -> Vec<std::path::PathBuf> {
    let embedded = fixture("../../crates/setun/embedded/stories.safetensors");
    let golden = MODELS.iter().map(|name| fixture("golden").join(name));
    [embedded].into_iter().chain(golden).collect()
}

/// Tokens of some text of the vocabulary.
fn tokens(model: &Model) -> Vec<u32> {
    let vocab = u32::try_from(model.config().vocab_size).expect("a vocabulary");
    (0..u32::try_from(ROWS).expect("few rows")).map(|index| (17 + 101 * index) % vocab).collect()
}

/// By the definitions: gates from the codes that enter them, one product after another.
fn expected(model: &Model) -> Vec<LayerDensity> {
    let (config, weights) = (model.config(), model.weights());
    let options = TransformerOptions::default();
    let mut transformer =
        Transformer::new(ScalarBackend, config.clone(), weights.clone(), options).expect("a model");
    let plan = transformer.plan(ROWS, 1, true).expect("a plan");
    let buffer = |linear: &LinearLayout| {
        let name = &linear.names[0];
        plan.taps.codes.iter().find(|(tapped, _)| tapped == name).expect("tapped").1
    };
    let layers = &weights.layout.layers;
    let reads: Vec<_> = layers
        .iter()
        .flat_map(|layer| [(buffer(&layer.gate), ROWS), (buffer(&layer.down), ROWS)])
        .collect();

    let mut cache = PagedCache::new(transformer.block_positions(), 64);
    let sequence = cache.create();
    cache.extend(sequence, ROWS).expect("room");
    let mut batch = Batch::default();
    batch.push_run(sequence, 0, &tokens(model), RequestedOutput::Logits);
    let step = transformer.forward_with_taps(&plan.plan, &batch, &mut cache, &reads);
    let codes = pollster::block_on(step).expect("a step");

    let relu = config.activation == Activation::ReluSquared;
    let density = |layer: usize| {
        let [gate, down] = [2 * layer, 2 * layer + 1].map(|read| codes[read].as_slice());
        let down = bytemuck::cast_slice(down);
        LayerDensity {
            gates: if relu { open(model, &layers[layer].gate, gate) } else { Density::default() },
            down: Density { nonzero: count(down, |&code: &i8| code != 0), all: down.len() as u64 },
        }
    };
    (0..layers.len()).map(density).collect()
}

fn count<T>(elements: &[T], is_counted: impl Fn(&T) -> bool) -> u64 {
    elements.iter().filter(|element| is_counted(element)).count() as u64
}

/// Gates with a positive sum: scales are positive, and these models have no biases there.
fn open(model: &Model, gate: &LinearLayout, codes: &[u8]) -> Density {
    assert!(gate.bias.is_none());
    let matrix: &TernaryMatrix = match &model.weights().data[gate.weight.0 as usize] {
        WeightData::Ternary(matrix) => matrix,
        other => panic!("a ternary matrix, not {}", other.spec()),
    };
    let mut found = Density::default();
    for row in bytemuck::cast_slice::<u8, i8>(codes).chunks_exact(matrix.columns()) {
        let mut padded = row.to_vec();
        padded.resize(padded_columns(row.len()), 0);
        let outputs: Vec<_> = (0..matrix.rows()).collect();
        found.nonzero += count(&outputs, |&output| ternary_dot(matrix.row(output), &padded) > 0);
        found.all += outputs.len() as u64;
    }
    found
}

/// What a profile counts when the tokens come in chunks.
fn counted(model: Model, device: Device, chunk: usize) -> Vec<LayerDensity> {
    let tokens = tokens(&model);
    let options = DeviceOptions { device, threads: Some(2), ..DeviceOptions::default() };
    let mut model = model.load_onto(options).expect("the device is here").model;
    model.set_profiled(true);
    let mut cache = PagedCache::new(model.block_positions(), 64);
    let (sequence, mut all, mut outputs) = (cache.create(), Profile::default(), Outputs::default());
    for (index, chunk_tokens) in tokens.chunks(chunk).enumerate() {
        cache.extend(sequence, chunk_tokens.len()).expect("room");
        let mut batch = Batch::default();
        batch.push_run(sequence, index * chunk, chunk_tokens, RequestedOutput::Nothing);
        let step = model.forward(&batch, &mut cache, &mut outputs);
        pollster::block_on(step).expect("a step");
        all.add(model.profile().expect("a level counts"));
    }
    all.layers
}

#[test]
fn gates_and_codes_are_those_of_the_definitions() {
    for path in models() {
        let open = || Model::open(&path).expect("a model");
        let expected = expected(&open());
        let relu = open().config().activation == Activation::ReluSquared;
        assert!(
            expected.iter().all(|layer| (layer.gates.all > 0) == relu && layer.down.nonzero > 0)
        );
        for device in devices().into_iter().filter(|device| *device != Device::Scalar) {
            for chunk in [1, 7, ROWS] {
                let found = counted(open(), device.clone(), chunk);
                assert_eq!(found, expected, "{} on {device} by {chunk}", path.display());
            }
        }
    }
}

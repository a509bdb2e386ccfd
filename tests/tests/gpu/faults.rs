//! Failures of a GPU: each is an error that says what, and no panic.

use setun::{
    Model,
    forward::{
        Batch, Model as Forward, ModelError, Outputs, PagedCache, RequestedOutput, Transformer,
        TransformerOptions,
    },
    ops::OpsError,
};
use setun_gpu::{Executor, GpuBackend, Recorder, Wgpu};
use setun_tests::{golden::Golden, run::bits};

use super::device;

const MODEL: &str = "bitnet-h64/packed";

fn transformer<E: Executor>(executor: E) -> Result<Transformer<GpuBackend<E>>, ModelError> {
    let model = Model::open(Golden::read(MODEL).folder).expect("a golden model");
    let (config, weights) = (model.config().clone(), model.weights().clone());
    let backend = GpuBackend::new(executor).expect("memory");
    Transformer::new(backend, config, weights, TransformerOptions::default())
}

#[test]
fn a_device_that_goes_away_is_an_error() {
    let device = device();
    let handle = device.handle();
    let mut model = transformer(device).expect("a model");
    let mut cache = PagedCache::new(model.block_positions(), 64);
    let sequence = cache.create();
    let mut step = |model: &mut dyn Forward, position| {
        let mut batch = Batch::default();
        cache.extend(sequence, 1).expect("room");
        batch.push_run(sequence, position, &[1], RequestedOutput::Logits);
        pollster::block_on(model.forward(&batch, &mut cache, &mut Outputs::default()))
    };
    step(&mut model, 0).expect("a step");
    handle.destroy();
    for position in 1..3 {
        let error = step(&mut model, position).expect_err("the device is gone");
        assert!(matches!(error, ModelError::Ops(OpsError::DeviceLost { .. })), "{error}");
    }
}

#[test]
fn memory_that_runs_out_is_an_error() {
    let all = {
        let model = transformer(Recorder::new(device())).expect("a model");
        assert_eq!(model.vocab_size(), model.config().vocab_size);
        model.backend().executor().taken
    };
    for share in [0.1, 0.5, 0.9] {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of some kilobytes"
        )]
        let limit = (all as f64 * share) as u64;
        let error = transformer(Recorder::new(device()).with_limit(limit))
            .err()
            .expect("too little memory");
        assert!(matches!(error, ModelError::Ops(OpsError::OutOfMemory { .. })), "{error}");
    }
}

/// A step that is too large fails; smaller ones go on, to the bit as before.
#[test]
fn a_step_that_finds_no_memory_harms_no_other() {
    let mut model = transformer(Recorder::new(device())).expect("a model");
    let mut cache = PagedCache::new(model.block_positions(), 64);
    let mut run = |model: &mut Transformer<GpuBackend<Recorder<Wgpu>>>, tokens: &[u32]| {
        let sequence = cache.create();
        let mut batch = Batch::default();
        cache.extend(sequence, tokens.len()).expect("room");
        batch.push_run(sequence, 0, tokens, RequestedOutput::Logits);
        let mut outputs = Outputs::default();
        let result = pollster::block_on(model.forward(&batch, &mut cache, &mut outputs));
        cache.remove(sequence);
        result.map(|()| bits(&[outputs.logits().to_vec()]))
    };
    let few = [1, 2, 3];
    let expected = run(&mut model, &few).expect("a step");
    for more in 0..4 {
        let taken = model.backend().executor().taken;
        model.backend_mut().executor_mut().limit = taken + more * 3000;
        let error = run(&mut model, &[1; 200]).expect_err("too little memory");
        assert!(matches!(error, ModelError::Ops(OpsError::OutOfMemory { .. })), "{error}");
        model.backend_mut().executor_mut().limit = u64::MAX;
        let found = run(&mut model, &few).expect("a step as before");
        assert!(found == expected, "after {more}");
    }
}

#[test]
fn a_buffer_beyond_the_devices_limit_is_an_error_and_the_device_stays() {
    let mut device = device();
    let error = device.create_buffer("too much", device.max_buffer_bytes() + 4).expect_err("much");
    assert!(matches!(error, OpsError::BeyondLimit { what: "too much", .. }), "{error}");
    assert!(error.to_string().contains(&device.max_buffer_bytes().to_string()), "{error}");
    device.create_buffer("little", 64).expect("memory");
}

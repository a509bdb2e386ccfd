//! A CUDA device that is lost: an error and no panic. In a process of its own, as the driver gives a lost
//! device to no other owner in the same one. Nothing where there is no device.

use setun::{
    forward::{
        Batch, Model as Forward, ModelError, Outputs, PagedCache, RequestedOutput,
        TransformerOptions,
    },
    ops::OpsError,
};
use setun_gpu::{Cuda, Executor, GpuBackend};
use setun_tests::{golden::Golden, run::transformer};

const MODEL: &str = "bitnet-h64/packed";

#[test]
fn a_device_that_is_lost_is_an_error() {
    let device = match Cuda::new(0) {
        Ok(device) => device,
        Err(error) => {
            let is_expected = std::env::var_os("SETUN_EXPECT_CUDA").is_some();
            assert!(!is_expected, "{error}");
            eprintln!("skipped: {error}");
            return;
        }
    };
    let backend = GpuBackend::new(device).expect("memory");
    let folder = Golden::read(MODEL).folder;
    let mut model = transformer(folder, backend, TransformerOptions::default());
    let mut cache = PagedCache::new(model.block_positions(), 64);
    let sequence = cache.create();
    let mut step = |model: &mut dyn Forward, position| {
        let mut batch = Batch::default();
        cache.extend(sequence, 1).expect("room");
        batch.push_run(sequence, position, &[1], RequestedOutput::Logits);
        pollster::block_on(model.forward(&batch, &mut cache, &mut Outputs::default()))
    };
    step(&mut model, 0).expect("a step");
    model.backend_mut().executor_mut().lose().expect("it was there");
    for position in 1..3 {
        let error = step(&mut model, position).expect_err("the device is gone");
        assert!(matches!(error, ModelError::Ops(OpsError::DeviceLost { .. })), "{error}");
        eprintln!("step {position}: {error}");
    }
    drop(model);
    // Whether the driver gives it back is the driver's own; an error has to say so.
    match Cuda::new(0) {
        Ok(mut device) => match device.create_buffer("what is new", 64) {
            Ok(_) => eprintln!("opened again, and it works"),
            Err(error) => eprintln!("opened again, and it does not work: {error}"),
        },
        Err(error) => {
            assert!(!error.to_string().is_empty());
            eprintln!("not opened again: {error}");
        }
    }
}

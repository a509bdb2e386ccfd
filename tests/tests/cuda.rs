//! Whole models on a CUDA device: the CPU's bits, for any cut of a prompt and any batch mates; its
//! memory when they are gone. Nothing where there is no device.
//!
//! One test runs at a time: one counts what is free.

use std::sync::{Mutex, MutexGuard, PoisonError};

use setun::{
    CacheType, Device, DeviceOptions, Model, forward::TransformerOptions, ops::CacheElement,
};
use setun_gpu::{Cuda, Executor, GpuBackend};
use setun_tests::{
    golden::{Golden, MODELS},
    run::{Runner, bits, transformer},
};

const CACHES: [(CacheType, CacheElement); 3] = [
    (CacheType::F32, CacheElement::F32),
    (CacheType::F16, CacheElement::F16),
    (CacheType::Int8, CacheElement::Int8),
];

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// None, with a line that says why, where there is no device and none is expected.
fn device() -> Option<Cuda> {
    match Cuda::new(0) {
        Ok(device) => Some(device),
        Err(error) => {
            let is_expected = std::env::var_os("SETUN_EXPECT_CUDA").is_some();
            assert!(!is_expected, "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn on_device(model: &str, cache_element: CacheElement) -> Option<Runner> {
    let device = device()?;
    let backend = GpuBackend::new(device).expect("memory");
    let options = TransformerOptions { cache_element, ..TransformerOptions::default() };
    Some(Runner::over(Box::new(transformer(Golden::read(model).folder, backend, options))))
}

fn on_cpu(model: &str, cache: CacheType) -> Runner {
    let options = DeviceOptions { device: Device::Cpu, cache, ..DeviceOptions::default() };
    Runner::new(Model::open(Golden::read(model).folder).expect("a golden model"), options)
}

#[test]
fn logits_are_those_of_the_cpu() {
    let _alone = alone();
    for model in MODELS {
        let golden = Golden::read(model);
        let texts: Vec<Vec<u32>> = ["p130", "p7"].map(|p| golden.ids(&format!("{p}.ids"))).to_vec();
        for (cache, element) in CACHES {
            let Some(mut device) = on_device(model, element) else { return };
            let mut cpu = on_cpu(model, cache);
            let expected = texts.iter().map(|text| bits(&cpu.logits(text, text.len())));
            let expected: Vec<_> = expected.collect();
            for chunk in [1, 2, 5, 64, 130] {
                let found = bits(&device.logits(&texts[0], chunk));
                assert!(found == expected[0], "{model}, {element:?}, chunks of {chunk}");
            }
            let sequences = [device.sequence(), device.sequence()];
            let runs = [(sequences[0], texts[0].as_slice()), (sequences[1], texts[1].as_slice())];
            let together = bits(&device.step(&runs));
            assert!(together == expected.concat(), "{model}, {element:?}, two texts at once");
        }
    }
}

/// What the driver keeps for itself comes in pieces of 2 MiB.
const SLACK: u64 = 16 << 20;

#[test]
fn memory_is_given_back() {
    let _alone = alone();
    let Some(mut watch) = device() else { return };
    // The first model makes the driver load what it keeps.
    let run = || {
        let mut model = on_device(MODELS[0], CacheElement::F32).expect("the device is here");
        assert_eq!(model.greedy(&[1, 2, 3], 4).len(), 4);
    };
    run();
    let before = watch.free_bytes().expect("a count");
    for round in 0..3 {
        run();
        let after = watch.free_bytes().expect("a count");
        assert!(before.abs_diff(after) <= SLACK, "round {round}: {before} before, {after} after");
    }
    let bytes = 1 << 28;
    let buffer = watch.create_buffer("much", bytes).expect("memory");
    let taken = before.saturating_sub(watch.free_bytes().expect("a count"));
    assert!(taken >= bytes - SLACK, "{taken} of {bytes} bytes");
    drop(buffer);
    let after = watch.free_bytes().expect("a count");
    assert!(before.abs_diff(after) <= SLACK, "{before} before, {after} after");
}

//! Every operation on a CUDA device against its definition; nothing where there is none.

use setun_gpu::{Cuda, Fusion, GpuBackend, GpuError};
use setun_ops::{Backend, comparison::block_on};
use setun_parity::SUBJECTS;

/// Cases of a subject.
const SEEDS: u64 = 40;

/// None, with a line that says why, where there is no device and none is expected.
fn device() -> Option<Cuda> {
    match Cuda::new(0) {
        Ok(device) => {
            eprintln!("{}", device.adapter());
            Some(device)
        }
        Err(error) => {
            let is_expected = std::env::var_os("SETUN_EXPECT_CUDA").is_some();
            assert!(!is_expected, "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn disagreements(is_exact: bool) -> Vec<String> {
    let mut failures = vec![];
    let Some(mut device) = device() else { return failures };
    for subject in SUBJECTS {
        let seeds = if subject == "long_attention" { 2 } else { SEEDS };
        for seed in 0..seeds {
            let case = setun_parity::case(subject, seed).expect("a subject");
            // Steps share memory, and rows that a step has not are compared too.
            let mut backend = GpuBackend::new(device).expect("memory").with_fusion(Fusion::Apart);
            let compared = if is_exact {
                block_on(case.compare(&mut backend))
            } else {
                block_on(case.compare_by_op(&mut backend))
            };
            if let Err(error) = compared {
                failures.push(format!("{subject}, seed {seed}: {error}"));
            }
            device = backend.into_executor();
        }
    }
    failures
}

#[test]
fn operations_agree_with_their_definitions() {
    let failures = disagreements(false);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// The kernels have the definitions' own order of sums.
#[test]
fn plans_give_the_bits_of_the_definitions() {
    let failures = disagreements(true);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Steps that follow each other choose what they choose one by one.
#[test]
fn multi_step_equals_single_steps() {
    let Some(device) = device() else { return };
    let mut backend = GpuBackend::new(device).expect("memory");
    for seed in 0..SEEDS {
        for steps in [2, backend.max_multi_steps()] {
            let case = setun_parity::multi_step(seed, steps);
            block_on(case.compare_multi_step(&mut backend, steps))
                .unwrap_or_else(|error| panic!("seed {seed}, {steps} steps: {error}"));
        }
    }
}

/// Where there is no device, that is an error and no more.
#[test]
fn a_device_that_is_not_there_is_an_error() {
    let Err(error) = Cuda::new(1000) else { panic!("no machine has this many") };
    assert!(matches!(error, GpuError::NoAdapter { wanted: "cuda", .. }), "{error}");
}

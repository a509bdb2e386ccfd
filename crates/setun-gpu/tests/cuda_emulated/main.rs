//! The CUDA kernels' own sources, played by the host, against the definitions.
#![expect(unsafe_code, reason = "compiled kernels are loaded and handed memory")]

mod executor;

use executor::Emulated;
use setun_gpu::{
    Executor, Fusion, GpuBackend,
    executor::Bound,
    kernel::{Input, Kernel, PeakProducts, Product},
    launch::{Launch, When},
    peak,
};
use setun_ops::{
    Backend,
    comparison::{Case, block_on},
};
use setun_parity::SUBJECTS;

/// Cases of a subject; `SETUN_SEEDS` may request more.
fn seeds(subject: &str) -> u64 {
    let asked = std::env::var("SETUN_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    if subject == "long_attention" { 1 } else { asked.unwrap_or(6) }
}

/// Every operation from the same bits.
#[test]
fn operations_agree_with_their_definitions() {
    let device = Emulated::with_few_threads();
    let mut backend = GpuBackend::new(device).expect("memory").with_fusion(Fusion::Apart);
    let mut failures = vec![];
    for subject in SUBJECTS {
        for seed in 0..seeds(subject) {
            let case = setun_parity::case(subject, seed).expect("a subject");
            if let Err(error) = block_on(case.compare_by_op(&mut backend)) {
                failures.push(format!("{subject}, seed {seed}: {error}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// These kernels have the definitions' own order of sums, so whole plans give the same bits.
#[test]
fn plans_give_the_bits_of_the_definitions() {
    let mut device = Emulated::default();
    let mut failures = vec![];
    for subject in SUBJECTS {
        for seed in 0..seeds(subject) {
            let case = setun_parity::case(subject, seed).expect("a subject");
            // Steps share memory, and rows that a step has not are compared too.
            let mut backend = GpuBackend::new(device).expect("memory").with_fusion(Fusion::Apart);
            if let Err(error) = block_on(case.compare(&mut backend)) {
                failures.push(format!("{subject}, seed {seed}: {error}"));
            }
            device = backend.into_executor();
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// A product of many rows without groups has a kernel of its own, which gives the bits of the definition.
#[test]
fn many_rows_go_in_tiles() {
    let mut backend = GpuBackend::new(Emulated::default()).expect("memory");
    let is_tiled = |launch: &Launch| {
        matches!(launch.kernel, Kernel::TernaryMatmul(Product { input: Input::Tiles, .. }))
    };
    let mut cases =
        (0..100).map(|seed| (seed, setun_parity::case("ternary_matmul", seed).expect("a subject")));
    let tiled = cases.find(|(_, case)| {
        let weights = case.upload(&mut backend).expect("memory");
        let step = backend.prepare(&case.plan, &weights).expect("a plan");
        step.launches().iter().any(is_tiled)
    });
    let (seed, case) = tiled.expect("a case with this many rows");
    if let Err(error) = block_on(case.compare(&mut backend)) {
        panic!("seed {seed}: {error}");
    }
}

/// What shares a launch gives the bits that it gives apart.
#[test]
fn launches_may_be_shared() {
    let backend = || GpuBackend::new(Emulated::default()).expect("memory");
    let mut saved = 0;
    for subject in ["ternary_matmul", "gate", "model"] {
        for seed in 0..3 * seeds(subject) {
            let case = setun_parity::case(subject, seed).expect("a subject");
            if case.plan.rows() > 1 {
                continue;
            }
            let (mut shared, mut apart) = (backend(), backend().with_fusion(Fusion::Apart));
            saved += launches(&mut apart, &case) - launches(&mut shared, &case);
            let found = [&mut shared, &mut apart]
                .map(|backend| block_on(case.outputs(backend, case.steps.len())).expect("steps"));
            assert!(found[0] == found[1], "{subject}, seed {seed}");
        }
    }
    assert!(saved > 0, "no case shares a launch");
}

/// Steps that follow each other choose what they choose one by one.
#[test]
fn multi_step_equals_single_steps() {
    let mut backend = GpuBackend::new(Emulated::default()).expect("memory");
    for seed in 0..seeds("model") {
        let steps = 2 + usize::try_from(seed % 4).expect("a small number");
        let case = setun_parity::multi_step(seed, steps);
        block_on(case.compare_multi_step(&mut backend, steps))
            .unwrap_or_else(|error| panic!("seed {seed}, {steps} steps: {error}"));
    }
}

/// What a device's peak is measured of is computed, and not left out.
#[test]
fn sums_of_the_peak_are_those_of_its_definition() {
    let mut device = Emulated::default();
    for products in [PeakProducts::Dots, PeakProducts::Tiles] {
        for rounds in [1, 7] {
            let bytes = u64::from(2 * 4 * peak::LANES);
            let buffers = ["no step's inputs", "sums"]
                .map(|what| device.create_buffer(what, bytes).expect("memory"));
            let sums = buffers[1].clone();
            let launch = Bound {
                kernel: Kernel::Peak(products),
                shape: &[rounds, peak::CODES, peak::ACTIVATIONS],
                buffers: buffers.to_vec(),
                grid: [2, 1, 1],
                when: When::Always,
            };
            let list = device.record(&[launch]).expect("a list");
            device.play(&list, 1).expect("it ran");
            let mut found = vec![0; 2 * peak::LANES as usize];
            let bytes = bytemuck::cast_slice_mut(&mut found);
            block_on(device.read(&sums, 0, bytes)).expect("sums");
            for (lane, found) in (0..).zip(found) {
                let expected = peak::sum(products, lane % peak::LANES, rounds);
                assert_eq!(found, expected, "{products:?}, {rounds} rounds, lane {lane}");
            }
        }
    }
}

fn launches(backend: &mut GpuBackend<Emulated>, case: &Case) -> usize {
    let weights = case.upload(backend).expect("memory");
    backend.prepare(&case.plan, &weights).expect("a plan").launches().len()
}

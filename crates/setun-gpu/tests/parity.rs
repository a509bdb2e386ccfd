//! Every operation on the system's Vulkan device against its definition.
#![expect(clippy::print_stdout, reason = "says which device it was, and how far it came")]

use setun_gpu::{
    Adapter, Api, Executor, Fusion, GpuBackend, Recorder, Wgpu,
    kernel::{Reduction, Table},
};
use setun_ops::{
    Backend, BufferId, WeightData, WeightId,
    parity::{Case, SUBJECTS, block_on, check_inputs},
    plan::{BufferKind, RowSet},
};

/// Cases of a subject.
const SEEDS: u64 = 40;

#[test]
fn operations_agree_with_their_definitions() {
    let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    println!("{}", device.adapter());
    let mut backend = GpuBackend::new(device).expect("memory").with_fusion(Fusion::Apart);
    let mut failures = vec![];
    for subject in SUBJECTS {
        let seeds = if subject == "long_attention" { 2 } else { SEEDS };
        for seed in 0..seeds {
            let case = Case::new(subject, seed).expect("a subject");
            if let Err(error) = block_on(case.compare_by_op(&mut backend)) {
                failures.push(format!("{subject}, seed {seed}: {error}"));
            }
        }
        println!("{subject}: {} failures so far", failures.len());
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// What shares a launch gives the bits that it gives apart.
#[test]
fn launches_may_be_shared() {
    let backend = || {
        let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
        GpuBackend::new(device).expect("memory")
    };
    let (mut shared, mut apart) = (backend(), backend().with_fusion(Fusion::Apart));
    let mut saved = 0;
    for subject in ["ternary_matmul", "gate", "model"] {
        for seed in 0..SEEDS {
            let case = Case::new(subject, seed).expect("a subject");
            if case.plan.rows() > 1 {
                continue;
            }
            let a = outputs(&mut shared, &case);
            let b = outputs(&mut apart, &case);
            saved += b.launches - a.launches;
            assert!(a.buffers == b.buffers, "{subject}, seed {seed}");
        }
    }
    assert!(saved > 0, "no case shares a launch");
}

/// What a plan needs is known without its weights.
#[test]
fn kernels_are_compiled_ahead() {
    let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    let mut backend = GpuBackend::new(Recorder::new(device)).expect("memory");
    for subject in ["model", "head", "gate", "long_attention"] {
        for seed in 0..8 {
            let case = Case::new(subject, seed).expect("a subject");
            let table = |id: WeightId| match &case.weights[id.0 as usize] {
                WeightData::Dense(matrix) => Table::of(matrix),
                _ => Table::F32,
            };
            backend.compile_ahead(&case.plan, table).expect("kernels");
            let ahead = backend.executor().asked.kernels;
            outputs(&mut backend, &case);
            assert_eq!(backend.executor().asked.kernels, ahead, "{subject}, seed {seed}");
        }
    }
    assert!(backend.executor().asked.kernels > 20);
}

/// Totals and what is greatest are the same, to the bit, by subgroups and through memory.
#[test]
fn subgroups_change_nothing() {
    let find = || block_on(Adapter::find(Api::Vulkan)).expect("a Vulkan device");
    let reduction = find().language().reduction;
    if reduction == Reduction::Shared {
        println!("skipped: {} has no subgroups of eight", find().name());
        return;
    }
    let backend = |adapter: Adapter| {
        GpuBackend::new(block_on(adapter.open()).expect("a device")).expect("memory")
    };
    let (mut subgroups, mut shared) = (backend(find()), backend(find().without_subgroups()));
    for subject in SUBJECTS {
        let seeds = if subject == "long_attention" { 2 } else { SEEDS };
        for seed in 0..seeds {
            let case = Case::new(subject, seed).expect("a subject");
            for fusion in [Fusion::Shared, Fusion::Apart] {
                subgroups = subgroups.with_fusion(fusion);
                shared = shared.with_fusion(fusion);
                let found = outputs(&mut subgroups, &case).buffers;
                let expected = outputs(&mut shared, &case).buffers;
                assert!(found == expected, "{subject}, seed {seed}, {fusion:?}");
            }
        }
    }
}

/// An interface of another system is built, and says that it is not here.
#[cfg(all(target_os = "linux", feature = "metal", feature = "dx12"))]
#[test]
fn interfaces_of_other_systems_are_errors() {
    for api in [Api::Metal, Api::Dx12] {
        let error = block_on(Adapter::find(api)).expect_err("Linux has neither");
        assert!(error.to_string().contains("this system does not have it"), "{error}");
    }
}

#[test]
fn inputs_are_those_that_the_host_writes() {
    let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    let mut backend = GpuBackend::new(device).expect("memory");
    assert_eq!(block_on(check_inputs(&mut backend)), Ok(()));
}

struct Outputs {
    launches: usize,
    /// The step's rows of all buffers but codes, after each step.
    buffers: Vec<Vec<u8>>,
}

fn outputs<E: Executor>(backend: &mut GpuBackend<E>, case: &Case) -> Outputs {
    let weights = case.upload(backend).expect("memory");
    let mut step = backend.prepare(&case.plan, &weights).expect("a plan");
    let mut cache = backend.create_cache(case.plan.cache(), case.blocks).expect("memory");
    let mut buffers = vec![];
    for inputs in &case.steps {
        backend.run(&mut step, &mut cache, inputs).expect("a step");
        for (index, spec) in case.plan.buffers().iter().enumerate() {
            if spec.kind == BufferKind::Quantized {
                continue;
            }
            let id = BufferId(u32::try_from(index).expect("few buffers"));
            let rows = match spec.rows {
                RowSet::Batch => inputs.rows(),
                RowSet::Wanted => inputs.wanted.len(),
            };
            let mut bytes = vec![0; rows * spec.width * spec.kind.element_bytes()];
            block_on(backend.read(&step, id, 0..rows, &mut bytes)).expect("a buffer");
            if spec.kind == BufferKind::F32 {
                bytes.chunks_exact_mut(4).for_each(same_nan);
            }
            buffers.push(bytes);
        }
    }
    Outputs { launches: step.launches().len(), buffers }
}

/// What is not a number has no bits of its own.
fn same_nan(float: &mut [u8]) {
    let bits = [float[0], float[1], float[2], float[3]];
    if f32::from_le_bytes(bits).is_nan() {
        float.copy_from_slice(&f32::NAN.to_le_bytes());
    }
}

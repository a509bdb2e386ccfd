//! Every operation on the system's Vulkan device against its definition.
#![expect(clippy::print_stdout, reason = "says which device it was, and how far it came")]

use setun_gpu::{
    Adapter, Api, Executor, Fusion, GpuBackend, Recorder, Wgpu,
    kernel::{Reduction, Table},
};
use setun_ops::{
    Backend, BatchInputs, BlockId, CacheSpec, DenseMatrix, Op, StateId, Usage, WeightData,
    WeightId,
    argmax::ArgmaxRequest,
    comparison::{Case, OpByOp, Output, block_on},
    dense::DenseValues,
    op::Norm,
    plan::{BufferKind, PlanBuilder, RowSet},
    random::Random,
};
use setun_parity::{HYBRID_SUBJECTS, SUBJECTS, check_inputs};

/// Cases of a subject.
const SEEDS: u64 = 12;

#[test]
fn operations_agree_with_their_definitions() {
    let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    println!("{}", device.adapter());
    let mut backend = GpuBackend::new(device).expect("memory").with_fusion(Fusion::Apart);
    let mut failures = vec![];
    for subject in SUBJECTS.into_iter().chain(HYBRID_SUBJECTS) {
        let seeds = if subject == "long_attention" { 2 } else { SEEDS };
        for seed in 0..seeds {
            let case = setun_parity::case(subject, seed).expect("a subject");
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
            let case = setun_parity::case(subject, seed).expect("a subject");
            if case.plan.rows() > 1 {
                continue;
            }
            let equal = outputs(&mut shared, &case) == outputs(&mut apart, &case);
            assert!(equal, "{subject}, seed {seed}");
            saved += launches(&mut apart, &case) - launches(&mut shared, &case);
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
            let case = setun_parity::case(subject, seed).expect("a subject");
            let table = |id: WeightId| match &case.weights[id.0 as usize] {
                WeightData::Dense(matrix) => Table::of(matrix),
                _ => Table::F32,
            };
            backend.precompile(&case.plan, table).expect("kernels");
            let ahead = backend.executor().calls.kernels;
            outputs(&mut backend, &case);
            assert_eq!(backend.executor().calls.kernels, ahead, "{subject}, seed {seed}");
        }
    }
    assert!(backend.executor().calls.kernels > 20);
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
    for subject in SUBJECTS.into_iter().chain(HYBRID_SUBJECTS) {
        let seeds = if subject == "long_attention" { 2 } else { SEEDS };
        for seed in 0..seeds {
            let case = setun_parity::case(subject, seed).expect("a subject");
            for fusion in [Fusion::Shared, Fusion::Apart] {
                subgroups = subgroups.with_fusion(fusion);
                shared = shared.with_fusion(fusion);
                let found = outputs(&mut subgroups, &case);
                let expected = outputs(&mut shared, &case);
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

/// Steps that follow each other on the device choose what they choose one by one.
#[test]
fn multi_step_equals_single_steps() {
    let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    let mut backend = GpuBackend::new(device).expect("memory");
    let most = backend.max_multi_steps();
    for seed in 0..SEEDS {
        for steps in [2, most] {
            let case = setun_parity::multi_step(seed, steps);
            block_on(case.compare_multi_step(&mut backend, steps))
                .unwrap_or_else(|error| panic!("seed {seed}, {steps} steps: {error}"));
        }
    }
}

/// A penalty divides as the host does, to the last bit: beside the quotient, and beside the next
/// numbers above and below it, the choice shows which is larger.
#[test]
fn penalties_divide_exactly() {
    const ROWS: usize = 400;
    let mut random = Random::new(1);
    let mut draft = |beside: fn(f32) -> f32| {
        let penalty = random.pick(&[1.1, 1.3, 0.7, 3.0, 1.0 + f32::EPSILON, 1e-3, 1e20]);
        let logit = random.pick(&[1.0, 30.0, 1e-3, 1e10]) * (0.01 + random.unit());
        (penalty, logit, beside(logit / penalty))
    };
    let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    let mut backend = GpuBackend::new(device).expect("memory");
    for (beside, expected) in
        [(f32::next_down as fn(f32) -> f32, 1), (|quotient| quotient, 0), (f32::next_up, 0)]
    {
        for _ in 0..ROWS {
            let (penalty, logit, other) = draft(beside);
            let request = ArgmaxRequest { penalty, touched: vec![1], ..ArgmaxRequest::default() };
            let chosen = argmax_of(&mut backend, vec![other, logit], request);
            assert_eq!(chosen, expected, "{logit} / {penalty} beside {other}");
        }
    }
}

/// The choice from these logits: a table of them, over a hidden row of one 1.
fn argmax_of(backend: &mut GpuBackend<Wgpu>, logits: Vec<f32>, request: ArgmaxRequest) -> u32 {
    let vocab = logits.len();
    let table = DenseMatrix::new(vocab, 1, DenseValues::F32(logits.into())).expect("a table");
    let weights = [WeightData::Dense(table), WeightData::Vector(vec![1.0])];
    let cache = CacheSpec::smallest(1);
    let specs = weights.iter().map(WeightData::spec).collect();
    let mut plan = PlanBuilder::new(1, 1, specs, cache);
    let hidden = plan.buffer(BufferKind::F32, 1, RowSet::Batch);
    let x = plan.buffer(BufferKind::F32, 1, RowSet::Wanted);
    let out = plan.buffer(BufferKind::Tokens, 1, RowSet::Wanted);
    let norm = Norm { gain: WeightId(1), eps: 1e-5 };
    plan.push(Op::Embed { table: WeightId(0), out: hidden });
    plan.push(Op::RmsNorm { x: hidden, norm, out: x });
    plan.push(Op::Argmax { x, table: WeightId(0), room: request.room(1), out });
    let plan = plan.finish().expect("a plan");
    let weights = weights.map(|weight| backend.upload(weight, Usage::General).expect("memory"));
    let mut step = backend.prepare(&plan, &weights).expect("a step");
    let mut cache = backend.create_cache(plan.cache(), 1).expect("memory");
    let inputs = BatchInputs {
        tokens: vec![0],
        positions: vec![0],
        slots: vec![0],
        block_tables: vec![vec![BlockId(0)]],
        wanted: vec![0],
        argmax: vec![request],
        ..BatchInputs::default()
    };
    backend.set(&mut step, x, &1.0f32.to_ne_bytes(), &[]);
    backend.run_op(&mut step, &mut cache, &inputs, 2).expect("a choice");
    let mut token = [0; 4];
    block_on(backend.read(&step, out, 0..1, &mut token)).expect("a token");
    u32::from_ne_bytes(token)
}

/// A device keeps the contents of recurrent states when it grows, shrinks, reads and writes them, as the host does.
#[test]
fn states_are_copied_and_kept() {
    let device = block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device");
    let mut backend = GpuBackend::new(device).expect("memory");
    let case = setun_parity::case("delta_net", 0).expect("a subject");
    let spec = *case.plan.cache();
    let mut cache = backend.create_cache(&spec, 1).expect("memory");
    let states = |count: u32| (0..count).map(StateId).collect::<Vec<_>>();
    let read = |backend: &mut GpuBackend<Wgpu>, cache: &_, count: u32| {
        let mut bytes = vec![7; count as usize * spec.state_bytes()];
        block_on(backend.read_states(cache, &states(count), &mut bytes)).map(|()| bytes)
    };
    assert!(read(&mut backend, &cache, 1).is_err(), "there are none yet");
    backend.grow_states(&mut cache, 2).expect("memory");
    assert!(read(&mut backend, &cache, 2).expect("states").iter().all(|byte| *byte == 0));
    let bytes: Vec<u8> = (0u8..=250).cycle().take(2 * spec.state_bytes()).collect();
    backend.write_states(&mut cache, &states(2), &bytes).expect("states");
    backend.grow_states(&mut cache, 5).expect("memory");
    let grown = read(&mut backend, &cache, 5).expect("states");
    assert!(grown[..bytes.len()] == bytes && grown[bytes.len()..].iter().all(|byte| *byte == 0));
    backend.shrink_states(&mut cache, 1).expect("memory");
    assert!(read(&mut backend, &cache, 2).is_err(), "there is one");
    assert!(read(&mut backend, &cache, 1).expect("a state") == bytes[..spec.state_bytes()]);
    assert!(backend.write_states(&mut cache, &states(1), &bytes).is_err(), "too many bytes");
}

/// What all buffers but codes hold after each step.
fn outputs<E: Executor>(backend: &mut GpuBackend<E>, case: &Case) -> Vec<Output> {
    let mut outputs = block_on(case.outputs(backend, case.steps.len())).expect("steps");
    for output in &mut outputs {
        if case.plan.buffer(output.buffer).kind == BufferKind::F32 {
            output.bytes.chunks_exact_mut(4).for_each(same_nan);
        }
    }
    outputs
}

fn launches<E: Executor>(backend: &mut GpuBackend<E>, case: &Case) -> usize {
    let weights = case.upload(backend).expect("memory");
    backend.prepare(&case.plan, &weights).expect("a plan").launches().len()
}

/// What is not a number has no bits of its own.
fn same_nan(float: &mut [u8]) {
    let bits = [float[0], float[1], float[2], float[3]];
    if f32::from_le_bytes(bits).is_nan() {
        float.copy_from_slice(&f32::NAN.to_le_bytes());
    }
}

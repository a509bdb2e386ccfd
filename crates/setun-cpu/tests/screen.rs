//! The screened head: how many candidates remain, and that it is used at all.

use half::f16;
use setun_cpu::{CpuBackend, CpuOptions, testing::tested_levels};
use setun_ops::{
    Backend, BatchInputs, BlockId, CacheSpec, DenseMatrix, Op, Usage, WeightData, WeightId,
    comparison::{Case, Output, block_on},
    dense::DenseValues,
    noise::Noise,
    op::Norm,
    plan::{BufferKind, PlanBuilder, RowSet},
    random::Random,
    scalar::ScalarBackend,
    ternary::Scales,
    top_logits::{NoisyScores, Ranked, TopLogitsRequest},
};

/// 64-bit ARM mostly is, and large tables take long there.
const EMULATED: bool = cfg!(target_arch = "aarch64");

/// Width of the 2B-4T shape.
const HIDDEN: usize = 2560;
const VOCAB: usize = if EMULATED { 1000 } else { 4000 };
const BEST: usize = 777;

/// About normally distributed, variance 1; sums of many are nearly exactly so.
fn bell(random: &mut Random) -> f32 {
    (0..3).map(|_| 2.0 * random.unit() - 1.0).sum()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A table whose best logit stands at `sigmas` standard deviations, and the hidden row.
fn gaussian(sigmas: f32) -> (Vec<f32>, Vec<f32>) {
    let random = &mut Random::new(7);
    let x: Vec<f32> = (0..HIDDEN).map(|_| bell(random)).collect();
    let mut table: Vec<f32> = (0..VOCAB * HIDDEN).map(|_| bell(random)).collect();
    let square = dot(&x, &x);
    let best = &mut table[BEST * HIDDEN..][..HIDDEN];
    let missing = (sigmas * square.sqrt() - dot(best, &x)) / square;
    best.iter_mut().zip(&x).for_each(|(w, x)| *w += missing * x);
    (table, x)
}

/// A plan of one row, its norm, and the best op.
fn case(sigmas: f32, k: usize, within: Option<f32>) -> Case {
    let (table, x) = gaussian(sigmas);
    case_of(
        x,
        table,
        HIDDEN,
        vec![TopLogitsRequest { k, within, touched: vec![3, 77], ..<_>::default() }],
    )
}

/// A plan of as many rows as there are requests.
fn case_of(x: Vec<f32>, table: Vec<f32>, hidden: usize, top_logits: Vec<TopLogitsRequest>) -> Case {
    let vocab = table.len() / hidden;
    let table = DenseValues::F16(table.into_iter().map(f16::from_f32).collect());
    case_with(x, DenseMatrix::new(vocab, hidden, table).unwrap(), top_logits)
}

fn case_with(x: Vec<f32>, table: DenseMatrix, top_logits: Vec<TopLogitsRequest>) -> Case {
    let (rows, hidden) = (top_logits.len(), table.columns());
    let weights = vec![
        WeightData::Dense(DenseMatrix::new(rows, hidden, DenseValues::F32(x.into())).unwrap()),
        WeightData::Vector(vec![1.0; hidden]),
        WeightData::Dense(table),
    ];
    let cache = CacheSpec::smallest(32);
    let specs = weights.iter().map(WeightData::spec).collect();
    let mut plan = PlanBuilder::new(rows, rows, specs, cache).keep_buffers();
    let x = plan.buffer(BufferKind::F32, hidden, RowSet::Batch);
    plan.push(Op::Embed { table: WeightId(0), out: x });
    let normed = plan.buffer(BufferKind::F32, hidden, RowSet::Wanted);
    plan.push(Op::RmsNorm { x, norm: Norm { gain: WeightId(1), eps: 1e-5 }, out: normed });
    let out = plan.buffer(BufferKind::Ranked, 64, RowSet::Wanted);
    plan.push(Op::TopLogits { x: normed, table: WeightId(2), out });
    let all: Vec<u32> = (0..).take(rows).collect();
    let inputs = BatchInputs {
        tokens: all.clone(),
        positions: all.clone(),
        slots: vec![0; rows],
        block_tables: vec![vec![BlockId(0)]],
        wanted: all,
        top_logits,
        ..BatchInputs::default()
    };
    let usages = vec![Usage::General; weights.len()];
    Case { plan: plan.finish().unwrap(), weights, usages, steps: vec![inputs], blocks: 1 }
}

/// Of each requested row of a case the number of candidates, or none where the head ran in full.
fn candidates(case: &Case, backend: &mut CpuBackend) -> Vec<Option<u32>> {
    let weights = case.upload(backend).unwrap();
    let mut step = backend.prepare(&case.plan, &weights).unwrap();
    assert!(backend.time(&mut step, true));
    let mut cache = backend.create_cache(case.plan.cache(), case.blocks).unwrap();
    let mut candidates = vec![];
    for inputs in &case.steps {
        backend.run(&mut step, &mut cache, inputs).unwrap();
        candidates.extend(backend.times(&step).unwrap().candidates);
    }
    candidates
}

#[test]
fn few_of_a_gaussian_head_are_candidates() {
    // Without a best one that stands out, some more do.
    let deviation = gaussian(4.5).1.iter().map(|x| x * x).sum::<f32>().sqrt();
    let cases = [
        (4.5, 60, Some(0.5 * deviation), 400),
        (4.5, 1, None, 100),
        (7.0, 1, None, 1),
        (4.5, 40, None, 1500),
        (7.0, 60, Some(0.5 * deviation), 1),
    ];
    let count = if EMULATED { 2 } else { cases.len() };
    for (sigmas, k, within, most) in cases.into_iter().take(count) {
        let case = case(sigmas, k, within);
        let expected = block_on(case.expected()).unwrap();
        for threads in [1, 2] {
            let options = CpuOptions { level: None, threads: Some(threads) };
            let Ok(mut backend) = CpuBackend::new(options) else { continue };
            block_on(case.compare_with(&expected, &mut backend)).unwrap();
            let [Some(found)] = *candidates(&case, &mut backend) else { panic!("not screened") };
            let found = usize::try_from(found).unwrap();
            let least = if within.is_some() { 1 } else { k };
            assert!((least..=most).contains(&found), "{sigmas} σ, k {k}: {found} candidates");
        }
    }
}

/// Of a draw as many are left as the bounds are wide against the temperature.
#[test]
fn few_of_a_gaussian_head_can_be_drawn() {
    let (table, x) = gaussian(4.5);
    let deviation = x.iter().map(|x| x * x).sum::<f32>().sqrt();
    let Ok(mut backend) = CpuBackend::new(CpuOptions { level: None, threads: Some(2) }) else {
        return;
    };
    // Temperatures in deviations of the logits: as in a text, noise alone decides, and nearly greedy.
    let cases = [(1.0, 1, 300), (1e9, 7, 7), (0.02, 1, 100), (1e9, 1, 1)];
    let count = if EMULATED { 2 } else { cases.len() };
    for (temperature, k, most) in cases.into_iter().take(count) {
        let request = |key| TopLogitsRequest {
            k,
            noise: Some(NoisyScores {
                noise: Noise::new(key),
                temperature: temperature * deviation,
            }),
            touched: vec![3, 77],
            ..<_>::default()
        };
        let rows = if EMULATED { 3 } else { 8 };
        let requests: Vec<_> = (0..).take(rows).map(request).collect();
        let case = case_of(x.repeat(rows), table.clone(), HIDDEN, requests);
        block_on(case.compare(&mut backend)).unwrap();
        for found in candidates(&case, &mut backend) {
            let found = usize::try_from(found.expect("it is screened")).unwrap();
            assert!((k..=most).contains(&found), "{temperature} σ, k {k}: {found} candidates");
        }
    }
}

/// The bounds of sums in the rows of a case.
fn sums<B: Backend>(case: &Case, backend: &mut B) -> Vec<f32> {
    let outputs = block_on(case.outputs(backend, 1)).unwrap();
    let is_ranked = |output: &&Output| case.plan.buffer(output.buffer).kind == BufferKind::Ranked;
    let ranked = outputs.iter().filter(is_ranked).flat_map(|output| {
        let (entries, _) = output.bytes.as_chunks::<{ size_of::<Ranked>() }>();
        entries.iter().map(|bytes| bytemuck::pod_read_unaligned::<Ranked>(bytes))
    });
    ranked.filter(|entry| entry.token == Ranked::SUM).map(|entry| entry.logit).collect()
}

/// The bound of a sum of weights is near to it where all logits are known, and where those that are
/// known weigh the most. In between it depends on the screen.
#[test]
fn sums_of_weights_are_bounded() {
    let (table, x) = gaussian(7.0);
    let deviation = x.iter().map(|x| x * x).sum::<f32>().sqrt();
    let request = |temperature: f32| TopLogitsRequest {
        k: 1,
        noise: Some(NoisyScores { noise: Noise::new(11), temperature }),
        top: 32,
        sum: true,
        touched: vec![3, 77],
        ..<_>::default()
    };
    // Temperatures in deviations of the logits, and how much higher the bound may be.
    let mut cases = vec![(1.0, 2.0), (0.5, 1.5), (0.1, 1.08), (1e-3, 1.08), (1e9, 1.08)];
    cases.truncate(if EMULATED { 2 } else { 5 });
    let requests = cases.iter().map(|(temperature, _)| request(temperature * deviation)).collect();
    let gaussian = case_of(x.repeat(cases.len()), table, HIDDEN, requests);
    let equal = case_of(vec![0.5; 64], vec![1.0; 64 * 5000], 64, vec![request(1e-3)]);
    for threads in [1, 2] {
        let options = CpuOptions { level: None, threads: Some(threads) };
        let Ok(mut backend) = CpuBackend::new(options) else { continue };
        for (case, most) in
            [(&gaussian, cases.iter().map(|(_, most)| *most).collect()), (&equal, vec![1.001])]
        {
            block_on(case.compare(&mut backend)).unwrap();
            let exact = sums(case, &mut ScalarBackend);
            let found = sums(case, &mut backend);
            assert_eq!((found.len(), exact.len()), (most.len(), most.len()));
            for ((found, exact), most) in found.iter().zip(exact).zip(most) {
                assert!((exact..=most * exact).contains(found), "{found} of {exact}");
            }
        }
        assert!(candidates(&gaussian, &mut backend).iter().all(Option::is_some));
        assert_eq!(candidates(&equal, &mut backend), [None], "in full");
    }
}

/// A ternary table with scales of some kind, and hidden rows.
fn ternary(random: &mut Random, rows: usize) -> (Vec<f32>, DenseMatrix) {
    const COLUMNS: usize = 300;
    let vocab = if EMULATED { 1000 } else { 10_000 };
    let scale = |random: &mut Random| 0.02 * (0.5 + random.unit());
    let scales = match random.below(4) {
        0 => Scales::Tensor(0.02),
        1 => Scales::Rows((0..vocab).map(|_| scale(random)).collect()),
        kind => {
            let columns = [32, 64, 128, 256][kind + random.below(2) - 2];
            let count = vocab * COLUMNS.div_ceil(columns);
            Scales::ColumnGroups { columns, values: (0..count).map(|_| scale(random)).collect() }
        }
    };
    let matrix = random.ternary_with(vocab, COLUMNS, scales);
    let x = (0..rows * COLUMNS).map(|_| bell(random)).collect();
    (x, DenseMatrix::new(vocab, COLUMNS, DenseValues::Ternary(matrix)).unwrap())
}

/// Requests of all kinds for the rows of a step.
fn mixed(random: &mut Random, rows: usize, vocab: usize) -> Vec<TopLogitsRequest> {
    let request = |_| {
        let temperature = random.pick(&[1e-3, 0.05, 0.3, 5.0]);
        let noise = random
            .chance(0.6)
            .then(|| NoisyScores { noise: Noise::new(u64::from(random.u16())), temperature });
        let within = (noise.is_none() && random.chance(0.5)).then(|| random.unit());
        let ids = (0..random.below(4)).map(|at| at * vocab / 7);
        let touched = ids.map(|id| u32::try_from(id).unwrap()).collect();
        TopLogitsRequest { k: random.between(1, 40), within, noise, touched, ..<_>::default() }
    };
    (0..rows).map(request).collect()
}

/// A ternary table is its own screen: one row and sixteen, whatever is requested.
#[test]
fn ternary_tables_are_screened() {
    let mut random = Random::new(11);
    for rows in [1, 16, 3, 1] {
        let (x, table) = ternary(&mut random, rows);
        let requests = mixed(&mut random, rows, table.rows());
        let case = case_with(x, table, requests);
        let expected = block_on(case.expected()).unwrap();
        for level in tested_levels() {
            let options = CpuOptions { level: Some(level), threads: Some(2) };
            let mut backend = CpuBackend::new(options).unwrap();
            block_on(case.compare_with(&expected, &mut backend)).unwrap();
            let found = candidates(&case, &mut backend);
            assert!(found.iter().flatten().any(|&count| count < 100), "{level}: {found:?}");
        }
    }
}

/// Tokens that are all the same: whichever has the most noise is drawn, of few or in full.
#[test]
fn equal_rows_are_drawn_by_their_noise() {
    const COLUMNS: usize = 64;
    let random = &mut Random::new(5);
    let row: Vec<f32> = (0..COLUMNS).map(|_| bell(random)).collect();
    for (vocab, temperature) in [(5000, 1e6), (5000, 1e-3), (200, 1e-3)] {
        let request = |key| {
            let noise = Some(NoisyScores { noise: Noise::new(key), temperature });
            TopLogitsRequest { k: 3, noise, ..<_>::default() }
        };
        let requests: Vec<_> = (0..5).map(request).collect();
        let case = case_of(row.repeat(5), row.repeat(vocab), COLUMNS, requests);
        let expected = block_on(case.expected()).unwrap();
        for threads in [1, 2] {
            let options = CpuOptions { level: None, threads: Some(threads) };
            let Ok(mut backend) = CpuBackend::new(options) else { continue };
            block_on(case.compare_with(&expected, &mut backend)).unwrap();
            let is_full = temperature < 1.0 && vocab > 4096;
            let found = candidates(&case, &mut backend);
            assert!(found.iter().all(|found| found.is_none() == is_full), "{found:?}");
        }
    }
}

/// More rows than meet a screen together, in any number, some of which it is not proven for.
#[test]
fn many_rows_share_a_screen() {
    const COLUMNS: usize = 96;
    let random = &mut Random::new(3);
    let common: Vec<f32> = (0..COLUMNS).map(|_| bell(random)).collect();
    let mut table: Vec<f32> = (0..1003 * COLUMNS).map(|_| bell(random)).collect();
    // Equal ones, whose order is that of their ids.
    for row in table.chunks_exact_mut(COLUMNS).step_by(7) {
        row.copy_from_slice(&common);
    }
    for rows in std::iter::once(31).chain((1..=19).rev()).step_by(if EMULATED { 3 } else { 1 }) {
        let mut x: Vec<f32> = (0..rows * COLUMNS).map(|_| bell(random)).collect();
        for (row, x) in x.chunks_exact_mut(COLUMNS).enumerate() {
            match row % 6 {
                1 => x.copy_from_slice(&common),
                2 => x[random.below(COLUMNS)] = 1e4,
                3 if random.chance(0.5) => x[random.below(COLUMNS)] = f32::NAN,
                4 if random.chance(0.5) => x.fill(0.0),
                _ => {}
            }
        }
        let request = |_| {
            let touched = vec![random.pick(&[0, 7, 499]), random.pick(&[500, 504, 1002])];
            TopLogitsRequest { k: random.pick(&[1, 2, 60]), touched, ..<_>::default() }
        };
        let case = case_of(x, table.clone(), COLUMNS, (0..rows).map(request).collect());
        let expected = block_on(case.expected()).unwrap();
        for level in tested_levels() {
            for threads in [1, 2] {
                let options = CpuOptions { level: Some(level), threads: Some(threads) };
                let mut backend = CpuBackend::new(options).unwrap();
                block_on(case.compare_with(&expected, &mut backend)).unwrap();
            }
        }
    }
}

/// The random cases of parity take both ways, and tables that are screened are not all easy.
#[test]
fn cases_of_parity_are_screened() {
    let Ok(mut backend) = CpuBackend::new(CpuOptions { level: None, threads: Some(1) }) else {
        return;
    };
    let (mut screened, mut full) = (vec![], 0_u64);
    let seeds: u64 = if EMULATED { 40 } else { 120 };
    for seed in 0..seeds {
        let case = setun_parity::case("top_logits", seed).unwrap();
        block_on(case.compare(&mut backend)).unwrap();
        let found = candidates(&case, &mut backend);
        let wanted: usize = case.steps.iter().map(|inputs| inputs.wanted.len()).sum();
        assert_eq!(found.len(), wanted);
        full += found.iter().filter(|candidates| candidates.is_none()).map(|_| 1).sum::<u64>();
        screened.extend(found.into_iter().flatten());
    }
    let count = u64::try_from(screened.len()).unwrap();
    assert!(count > seeds && full > seeds / 3, "{count} and {full} of {seeds}");
    let all: usize = screened.iter().map(|&candidates| candidates as usize).sum();
    assert!(all > 10 * screened.len(), "{all} of {}", screened.len());
}

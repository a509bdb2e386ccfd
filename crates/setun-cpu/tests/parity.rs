//! Every operation, every level of this machine, several numbers of threads, against the
//! definitions.

use std::cell::RefCell;

use proptest::prelude::*;
use setun_cpu::{CpuBackend, CpuOptions, Level, testing::expect_level};
use setun_ops::{
    Op,
    comparison::{Case, block_on},
};
use setun_parity::{CPU_SUBJECTS, NOISY_SUBJECT, SUBJECTS, case, check_digests, check_inputs};

/// A level, a number of threads and the backend of both.
type Tested = (Level, usize, CpuBackend);

/// Compares random cases of a subject on all levels and thread counts.
fn agrees(subject: &str, cases: u32) {
    agrees_with(subject, cases, &[1, 2, 3, 7]);
}

fn agrees_with(subject: &str, cases: u32, threads: &[usize]) {
    agrees_where(subject, cases, threads, |_| true);
}

/// The definitions, which take most of the time, run once for each case.
fn agrees_where(subject: &str, cases: u32, threads: &[usize], is_taken: impl Fn(&Case) -> bool) {
    // Where a case takes long, `PROPTEST_CASES` requests fewer.
    let cases = cases.min(ProptestConfig::default().cases);
    let backends = RefCell::new(backends(threads));
    proptest!(ProptestConfig::with_cases(cases), |(seed: u64)| {
        let case = case(subject, seed).expect("a subject");
        prop_assume!(is_taken(&case));
        let expected = block_on(case.expected()).expect("a case");
        for (level, threads, backend) in backends.borrow_mut().iter_mut() {
            let compared = block_on(case.compare_with(&expected, backend));
            let place = format!("{subject}, {level}, {threads} threads");
            prop_assert!(compared.is_ok(), "{place}: {}", compared.unwrap_err());
        }
    });
}

fn backends(threads: &[usize]) -> Vec<Tested> {
    let mut backends = vec![];
    for level in Level::ALL {
        expect_level(level, || {
            for &threads in threads {
                let options = CpuOptions { level: Some(level), threads: Some(threads) };
                backends.push((level, threads, CpuBackend::new(options).unwrap()));
            }
        });
    }
    backends
}

/// The other tests compare with the definitions as they run here.
#[test]
fn definitions_give_the_same_bits_everywhere() {
    if let Err(found) = check_digests() {
        panic!("{found}");
    }
}

/// A test of each subject, with the number of its cases; `LISTED` names them.
macro_rules! subjects {
    ($($subject:ident: $cases:literal,)+) => {
        const LISTED: &[&str] = &[$(stringify!($subject)),+];

        $(
            #[test]
            fn $subject() {
                agrees(stringify!($subject), $cases);
            }
        )+
    };
}

subjects! {
    embed: 80,
    rms_norm: 80,
    quantize: 200,
    ternary_matmul: 80,
    head_norm: 80,
    attention: 80,
    gate: 80,
    head: 80,
    top_logits: 300,
    argmax: 120,
    model: 40,
    sigmoid_gate: 80,
    dense_matmul: 80,
    hadamard: 60,
    delta_net: 120,
    partial_rope: 60,
}

/// Contexts that are long enough for members to share them span by span.
#[test]
fn long_attention() {
    if cfg!(target_arch = "aarch64") {
        // One takes as long as all cases of the others together where a processor is emulated, as
        // this one mostly is; and a member alone has nobody to share with.
        agrees_where("long_attention", 1, &[2, 7], |case| products(case) < 10_000_000);
    } else {
        agrees("long_attention", 8);
    }
}

/// Products of queries and keys.
fn products(case: &Case) -> u64 {
    let shapes = case.plan.ops().iter().filter_map(|op| match op {
        Op::Attention { shape, .. } => Some(shape.query_width() as u64),
        _ => None,
    });
    let positions = case.steps.iter().flat_map(|step| &step.positions);
    shapes.sum::<u64>() * positions.map(|&position| u64::from(position) + 1).sum::<u64>()
}

#[test]
fn top_logits_by_noisy_scores() {
    agrees(NOISY_SUBJECT, 300);
}

#[test]
fn inputs_are_those_that_the_host_writes() {
    for level in Level::ALL {
        expect_level(level, || {
            let options = CpuOptions { level: Some(level), threads: Some(2) };
            let mut backend = CpuBackend::new(options).unwrap();
            assert_eq!(block_on(check_inputs(&mut backend)), Ok(()), "{level}");
        });
    }
}

#[test]
fn every_subject_has_a_test() {
    let own = CPU_SUBJECTS.into_iter().filter(|subject| *subject != NOISY_SUBJECT);
    for subject in SUBJECTS.into_iter().chain(own) {
        assert!(LISTED.contains(&subject) || subject == "long_attention", "{subject} has no test");
    }
}

//! Every operation, every level of this machine, several numbers of threads, against the
//! definitions.

use std::cell::RefCell;

use proptest::prelude::*;
use setun_cpu::{CpuBackend, CpuOptions, Level, testing::expect_level};
use setun_ops::comparison::block_on;
use setun_parity::{NOISY_SUBJECT, SUBJECTS, case, check_digests, check_inputs};

/// Compares random cases of a subject on all levels and thread counts.
fn agrees(subject: &str, cases: u32) {
    agrees_with(subject, cases, &[1, 2, 3, 7]);
}

fn agrees_with(subject: &str, cases: u32, threads: &[usize]) {
    // Where a case takes long, `PROPTEST_CASES` requests fewer.
    let cases = cases.min(ProptestConfig::default().cases);
    for level in Level::ALL {
        expect_level(level, || {
            for &threads in threads {
                let options = CpuOptions { level: Some(level), threads: Some(threads) };
                let backend = RefCell::new(CpuBackend::new(options).unwrap());
                proptest!(ProptestConfig::with_cases(cases), |(seed: u64)| {
                    let case = case(subject, seed).expect("a subject");
                    let compared = block_on(case.compare(&mut *backend.borrow_mut()));
                    prop_assert!(compared.is_ok(), "{subject}, {level}: {}", compared.unwrap_err());
                });
            }
        });
    }
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
    embed: 40,
    rms_norm: 40,
    quantize: 100,
    ternary_matmul: 40,
    head_norm: 40,
    rope_append: 20,
    attention: 20,
    gate: 40,
    head: 40,
    top_logits: 150,
    argmax: 60,
    model: 20,
}

/// Contexts that are long enough for members to share them span by span.
#[test]
fn long_attention() {
    if cfg!(target_arch = "aarch64") {
        // One takes as long as all cases of the others together where a processor is emulated, as
        // this one mostly is; and a member alone has nobody to share with.
        agrees_with("long_attention", 1, &[2, 7]);
    } else {
        agrees("long_attention", 6);
    }
}

#[test]
fn top_logits_by_noisy_scores() {
    agrees(NOISY_SUBJECT, 150);
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
    for subject in SUBJECTS {
        assert!(LISTED.contains(&subject) || subject == "long_attention", "{subject} has no test");
    }
}

//! Each kernel alone, every level of this machine, against the definitions.

use proptest::prelude::*;
use setun_cpu::{
    Level,
    testing::{KERNELS, check_kernel, expect_level},
};

fn equals(kernel: &str) {
    for level in Level::ALL {
        expect_level(level, || {
            proptest!(|(seed: u64)| {
                prop_assert_eq!(check_kernel(level, kernel, seed), Ok(()));
            });
        });
    }
}

#[test]
fn ternary_dot() {
    equals("ternary_dot");
}

#[test]
fn screen_dot() {
    equals("screen_dot");
}

#[test]
fn widen() {
    equals("widen");
}

#[test]
fn exp() {
    equals("exp");
}

#[test]
fn folds() {
    equals("folds");
}

#[test]
fn quantize_row() {
    equals("quantize_row");
}

#[test]
fn no_kernel_is_forgotten() {
    let source = include_str!("kernels.rs");
    for kernel in KERNELS {
        assert!(source.contains(&format!("equals(\"{kernel}\"")), "{kernel} has no test");
    }
}

//! Each kernel alone, every level of this machine, against the definitions.

use std::io::Write;

use proptest::prelude::*;
use setun_cpu::{
    Level,
    testing::{KERNELS, check_kernel, describe_levels, expect_level},
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

/// Says what the other tests run on, past the harness, which hides what a passing test prints.
#[test]
fn levels_are_those_expected() {
    writeln!(std::io::stderr(), "setun-cpu: {}", describe_levels()).unwrap();
}

#[test]
fn ternary_dot() {
    equals("ternary_dot");
}

#[test]
fn ternary_panel() {
    equals("ternary_panel");
}

#[test]
fn column_sums() {
    equals("column_sums");
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
fn round_to_f16() {
    equals("round_to_f16");
}

#[test]
fn greatest() {
    equals("greatest");
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

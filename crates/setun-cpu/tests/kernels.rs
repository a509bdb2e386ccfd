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

macro_rules! tests {
    ($($kernel:ident),+) => {
        $(
            #[test]
            fn $kernel() {
                equals(stringify!($kernel));
            }
        )+

        #[test]
        fn no_kernel_is_forgotten() {
            assert_eq!([$(stringify!($kernel)),+], KERNELS);
        }
    };
}

tests!(
    ternary_dot,
    run_dots,
    ternary_panel,
    column_sums,
    screen_dot,
    widen,
    round_to_f16,
    greatest,
    exp,
    folds,
    quantize_row
);

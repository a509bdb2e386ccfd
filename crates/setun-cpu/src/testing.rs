//! Tests that run natively and, by `examples/wasm_tests.rs`, in WebAssembly. Not an interface.

mod kernels;
mod panels;
mod products;

pub use kernels::{KERNELS, check_kernel};
pub use products::{Groups, Products, Shape};

use setun_ops::{
    random::Random,
    ternary::{pack_row, padded_columns, row_bytes},
};

use crate::{Level, isa::Isa};

/// The levels of this machine and build, or of these those that the variable `SETUN_TEST_LEVELS`
/// names: an emulator need not play on every processor what it has played on another.
#[must_use]
pub fn tested_levels() -> Vec<Level> {
    let named = std::env::var("SETUN_TEST_LEVELS");
    let is_named = |level: &Level| {
        named.as_ref().map_or(true, |names| names.split(',').any(|name| name == level.name()))
    };
    Level::available().into_iter().filter(is_named).collect()
}

/// Runs `test` for a level if it is one of the [`tested_levels`].
///
/// # Panics
///
/// If what the processor reports and what the backend offers differ: a level that was expected
/// and skipped is a failure.
pub fn expect_level(level: Level, test: impl FnOnce()) {
    let available = Level::available().contains(&level);
    assert_eq!(available, reported(level), "level {level}");
    if tested_levels().contains(&level) {
        test();
    }
}

/// Which levels of this architecture run here and which the processor lacks.
///
/// # Panics
///
/// If the variable `SETUN_EXPECT_LEVELS` names other levels than those that run: whoever chooses
/// the processor, as for an emulator, knows what it has.
#[must_use]
pub fn describe_levels() -> String {
    let names = |runs: bool| {
        let levels = Level::ALL.into_iter().filter(|&level| is_native(level));
        let names = levels.filter(|&level| Isa::detect(level).is_some() == runs).map(Level::name);
        names.collect::<Vec<_>>().join(",")
    };
    let here = names(true);
    if let Ok(expected) = std::env::var("SETUN_EXPECT_LEVELS") {
        assert_eq!(here, expected, "levels that run, and those that were expected");
    }
    format!("runs [{here}], lacks [{}]", names(false))
}

/// The levels that the processor reports, or the build in WebAssembly.
#[must_use]
pub fn reported_levels() -> Vec<Level> {
    Level::ALL.into_iter().filter(|&level| reported(level)).collect()
}

/// Whether a level is one of this architecture.
fn is_native(level: Level) -> bool {
    match level {
        Level::Avx512 | Level::AvxVnni | Level::Avx2 => cfg!(target_arch = "x86_64"),
        Level::NeonI8mm | Level::NeonDotprod | Level::Neon => cfg!(target_arch = "aarch64"),
        Level::Relaxed | Level::Simd128 => cfg!(target_arch = "wasm32"),
    }
}

/// Whether the processor (or the build, in WebAssembly) says that it has a level.
fn reported(level: Level) -> bool {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => reports_avx512(),
        #[cfg(target_arch = "x86_64")]
        Level::AvxVnni => std::arch::is_x86_feature_detected!("avxvnni"),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx512 | Level::AvxVnni | Level::Avx2 => false,
        #[cfg(target_arch = "aarch64")]
        Level::NeonI8mm => {
            reported(Level::NeonDotprod) && std::arch::is_aarch64_feature_detected!("i8mm")
        }
        #[cfg(target_arch = "aarch64")]
        Level::NeonDotprod => std::arch::is_aarch64_feature_detected!("dotprod"),
        #[cfg(not(target_arch = "aarch64"))]
        Level::NeonI8mm | Level::NeonDotprod => false,
        Level::Neon => cfg!(target_arch = "aarch64"),
        Level::Simd128 => cfg!(all(target_arch = "wasm32", target_feature = "simd128")),
        Level::Relaxed => cfg!(all(target_arch = "wasm32", target_feature = "relaxed-simd")),
    }
}

/// Whether the processor reports all parts of AVX-512 that the level stands for.
#[cfg(target_arch = "x86_64")]
fn reports_avx512() -> bool {
    use std::arch::is_x86_feature_detected as reported;
    let arithmetic = reported!("avx512f") && reported!("avx512bw") && reported!("avx512dq");
    let bits = reported!("avx512cd") && reported!("avx512bitalg") && reported!("avx512vpopcntdq");
    let bytes = reported!("avx512vbmi") && reported!("avx512vbmi2") && reported!("avx512vnni");
    let others = reported!("avx512ifma") && reported!("gfni") && reported!("vaes");
    arithmetic && bits && bytes && others && reported!("avx512vl") && reported!("vpclmulqdq")
}

/// A packed row; sometimes all codes are the same, so that sums are extreme.
fn packed_row(random: &mut Random, columns: usize) -> Vec<u8> {
    let only = if random.chance(0.4) { Some(random.pick(&[0, 2])) } else { None };
    let codes: Vec<u8> =
        (0..columns).map(|_| only.unwrap_or_else(|| random.pick(&[0, 1, 2]))).collect();
    let mut packed = vec![0; row_bytes(columns)];
    pack_row(&codes, &mut packed);
    packed
}

/// Any int8 activations, −128 too; sometimes all at an extreme.
fn activations(random: &mut Random, columns: usize) -> Vec<i8> {
    let only = if random.chance(0.4) { Some(random.pick(&[-128, -127, 127])) } else { None };
    let mut x: Vec<i8> = (0..columns).map(|_| only.unwrap_or_else(|| random.i8())).collect();
    x.resize(padded_columns(columns), 0);
    x
}

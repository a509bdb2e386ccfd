//! Fixtures and helpers that the tests of this folder share.

pub mod checkpoint;
pub mod forward_only;
pub mod golden;
pub mod hooked;
pub mod run;
pub mod stages;
pub mod taps;
pub mod trial;

use std::path::PathBuf;

/// The larger of two numbers in the long run, which has the variable `SETUN_LONG`, and else the smaller: how much of
/// the same a test does.
#[must_use]
pub fn long_or<Number>(long: Number, short: Number) -> Number {
    if std::env::var_os("SETUN_LONG").is_some() { long } else { short }
}

/// A file or folder of `tests/fixtures`. Who runs a test says at run time where `tests` is: what was
/// said at compile time is wrong on another machine.
#[must_use]
pub fn fixture(path: &str) -> PathBuf {
    let tests = std::env::var_os("CARGO_MANIFEST_DIR");
    let tests = tests.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    tests.join("fixtures").join(path)
}

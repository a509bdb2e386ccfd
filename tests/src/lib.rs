//! Fixtures and helpers that the tests of this folder share.

pub mod checkpoint;
pub mod golden;
pub mod hooked;
pub mod run;
pub mod stages;
pub mod taps;
pub mod trial;

use std::path::PathBuf;

/// A file or folder of `tests/fixtures`.
#[must_use]
pub fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

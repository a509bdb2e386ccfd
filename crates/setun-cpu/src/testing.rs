//! Tests that run natively and, through `examples/wasm_tests.rs`, in WebAssembly.

use crate::Level;

/// Runs `test` for a level if this machine and build have it.
///
/// # Panics
///
/// If what the processor reports and what the backend offers differ: a level that was expected
/// and skipped is a failure.
pub fn expect_level(level: Level, test: impl FnOnce()) {
    let available = Level::available().contains(&level);
    assert_eq!(available, reported(level), "level {level}");
    if available {
        test();
    }
}

/// Whether the processor (or the build, in WebAssembly) says that it has a level.
fn reported(level: Level) -> bool {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx2 => false,
        Level::Simd128 => cfg!(target_feature = "simd128"),
        Level::Relaxed => cfg!(target_feature = "relaxed-simd"),
    }
}

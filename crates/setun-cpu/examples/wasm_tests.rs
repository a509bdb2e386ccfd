//! The backend's tests as a WebAssembly module without imports, for Node and for a page.
//!
//! `wasm_tests.mjs` beside this file loads it, calls [`run`] and reads the report from memory.
//! A failed assertion traps; what differs otherwise is told in the report.

#![expect(unsafe_code, reason = "exports of a module have unmangled names")]

use std::sync::Mutex;

use setun_cpu::{Level, testing::check_all};

static REPORT: Mutex<String> = Mutex::new(String::new());

/// Runs all checks with `seeds` seeds each and `threads` threads; returns the length of the
/// report, which begins with `ok` if all went well.
#[unsafe(no_mangle)]
pub extern "C" fn run(seeds: u32, threads: u32) -> usize {
    let threads = usize::try_from(threads).unwrap_or(1);
    let report = match check_all(u64::from(seeds), &[threads]) {
        _ if Level::available().is_empty() => "failed: the build has no level".to_owned(),
        Ok(report) => report,
        Err(report) => format!("failed: {report}"),
    };
    let Ok(mut stored) = REPORT.lock() else { return 0 };
    *stored = report;
    stored.len()
}

/// Address of the report.
#[unsafe(no_mangle)]
pub extern "C" fn report() -> *const u8 {
    REPORT.lock().map_or(std::ptr::null(), |report| report.as_ptr())
}

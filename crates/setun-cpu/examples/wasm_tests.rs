//! The backend's tests as a WebAssembly module without imports, for Node and for a page.
//!
//! `wasm_tests.mjs` beside this file loads it, calls [`run`] and reads the report from memory.
//! A failed assertion traps; other differences are in the report.

#![expect(unsafe_code, reason = "exports of a module have unmangled names")]

use std::sync::Mutex;

use setun_cpu::{
    CpuBackend, CpuOptions, Level,
    testing::{KERNELS, check_kernel, reported_levels},
};
use setun_ops::comparison::block_on;
use setun_parity::{CPU_SUBJECTS, SUBJECTS, case, check_digests};

static REPORT: Mutex<String> = Mutex::new(String::new());

/// Runs all checks with `seeds` seeds each and `threads` threads; returns the length of the
/// report, which begins with `ok` if all went well.
#[unsafe(no_mangle)]
pub extern "C" fn run(seeds: u32, threads: u32) -> usize {
    let threads = usize::try_from(threads).unwrap_or(1);
    let report = match check_all(u64::from(seeds), threads) {
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

/// Runs the definitions, then every kernel and every subject of parity with `seeds` seeds each, on
/// all levels of this build with some threads. The first failure says what repeats it.
fn check_all(seeds: u64, threads: usize) -> Result<String, String> {
    check_digests()?;
    let mut checks = 1;
    let mut backends = vec![];
    for level in reported_levels() {
        for kernel in KERNELS {
            for seed in 0..seeds {
                check_kernel(level, kernel, seed)?;
                checks += 1;
            }
        }
        let options = CpuOptions { level: Some(level), threads: Some(threads) };
        let backend = CpuBackend::new(options).map_err(|error| error.to_string())?;
        backends.push((level, backend));
    }
    for subject in SUBJECTS.into_iter().chain(CPU_SUBJECTS) {
        // One of these takes as long as all of another subject.
        let seeds = if subject == "long_attention" { seeds.div_ceil(5) } else { seeds };
        for seed in 0..seeds {
            let case = case(subject, seed).ok_or("an unknown subject")?;
            let expected = block_on(case.expected()).map_err(|error| error.to_string())?;
            for (level, backend) in &mut backends {
                block_on(case.compare_with(&expected, backend)).map_err(|error| {
                    format!("{level}, {threads} threads, {subject}, seed {seed}: {error}")
                })?;
                checks += 1;
            }
        }
    }
    let levels: Vec<&str> = Level::available().into_iter().map(Level::name).collect();
    Ok(format!("ok: {checks} checks on {}", levels.join(", ")))
}

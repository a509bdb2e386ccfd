//! Instructions that a shipped module must contain, and those that it must not.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::variant::Variant;

/// Checks the binding tool's report of `variant`'s shipped module against its promise.
pub(crate) fn check(variant: Variant, report: &Value) -> Result<()> {
    let name = variant.name();
    let count = |proposal: &str| report["instructions"][proposal].as_u64().unwrap_or(0);
    let relaxed_dots = report["relaxed_dots"].as_u64().unwrap_or(0);
    ensure!(count("simd") > 0, "{name}: no SIMD instruction in the module");
    if variant.relaxed() {
        ensure!(relaxed_dots > 0, "{name}: no relaxed dot product in the module");
    } else {
        let relaxed = count("relaxed_simd");
        ensure!(relaxed == 0, "{name}: {relaxed} relaxed instructions in the module");
    }
    let shared = report["memory"]["shared"] == true && report["memory"]["imported"] == true;
    ensure!(
        shared == variant.threads(),
        "{name}: its memory is {}imported and shared",
        if shared { "" } else { "not " }
    );
    let atomics = count("threads");
    ensure!(
        (atomics > 0) == variant.threads(),
        "{name}: {atomics} atomic instructions in the module"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(relaxed: u64, dots: u64, shared: bool) -> Value {
        json!({
            "instructions": {
                "simd": 90, "relaxed_simd": relaxed, "threads": if shared { 600 } else { 0 }
            },
            "relaxed_dots": dots,
            "memory": { "imported": shared, "shared": shared },
        })
    }

    #[test]
    fn each_variant_is_what_it_says() {
        check(Variant::Simd128, &report(0, 0, false)).unwrap();
        check(Variant::Relaxed, &report(9, 8, false)).unwrap();
        check(Variant::Simd128Threads, &report(0, 0, true)).unwrap();
        check(Variant::RelaxedThreads, &report(9, 8, true)).unwrap();
        check(Variant::WebGpu, &report(0, 0, false)).unwrap();
    }

    #[test]
    fn each_mix_up_is_found() {
        let wrong = [
            (Variant::Simd128, report(1, 0, false)),
            (Variant::Simd128, report(0, 0, true)),
            (Variant::Relaxed, report(9, 0, false)),
            (Variant::Relaxed, report(9, 8, true)),
            (Variant::Simd128Threads, report(9, 8, true)),
            (Variant::Simd128Threads, report(0, 0, false)),
            (Variant::RelaxedThreads, report(0, 0, true)),
            (Variant::WebGpu, report(9, 8, false)),
        ];
        for (variant, report) in wrong {
            assert!(check(variant, &report).is_err(), "{variant:?} {report}");
        }
    }
}

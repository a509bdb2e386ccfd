use serde_json::json;

use super::*;

#[test]
fn a_report_becomes_tables_of_bounded_lines() {
    let ops = json!([{
        "op": "gate", "role": null, "ms_per_step": 0.5, "ms_per_token": 0.5,
        "weight_gb_per_second": 50.0, "multiply_adds_per_second": 1e12,
    }]);
    let run = |hash: &str, batch: u32| {
        json!({
            "batch": batch, "prefill_tokens_per_second": 10.0, "decode_tokens_per_second": 5.0,
            "host_us_per_token": 7.25, "first_tokens_hash": hash,
            "profile": { "decode": { "jobs_per_token": 41.0, "ops": ops }, "prefill": null },
        })
    };
    let report = json!({
        "minutes": 8, "seconds": 12.4,
        "machine": { "os": "linux", "nvidia": null, "devices": [
            { "device": "vulkan", "level": "llvmpipe", "note": "software, only by name" },
        ] },
        "missing": ["cuda"],
        "self_test": [{ "device": "vulkan", "level": "llvmpipe", "verdict": "software", "reason": "x".repeat(300) }],
        "limits": { "vulkan": { "copy_gb_per_second": 100.0, "peak_tera_operations_per_second": 4.0 } },
        "tests": [{ "program": "setun-gpu-cuda", "passed": null, "failed": null, "ignored": null,
            "seconds": 1.0, "outcome": "exit status: 101", "skipped": [], "failures": "panicked | here",
            "said": "" }],
        "speed": [{ "api": "vulkan", "shape": "small", "prompt": "24", "outcome": "ok",
            "same_in_every_batch": false, "reports": [run("aa", 1), run("bb", 2)] }],
        "cpu": [{ "shape": "small", "prompt": "24", "outcome": "ok", "first_tokens_hash": "aa" }],
        "webgpu": { "outcome": "no browser is here" },
        "memory": { "before": null, "after": null },
        "not_measured": [{ "what": "WebGPU", "why": "no browser is here" }],
    });
    let text = of(&report);
    for part in [
        "- vulkan: llvmpipe (software, only by name)\n- cuda: no device\n",
        "| vulkan | 100.0 | 4.000 |\n",
        "| vulkan small | 1 | 10.0 | 5.0 | 41.0 | 7.2 | aa | equal |\n",
        "| vulkan small | 2 | 10.0 | 5.0 | 41.0 | 7.2 | bb | other |\n",
        "**vulkan small: the first sequence depends on its batch.**\n",
        "| gate | 500.0 | 50.0 | 50.0 % | 2.000 | 50.0 % | 500.0 |",
        "```text\npanicked | here\n```\n",
        "- WebGPU: no browser is here\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    assert!(!text.contains("### vulkan, small, prefill"), "{text}");
}

#[test]
fn a_report_of_nothing_is_one_too() {
    let text = of(&json!({}));
    assert!(text.contains("No GPU.") && text.contains("nvidia-smi is not here"), "{text}");
}

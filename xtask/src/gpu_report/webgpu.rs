//! WebGPU, where a browser is: the demo page's own check.

use std::process::Command;

use serde_json::{Value, json};

use super::child::Runner;
use crate::browser;

/// Builds of WebAssembly included.
const SECONDS: u64 = 300;

/// The page's report of a story on WebGPU, or why there is none.
pub(super) fn measure(has_programs_alone: bool, runner: &mut Runner) -> Value {
    let none = |runner: &mut Runner, why: &str| {
        runner.miss("WebGPU", why);
        json!({ "outcome": why })
    };
    if browser::installed().is_none() {
        return none(runner, "no browser is here");
    }
    if has_programs_alone {
        return none(runner, "the page is built by cargo, which --programs does without");
    }
    let Ok(own) = std::env::current_exe() else { return none(runner, "this program is gone") };
    let mut command = Command::new(own);
    command.args(["demo", "--check", "--json", "--backend", "webgpu"]);
    command.args(["--max-tokens", "100", "--temperature", "0"]);
    match runner.run("WebGPU", SECONDS, &mut command) {
        Some(ended) if ended.is_ok() => {
            let page: Option<Value> = serde_json::from_str(&ended.stdout).ok();
            json!({ "outcome": "ok", "page": page })
        }
        Some(ended) => json!({ "outcome": ended.reason() }),
        None => json!({ "outcome": "no time was left" }),
    }
}

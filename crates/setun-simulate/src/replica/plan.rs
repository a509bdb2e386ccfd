//! Rows of a step: one of each decoding request, and of prompts as many as there is time for.

use super::Running;
use crate::costs::StepCosts;

/// Milliseconds that prompt rows add to a step while a request waits for its next token.
const STEP_TARGET: f64 = 50.0;

/// Milliseconds of a step of prompts alone.
const PROMPT_STEP_TARGET: f64 = 2000.0;

/// One in this many rows of prompts is shared out evenly.
const EVEN_SHARE: u32 = 4;

/// Decides how many rows of the next step each request has. They are ordered by arrival.
pub(super) fn share_rows(running: &mut [Running], max_rows: u32, costs: &StepCosts) {
    let mut decoding = 0;
    for running in running.iter_mut() {
        running.rows = u32::from(running.decodes() && decoding < max_rows);
        decoding += running.rows;
    }
    let mut left = prompt_rows(decoding, max_rows, costs).min(max_rows - decoding);
    let mut prompts: Vec<_> = running.iter_mut().filter(|running| !running.decodes()).collect();
    let number = u32::try_from(prompts.len()).unwrap_or(u32::MAX);
    let even = (left / EVEN_SHARE / number.max(1)).max(1);
    for running in &mut prompts {
        running.rows = even.min(running.pending()).min(left);
        left -= running.rows;
    }
    for running in prompts {
        let (rows, pending) = (running.rows, running.pending());
        if rows + left > 0 {
            // In steps of like size, as a short last one would read all weights for few rows.
            let whole = pending.div_ceil(pending.div_ceil(rows + left)).max(rows);
            left -= whole - rows;
            running.rows = whole;
        }
    }
}

/// Rows of prompts that a step has time for. Beside decoding rows they take as long as these, or a
/// target if that is more.
fn prompt_rows(decoding: u32, max_rows: u32, costs: &StepCosts) -> u32 {
    let before = if decoding == 0 { 0.0 } else { costs.step(decoding, 0) };
    let target = if decoding == 0 { PROMPT_STEP_TARGET } else { STEP_TARGET };
    let most = before + before.max(target);
    let (mut fits, mut beyond) = (1, max_rows + 1); // one row always runs
    while beyond - fits > 1 {
        let middle = fits.midpoint(beyond);
        if costs.step(decoding, middle) <= most {
            fits = middle;
        } else {
            beyond = middle;
        }
    }
    fits
}

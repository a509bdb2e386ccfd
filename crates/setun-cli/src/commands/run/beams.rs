//! `setun run --num-beams`: the likeliest texts and their scores.

use serde::Serialize;
use setun::{BeamGeneration, BeamText, BeamTexts, Done, FinishReason};

use crate::{
    error::CliError,
    interrupt,
    output::{Output, report},
};

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Beam {
        text: &'a str,
        tokens: &'a [u32],
        score: f64,
        finish_reason: FinishReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<&'a str>,
        index: usize,
    },
    Done(&'a Done),
}

/// Prints the texts, the best first; how the search ended.
pub(super) fn run(search: BeamGeneration, json: bool) -> Result<Done, CliError> {
    let guard = interrupt::cancels(vec![search.cancel_handle()]);
    let BeamTexts { texts, done } = search.wait()?;
    drop(guard);
    let mut output = Output::new();
    for (index, text) in texts.iter().enumerate() {
        if json {
            output.json(&line(text, index))?;
        } else {
            let (number, count, score) = (index + 1, texts.len(), text.score);
            report(&format!("text {number} of {count}, score {score:.6}:\n"));
            output.line(&text.text)?;
        }
    }
    if json {
        output.json(&Line::Done(&done))?;
    }
    Ok(done)
}

fn line(found: &BeamText, index: usize) -> Line<'_> {
    let BeamText { text, tokens, score, finish_reason, stop } = found;
    let (score, finish_reason, stop) = (*score, *finish_reason, stop.as_deref());
    Line::Beam { text, tokens, score, finish_reason, stop, index }
}

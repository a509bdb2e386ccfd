//! Checks of a step's outputs, so that a model that is wrong ends its generations with an error.

use setun_model::{Batch, Outputs, RequestedOutput, Row};
use setun_ops::{argmax::NONE, top_logits::Ranked};

use crate::error::Error;

/// Whether a step gave the rows that its batch requested, each of what was requested.
///
/// # Errors
///
/// If there are fewer or more, one is of another kind or length, or names a token that is not in
/// the vocabulary.
pub(super) fn check_outputs(
    batch: &Batch,
    outputs: &Outputs,
    vocabulary: usize,
) -> Result<(), Error> {
    let (expected, found) = (batch.wanted(), outputs.rows().count());
    if expected != found {
        return Err(wrong("the number of output rows", &expected, &found));
    }
    let requested = batch.rows.iter().map(|row| &row.output);
    let requested = requested.filter(|output| !matches!(output, RequestedOutput::Nothing));
    outputs.rows().zip(requested).try_for_each(|(row, output)| check_row(row, output, vocabulary))
}

fn check_row(row: Row<'_>, requested: &RequestedOutput, vocabulary: usize) -> Result<(), Error> {
    match (row, requested) {
        // A model without hidden states gives logits, which the sequence refuses by itself.
        (_, RequestedOutput::HiddenState) => Ok(()),
        (Row::Logits(logits), _) => {
            if logits.len() == vocabulary {
                return Ok(());
            }
            Err(wrong("the length of a row of logits", &vocabulary, &logits.len()))
        }
        (Row::Ranked(ranked), RequestedOutput::TopLogits(request)) => {
            let tokens = match ranked {
                [tokens @ .., last] if request.sum && last.token == Ranked::SUM => tokens,
                tokens => tokens,
            };
            match tokens.iter().find(|ranked| ranked.token as usize >= vocabulary) {
                Some(ranked) => {
                    Err(wrong("a top token", &format!("below {vocabulary}"), &ranked.token))
                }
                None => Ok(()),
            }
        }
        (row, requested) => Err(wrong("an output row", &name(requested), &kind(row))),
    }
}

/// Whether the head alone gave all logits of this many rows.
///
/// # Errors
///
/// If there are fewer or more, or others.
pub(super) fn check_head(outputs: &Outputs, rows: usize, vocabulary: usize) -> Result<(), Error> {
    let (expected, found) = (rows * vocabulary, outputs.logits().len());
    if expected == found { Ok(()) } else { Err(wrong("the number of logits", &expected, &found)) }
}

/// Whether multi-step decoding gave a token for each row and step.
///
/// # Errors
///
/// If there are fewer or more, or one is not in the vocabulary.
pub(super) fn check_argmax(
    tokens: &[u32],
    expected: usize,
    vocabulary: usize,
) -> Result<(), Error> {
    if tokens.len() != expected {
        return Err(wrong("the number of argmax tokens", &expected, &tokens.len()));
    }
    match tokens.iter().find(|&&token| token != NONE && token as usize >= vocabulary) {
        Some(token) => Err(wrong("an argmax token", &format!("below {vocabulary}"), token)),
        None => Ok(()),
    }
}

fn wrong(what: &'static str, expected: &dyn ToString, found: &dyn ToString) -> Error {
    Error::ModelOutput { what, expected: expected.to_string(), found: found.to_string() }
}

fn name(requested: &RequestedOutput) -> &'static str {
    match requested {
        RequestedOutput::TopLogits(_) => "logits, all or the top ones",
        _ => "all logits",
    }
}

fn kind(row: Row<'_>) -> &'static str {
    match row {
        Row::Logits(_) => "logits",
        Row::Ranked(_) => "top logits",
        Row::HiddenState(_) => "a hidden state",
    }
}

#[cfg(test)]
mod tests;

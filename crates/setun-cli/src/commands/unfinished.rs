//! Texts that end before their constraint is met.

use setun::{Done, FinishReason};

use crate::error::CliError;

/// Why a text is unfinished, if it is. An interrupted one is none of these.
pub(super) fn reason(done: &Done) -> Option<&'static str> {
    let reason = match done.finish_reason {
        FinishReason::Length => "--max-tokens or the context is used up",
        FinishReason::Timeout => "the time of --timeout is over",
        FinishReason::ContentFilter => "the content filter ended it",
        FinishReason::Stop | FinishReason::ToolCalls => "a stop string ended it",
        FinishReason::Aborted => return None,
    };
    done.unfinished.then_some(reason)
}

/// Fails if one of the texts is unfinished.
pub(super) fn check<'a>(ends: impl IntoIterator<Item = &'a Done>) -> Result<(), CliError> {
    match ends.into_iter().find_map(reason) {
        Some(reason) => Err(CliError::Unfinished { reason }),
        None => Ok(()),
    }
}

//! Spans and events.

use tracing::{Instrument, Span, debug, debug_span, field::Empty, info_span, warn};

use super::WaitReason;
use crate::{error::Error, event::FinishReason};

/// The target of all spans and events.
const TARGET: &str = "setun";

/// The span of a generation. It is a child of the span from which the generation was requested,
/// and ends with it.
#[derive(Debug)]
pub(crate) struct Trace {
    span: Span,
    waiting: Option<WaitReason>, // the one reported last, since it was queued or preempted
}

/// No span.
impl Default for Trace {
    fn default() -> Self {
        Self { span: Span::none(), waiting: None }
    }
}

impl Trace {
    pub(crate) fn begin(prompt_tokens: usize, max_tokens: usize, sample: u64) -> Self {
        let span = info_span!(
            target: TARGET,
            "generation",
            prompt_tokens,
            max_tokens,
            sample,
            completion_tokens = Empty,
            finish_reason = Empty,
        );
        debug!(target: TARGET, parent: &span, "queued");
        Self { span, waiting: None }
    }

    /// Reports a reason once.
    pub(crate) fn waiting(&mut self, reason: WaitReason) {
        if self.waiting.replace(reason) != Some(reason) {
            debug!(target: TARGET, parent: &self.span, reason = reason.name(), "waiting");
        }
    }

    pub(crate) fn admitted(&mut self, cached: usize) {
        self.waiting = None;
        debug!(target: TARGET, parent: &self.span, cached_tokens = cached, "admitted");
    }

    pub(crate) fn first_token(&self) {
        debug!(target: TARGET, parent: &self.span, "first token");
    }

    pub(crate) fn preempted(&self, dropped: usize) {
        debug!(target: TARGET, parent: &self.span, preempted_tokens = dropped, "preempted");
    }

    pub(crate) fn ended(&self, reason: FinishReason, generated: usize) {
        let finish_reason = reason.as_str();
        self.span.record("completion_tokens", generated);
        self.span.record("finish_reason", finish_reason);
        debug!(target: TARGET, parent: &self.span, completion_tokens = generated, finish_reason, "ended");
    }

    pub(crate) fn failed(&self, error: &Error) {
        self.span.record("finish_reason", error.code().as_str());
        warn!(target: TARGET, parent: &self.span, %error, "failed");
    }
}

/// Runs a step in a span of its own.
pub(crate) async fn in_step<F: Future>(step: F) -> F::Output {
    let span =
        debug_span!(target: TARGET, "step", rows = Empty, prompt_rows = Empty, steps = Empty);
    step.instrument(span).await
}

/// Says what the step under way was.
pub(crate) fn step(rows: usize, prompt_rows: usize, steps: usize) {
    let span = Span::current();
    span.record("rows", rows);
    span.record("prompt_rows", prompt_rows);
    span.record("steps", steps);
}

//! Telemetry of builds without the feature `observe`: functions that do nothing.

use std::time::Duration;

use super::WaitReason;
use crate::{
    engine_info::EngineInfo,
    error::Error,
    event::FinishReason,
    metrics::{EngineMetrics, Timed},
};

/// The span of a generation, which is not recorded.
#[derive(Debug, Default)]
pub(crate) struct Trace(());

#[expect(clippy::unused_self, reason = "the others of this name need it")]
impl Trace {
    pub(crate) fn begin(_prompt_tokens: usize, _max_tokens: usize, _sample: u64) -> Self {
        Self(())
    }

    pub(crate) fn waiting(&mut self, _reason: WaitReason) {}

    pub(crate) fn admitted(&mut self, _cached: usize) {}

    pub(crate) fn first_token(&self) {}

    pub(crate) fn preempted(&self, _dropped: usize) {}

    pub(crate) fn ended(&self, _reason: FinishReason, _generated: usize) {}

    pub(crate) fn failed(&self, _error: &Error) {}
}

/// Runs a step.
pub(crate) async fn in_step<F: Future>(step: F) -> F::Output {
    step.await
}

pub(crate) fn step(_rows: usize, _prompt_rows: usize, _steps: usize) {}

/// Meters that count nothing.
pub(crate) struct Meters;

#[expect(clippy::unused_self, reason = "the others of this name need it")]
impl Meters {
    pub(crate) fn new(_report: &EngineInfo) -> Self {
        Self
    }

    pub(crate) fn time(&self, _timed: Timed, _time: Duration, _times: u64) {}

    pub(crate) fn rows(&self, _rows: usize, _steps: usize) {}

    pub(crate) fn update(&mut self, _metrics: &EngineMetrics) {}
}

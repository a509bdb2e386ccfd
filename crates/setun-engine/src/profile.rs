//! Time of an engine's steps by operation, prompts apart from decoding.

use std::time::Duration;

use setun_model::Profile;

use crate::timeline::Timeline;

/// Where the time of steps went: those of prompts apart from those that only decode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineProfile {
    /// Steps with rows of prompts, whatever else they had.
    pub prefill: PhaseProfile,
    /// Steps in which every sequence had a token already.
    pub decode: PhaseProfile,
    /// The steps one after the other, where
    /// [`Engine::start_timeline`](crate::Engine::start_timeline) requested them.
    pub timeline: Timeline,
}

impl EngineProfile {
    /// Whether a step was timed.
    pub(crate) fn is_empty(&self) -> bool {
        self.prefill.steps.steps + self.decode.steps.steps == 0
    }
}

/// Steps of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseProfile {
    /// What the steps took, with choosing tokens and all else that an engine does for them.
    pub time: Duration,
    /// Their operations.
    pub steps: Profile,
}

impl PhaseProfile {
    /// Adds a step and what it took.
    pub(crate) fn add(&mut self, time: Duration, step: &Profile) {
        self.time += time;
        self.steps.add(step);
    }
}

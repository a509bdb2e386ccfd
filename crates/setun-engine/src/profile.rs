//! Where the time of an engine's steps goes.

use std::time::Duration;

use futures::channel::oneshot;
use setun_model::Profile;
use web_time::Instant;

use crate::{command::Command, engine::Engine, error::Error, timeline::Timeline};

/// Where the time of steps went: those of prompts apart from those that only decode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineProfile {
    /// Steps with rows of prompts, whatever else they had.
    pub prefill: PhaseProfile,
    /// Steps in which every sequence had a token already.
    pub decode: PhaseProfile,
    /// The steps one after the other, where [`Engine::start_timeline`] asked for them.
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

impl Engine {
    /// From now on every step is timed, op by op, which costs some of its speed. The first steps
    /// of each size are slower than others, as plans are made ready again. Where steps are timed
    /// already, what was timed is forgotten.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn start_profile(&self) -> Result<(), Error> {
        self.set_profiled(true, None).await.map(drop)
    }

    /// As [`start_profile`](Self::start_profile), and keeps each step with its operations, the
    /// latest [`Timeline::MAX_STEPS`] of each device.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn start_timeline(&self) -> Result<(), Error> {
        self.set_profiled(true, Some(Instant::now())).await.map(drop)
    }

    /// Ends what [`start_profile`](Self::start_profile) began, after the step under way. None
    /// where no step was timed: there was none, or the device does not time its operations.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn end_profile(&self) -> Result<Option<EngineProfile>, Error> {
        self.set_profiled(false, None).await
    }

    /// What was timed until now.
    async fn set_profiled(
        &self,
        profiled: bool,
        timeline: Option<Instant>,
    ) -> Result<Option<EngineProfile>, Error> {
        let mut sum: Option<EngineProfile> = None;
        for (device, owner) in self.owners.iter().enumerate() {
            let (reply, profile) = oneshot::channel();
            owner.send(Command::Profile { profiled, timeline, reply })?;
            if let Some(profile) = profile.await.map_err(|_| Error::Disposed)? {
                let sum = sum.get_or_insert_default();
                sum.prefill.add(profile.prefill.time, &profile.prefill.steps);
                sum.decode.add(profile.decode.time, &profile.decode.steps);
                sum.timeline.add(device, profile.timeline);
            }
        }
        Ok(sum)
    }
}

//! Metrics and profiles of an engine, summed over its devices.

use setun_clock::Instant;

use super::Engine;
use crate::{
    command::{Command, MaintenanceTask},
    error::Error,
    metrics::EngineMetrics,
    profile::EngineProfile,
    sync::lock,
};

impl Engine {
    /// What was counted, after the step under way.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn metrics(&self) -> Result<EngineMetrics, Error> {
        let mut sum = EngineMetrics::default();
        for scheduler in self.schedulers.iter() {
            let metrics = |reply| Command::Maintenance(MaintenanceTask::Metrics(reply));
            sum.add(&scheduler.ask(metrics).await?);
        }
        Ok(sum)
    }

    /// What was counted up to a step that ended: the last one, or one of a millisecond before. It
    /// waits for none. Whoever has seen the end of a generation finds it counted.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub fn latest_metrics(&self) -> Result<EngineMetrics, Error> {
        let mut sum = EngineMetrics::default();
        for scheduler in self.schedulers.iter() {
            if scheduler.commands.is_closed() {
                return Err(Error::Disposed);
            }
            sum.add(&lock(&scheduler.metrics));
        }
        Ok(sum)
    }

    /// Forgets what is kept in the cache for prompts that begin as others did. What runs goes on.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub fn reset_prefix_cache(&self) -> Result<(), Error> {
        self.schedulers.iter().try_for_each(|scheduler| scheduler.send(Command::ResetPrefixCache))
    }

    /// From now on every step is timed, op by op, which costs some of its speed. Where steps are timed
    /// already, what was timed is forgotten.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn start_profile(&self) -> Result<(), Error> {
        self.set_profiled(true, None).await.map(drop)
    }

    /// As [`start_profile`](Self::start_profile), and keeps each step with its operations, the
    /// latest [`Timeline::MAX_STEPS`](crate::Timeline::MAX_STEPS) of each device.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn start_timeline(&self) -> Result<(), Error> {
        self.set_profiled(true, Some(self.shared.clock.now())).await.map(drop)
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
        for (device, scheduler) in self.schedulers.iter().enumerate() {
            let profile = |reply| Command::Profile { profiled, timeline, reply };
            if let Some(profile) = scheduler.ask(profile).await? {
                let sum = sum.get_or_insert_default();
                sum.prefill.add(profile.prefill.time, &profile.prefill.steps);
                sum.decode.add(profile.decode.time, &profile.decode.steps);
                sum.timeline.add(device, profile.timeline);
            }
        }
        Ok(sum)
    }
}

//! Masks of forms, computed beside the forward pass.
//!
//! A mask that is known before the next step limits the logits that are requested. So one that
//! is the first, or took a small part of a step the last time, is computed at once; others go to a
//! thread as soon as their text has another token, and come back while the step runs. In a browser
//! they are computed once a GPU has the step; a processor has no time beside its own, so all are
//! computed before it. Natively a mask that takes longer than a step delays its own text alone, which has
//! no rows until the mask is there.

use std::time::Duration;

use futures::channel::oneshot;
use setun_clock::Clock;

use super::Running;
use crate::{
    constraint::ConstraintState,
    device::DeviceKind,
    sequence::{Away, Prepared},
};

/// The part of a step that a mask may take before it.
pub(super) const MASKS_A_STEP: u32 = 8;

/// A state, and the way back.
type Job = (Box<dyn ConstraintState>, oneshot::Sender<Prepared>);

/// The thread that makes masks ready; it begins with the first form, and ends with its scheduler.
pub(super) struct MaskWorker {
    /// The part of a step that a mask may take before it.
    part_of_step: u32,
    /// What it may take in any case: to hand it over takes as long.
    least: Duration,
    #[cfg(not(target_family = "wasm"))]
    jobs: Option<std::sync::mpsc::Sender<Job>>,
    left: Vec<Job>, // for which there is no thread
    pub(super) clock: Clock,
}

impl Default for MaskWorker {
    fn default() -> Self {
        Self {
            part_of_step: MASKS_A_STEP,
            least: Duration::from_micros(20),
            #[cfg(not(target_family = "wasm"))]
            jobs: None,
            left: vec![],
            clock: Clock::system(),
        }
    }
}

impl MaskWorker {
    /// Has the masks of those that have had their token made ready. The next step takes about this
    /// time on a device of this kind.
    pub(super) fn prepare_all(
        &mut self,
        running: &mut [Running],
        step: Duration,
        device: DeviceKind,
    ) {
        let quick = (step / self.part_of_step).max(self.least);
        let is_beside = !cfg!(target_family = "wasm") || device != DeviceKind::Cpu;
        for running in running {
            if running.rows > 0
                && !running.sequence.is_prompt()
                && let Some(constraint) = running.sequence.constraint()
            {
                constraint.set_quick(quick);
                if constraint.is_ready() {
                    continue;
                }
                if constraint.is_quick() || !is_beside {
                    constraint.prepare(|state| prepared(state, &self.clock));
                } else {
                    constraint.send(|state| self.prepare(state));
                }
            }
        }
    }

    /// Waits for the masks of those whose next token is chosen now.
    pub(super) async fn await_all(&mut self, running: &mut [Running]) {
        self.compute_left();
        for running in running.iter_mut().filter(|running| running.rows > 0) {
            if let Some(constraint) = running.sequence.constraint() {
                constraint.wait().await;
            }
        }
    }

    /// Sends a state off.
    fn prepare(&mut self, state: Box<dyn ConstraintState>) -> Away {
        let (reply, away) = oneshot::channel();
        let left = self.send((state, reply));
        self.left.extend(left);
        away
    }

    /// Computes what no thread computes.
    pub(super) fn compute_left(&mut self) {
        for (state, reply) in self.left.drain(..) {
            let _ = reply.send(prepared(state, &self.clock));
        }
    }

    /// Gives a job back where there is no thread.
    #[cfg(not(target_family = "wasm"))]
    fn send(&mut self, job: Job) -> Option<Job> {
        if self.jobs.is_none() {
            let (jobs, queue) = std::sync::mpsc::channel::<Job>();
            let clock = self.clock.clone();
            let run = move || {
                for (state, reply) in queue {
                    // A form that panics loses its own text alone: others may have sent theirs.
                    let prepare = std::panic::AssertUnwindSafe(|| prepared(state, &clock));
                    if let Ok(prepared) = std::panic::catch_unwind(prepare) {
                        let _ = reply.send(prepared);
                    }
                }
            };
            let thread = std::thread::Builder::new().name("setun-masks".into()).spawn(run);
            self.jobs = thread.is_ok().then_some(jobs);
        }
        match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|error| error.0),
            None => Some(job),
        }
    }

    /// Gives a job back, as there are no threads.
    #[cfg(target_family = "wasm")]
    fn send(&mut self, job: Job) -> Option<Job> {
        Some(job)
    }
}

pub(super) fn prepared(mut state: Box<dyn ConstraintState>, clock: &Clock) -> Prepared {
    let begun = clock.now();
    state.prepare();
    Prepared { state, took: clock.since(begun) }
}

#[cfg(test)]
mod forced_tests;
#[cfg(test)]
mod tests;

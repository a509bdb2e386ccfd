//! Masks of forms, computed beside the forward pass.
//!
//! A state goes to a thread as soon as its text has another token. What is back before the next
//! step tells the model which logits are needed; the others come back while it runs. Where there
//! are no threads masks are computed before the step.

use futures::channel::oneshot;

use super::Owner;
use crate::{form::FormState, sequence::Away};

/// A state, and the way back.
type Job = (Box<dyn FormState>, oneshot::Sender<Box<dyn FormState>>);

/// The thread that makes masks ready; it begins with the first form, and ends with its owner.
#[derive(Default)]
pub(super) struct Masks {
    #[cfg(not(target_family = "wasm"))]
    jobs: Option<std::sync::mpsc::Sender<Job>>,
}

impl Masks {
    /// Sends a state off.
    fn prepare(&mut self, state: Box<dyn FormState>) -> Away {
        let (reply, away) = oneshot::channel();
        if let Some((mut state, reply)) = self.send((state, reply)) {
            state.prepare();
            let _ = reply.send(state);
        }
        away
    }

    /// Gives a job back where there is no thread.
    #[cfg(not(target_family = "wasm"))]
    fn send(&mut self, job: Job) -> Option<Job> {
        if self.jobs.is_none() {
            let (jobs, queue) = std::sync::mpsc::channel::<Job>();
            let run = move || {
                for (mut state, reply) in queue {
                    state.prepare();
                    let _ = reply.send(state);
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

impl Owner {
    /// Has the masks of those that have had their token made ready.
    pub(super) fn prepare_masks(&mut self) {
        for running in &mut self.running {
            if running.rows > 0
                && running.sequence.pending().len() == 1
                && let Some(followed) = running.sequence.followed()
            {
                followed.send(|state| self.masks.prepare(state));
            }
        }
    }

    /// Waits for the masks of those whose next token is chosen now.
    pub(super) async fn await_masks(&mut self) {
        for running in self.running.iter_mut().filter(|running| running.rows > 0) {
            if let Some(followed) = running.sequence.followed() {
                followed.wait().await;
            }
        }
    }
}

//! Members that are threads of our own.

use std::{
    num::NonZero,
    sync::{Arc, mpsc},
    thread::{Builder, JoinHandle, available_parallelism},
};

pub(super) use super::rendezvous::Rendezvous;
use super::rendezvous::{DEFAULT_MAX_THREADS, MAX_MEMBERS};
use crate::{error::CpuError, float_mode};

/// Most threads of a team, the caller included.
pub(crate) const MAX_THREADS: usize = MAX_MEMBERS + 1;

/// The members besides the caller. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Members {
    rendezvous: Arc<Rendezvous>,
    threads: Vec<JoinHandle<()>>,
}

impl Members {
    pub(crate) fn new(count: usize) -> Result<Self, CpuError> {
        let cores = available_parallelism().map_or(usize::MAX, NonZero::get);
        let rendezvous = Arc::new(Rendezvous::new(count, cores));
        let mut members = Self { rendezvous, threads: vec![] };
        let (report, reports) = mpsc::channel();
        for member in 1..=count {
            let (rendezvous, report) = (Arc::clone(&members.rendezvous), report.clone());
            let serve = move || {
                // The channel is closed if another member was refused.
                let _ = report.send((member, float_mode::is_ieee()));
                drop(report);
                rendezvous.serve(member, false);
            };
            let thread = Builder::new()
                .name(format!("setun-cpu-{member}"))
                .spawn(serve)
                .map_err(|source| CpuError::Spawn { member, source })?;
            members.threads.push(thread);
        }
        drop(report);
        match reports.iter().find(|&(_, is_ieee)| !is_ieee) {
            Some((member, _)) => Err(CpuError::FloatMode { member }),
            None => Ok(members),
        }
    }

    /// Members that sleep.
    #[cfg(test)]
    pub(super) fn asleep(&self) -> u32 {
        self.rendezvous.asleep()
    }

    pub(crate) fn step(&mut self, lead: impl FnOnce(Option<&Rendezvous>) + Send) {
        if self.threads.is_empty() {
            return lead(None);
        }
        self.rendezvous.begin();
        let _resting = Resting(&self.rendezvous);
        lead(Some(&self.rendezvous));
    }
}

/// Ends the step, also when the leader panics.
struct Resting<'a>(&'a Rendezvous);

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        self.0.rest();
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.rendezvous.dismiss();
        for thread in self.threads.drain(..) {
            // A member that panicked has reported to the leader already.
            let _ = thread.join();
        }
    }
}

pub(crate) fn default_threads() -> usize {
    available_parallelism().map_or(1, |threads| threads.get().min(DEFAULT_MAX_THREADS))
}

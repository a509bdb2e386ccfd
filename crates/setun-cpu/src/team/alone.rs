//! A team without members: WebAssembly without shared memory.

use super::Job;
use crate::error::CpuError;

/// Most threads of a team, the caller included.
pub(crate) const MAX_THREADS: usize = 1;

/// No members besides the caller.
#[derive(Debug)]
pub(crate) struct Members;

/// There are no members to meet.
pub(super) enum Rendezvous {}

impl Members {
    #[expect(clippy::unnecessary_wraps, reason = "where there are threads, making them may fail")]
    pub(crate) fn new(_count: usize) -> Result<Self, CpuError> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "where there are threads, they are in it")]
    pub(crate) fn step(&mut self, lead: impl FnOnce(Option<&Rendezvous>) + Send) {
        lead(None);
    }
}

impl Rendezvous {
    pub(crate) fn run(&self, _job: &Job<'_>) {
        match *self {}
    }
}

pub(crate) fn default_threads() -> usize {
    1
}

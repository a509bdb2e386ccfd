//! Members that are tasks in rayon's pool: in WebAssembly only the page can make workers.
//!
//! Where the pool has fewer workers than the team has members, some tasks begin when the step
//! is over, and leave at once.

pub(super) use super::rendezvous::Rendezvous;
use super::rendezvous::{DEFAULT_MAX_THREADS, MAX_MEMBERS};
use crate::{error::CpuError, float_mode};

/// Most threads of a team, the caller included.
pub(crate) const MAX_THREADS: usize = MAX_MEMBERS + 1;

/// The members besides the caller.
#[derive(Debug)]
pub(crate) struct Members {
    rendezvous: Rendezvous,
    count: usize,
}

impl Members {
    pub(crate) fn new(count: usize) -> Result<Self, CpuError> {
        // A page makes no more workers than it has cores for, unless it is configured to.
        Ok(Self { rendezvous: Rendezvous::new(count, usize::MAX), count })
    }

    pub(crate) fn step(&mut self, lead: impl FnOnce(Option<&Rendezvous>) + Send) {
        if self.count == 0 {
            return lead(None);
        }
        let rendezvous = &self.rendezvous;
        rendezvous.begin();
        rayon::in_place_scope(|scope| {
            for member in 1..=self.count {
                scope.spawn(move |_| {
                    debug_assert!(float_mode::is_ieee(), "WebAssembly has one float mode");
                    rendezvous.serve(member, true);
                });
            }
            lead(Some(rendezvous));
            rendezvous.rest();
            rendezvous.wake_members();
        });
    }
}

pub(crate) fn default_threads() -> usize {
    rayon::current_num_threads().clamp(1, DEFAULT_MAX_THREADS)
}

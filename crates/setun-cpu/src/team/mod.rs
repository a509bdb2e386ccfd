//! The thread team: members that work on one operation after another of a step.
//!
//! The caller leads and is member 0. Natively the others are threads of our own, asleep between
//! steps; in threaded WebAssembly they are tasks of a pool of workers, as only the page can make
//! those; elsewhere there are none. Work falls into parts that are claimed one
//! by one, so results never depend on how many members there are or which of them are awake.

#[cfg(any(not(target_arch = "wasm32"), target_feature = "atomics"))]
mod rendezvous;
#[cfg(any(not(target_arch = "wasm32"), target_feature = "atomics"))]
mod spin;
/// What the rendezvous is made of; `fuzz/loom` checks it over others.
#[cfg(any(not(target_arch = "wasm32"), target_feature = "atomics"))]
mod sync {
    pub(super) use std::sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering},
    };
}

#[cfg(not(target_arch = "wasm32"))]
#[path = "own_threads.rs"]
mod members;
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
#[path = "pool.rs"]
mod members;
#[cfg(all(target_arch = "wasm32", not(target_feature = "atomics")))]
#[path = "alone.rs"]
mod members;

use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(all(test, not(target_arch = "wasm32")))]
#[expect(dead_code, unreachable_pub, clippy::unnecessary_wraps, reason = "used in WebAssembly")]
mod pool;

pub(crate) use members::{MAX_THREADS, default_threads};
use members::{Members, Rendezvous};
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub use members::{pool_workers, serve_pool, set_pool_workers};

use crate::{error::CpuError, float_mode};

/// A job: called with the index of the member.
pub(crate) type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// A team of threads. See the [module](self).
#[derive(Debug)]
pub(crate) struct Team {
    members: Members,
    threads: usize,
}

impl Team {
    /// A team of `threads`, the caller included.
    pub(crate) fn new(threads: usize) -> Result<Self, CpuError> {
        let limit = MAX_THREADS;
        if threads == 0 || threads > limit {
            return Err(CpuError::Threads { found: threads, limit });
        }
        if !float_mode::is_ieee() {
            return Err(CpuError::FloatMode { member: 0 });
        }
        Ok(Self { members: Members::new(threads - 1)?, threads })
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs a step: `lead` gets the crew to give jobs to.
    pub(crate) fn step(&mut self, lead: impl FnOnce(&Crew<'_>) + Send) {
        let threads = self.threads;
        let jobs = AtomicUsize::new(0);
        self.members.step(|rendezvous| lead(&Crew { rendezvous, threads, jobs }));
    }
}

/// The team during a step.
pub(crate) struct Crew<'a> {
    rendezvous: Option<&'a Rendezvous>,
    threads: usize,
    jobs: AtomicUsize, // written by the leader alone
}

impl Crew<'_> {
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Jobs that this step has given so far.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Has every member that is awake call `job` once, and returns when all have returned.
    pub(crate) fn run(&self, job: &Job<'_>) {
        self.jobs.store(self.jobs() + 1, Ordering::Relaxed);
        match self.rendezvous {
            Some(rendezvous) => rendezvous.run(job),
            None => job(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// An interpreter has patience for few.
    const STEPS: usize = if cfg!(miri) { 3 } else { 200 };

    #[test]
    fn every_job_ends_before_the_next_begins() {
        for threads in [1, 2, 3, 7] {
            let mut team = Team::new(threads).unwrap();
            let done = AtomicUsize::new(0);
            for step in 0..STEPS {
                team.step(|crew| {
                    for op in 0..20 {
                        let next = AtomicUsize::new(0);
                        crew.run(&|member| {
                            assert!(member < threads);
                            while next.fetch_add(1, Ordering::Relaxed) < 10 {
                                done.fetch_add(1, Ordering::Relaxed);
                            }
                        });
                        let expected = (step * 20 + op + 1) * 10;
                        assert_eq!(done.load(Ordering::Relaxed), expected);
                    }
                });
            }
        }
    }

    #[test]
    fn members_wake_up_after_a_rest() {
        let mut team = Team::new(2).unwrap();
        for _ in 0..3 {
            while team.members.asleep() == 0 {
                std::thread::yield_now();
            }
            // Both must be inside at once, or this would never end.
            let inside = AtomicUsize::new(0);
            team.step(|crew| {
                crew.run(&|_| {
                    inside.fetch_add(1, Ordering::SeqCst);
                    while inside.load(Ordering::SeqCst) < 2 {
                        std::thread::yield_now();
                    }
                });
            });
        }
    }

    /// The member leaves about when the leader gives up spinning and goes to sleep.
    #[test]
    fn the_leader_wakes_when_the_last_member_leaves() {
        use std::time::{Duration, Instant};
        const JOBS: u64 = if cfg!(miri) { 10 } else { 10_000 };
        let mut team = Team::new(2).unwrap();
        team.step(|crew| {
            for job in 0..JOBS {
                let stay = Duration::from_nanos(15_000 + job % 200 * 100);
                let has_come = AtomicBool::new(false);
                crew.run(&|member| {
                    if member == 0 {
                        while !has_come.load(Ordering::Acquire) {
                            std::thread::yield_now();
                        }
                        return;
                    }
                    has_come.store(true, Ordering::Release);
                    let since = Instant::now();
                    while since.elapsed() < stay {
                        std::hint::spin_loop();
                    }
                });
            }
        });
    }

    #[test]
    #[should_panic(expected = "a member of the team panicked")]
    fn a_panic_does_not_hang_the_leader() {
        let mut team = Team::new(2).unwrap();
        let inside = AtomicUsize::new(0);
        team.step(|crew| {
            crew.run(&|member| {
                inside.fetch_add(1, Ordering::SeqCst);
                while inside.load(Ordering::SeqCst) < 2 {
                    std::thread::yield_now();
                }
                assert_eq!(member, 0, "on purpose");
            });
        });
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert!(matches!(Team::new(0), Err(CpuError::Threads { found: 0, .. })));
        let most = MAX_THREADS;
        assert!(matches!(Team::new(most + 1), Err(CpuError::Threads { .. })));
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn threads_that_flush_subnormals_are_refused() {
        use crate::float_mode::tests::{FLUSH_TO_ZERO, with_mode};
        let made = with_mode(FLUSH_TO_ZERO, || Team::new(2).err());
        assert!(matches!(made, Some(CpuError::FloatMode { member: 0 })));
        // A thread inherits the mode of the one that starts it.
        let made = with_mode(FLUSH_TO_ZERO, || Members::new(1).err());
        assert!(matches!(made, Some(CpuError::FloatMode { member: 1 })));
    }
}

//! Members that are tasks of a pool of workers: in WebAssembly only the page can make workers.
//!
//! All teams share the pool. A task that no worker has begun when its step is over is taken back, so
//! that a step waits only for members that leave at once.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

pub(super) use super::rendezvous::Rendezvous;
use super::{
    rendezvous::{DEFAULT_MAX_THREADS, MAX_MEMBERS},
    spin::Spin,
};
use crate::{error::CpuError, float_mode};

/// Most threads of a team, the caller included.
pub(crate) const MAX_THREADS: usize = MAX_MEMBERS + 1;

/// The workers of this module's memory, and the tasks that none has begun.
static POOL: Pool = Pool {
    workers: AtomicUsize::new(0),
    queued: AtomicUsize::new(0),
    tasks: Mutex::new(VecDeque::new()),
    begun: Condvar::new(),
    ended: Condvar::new(),
};

struct Pool {
    workers: AtomicUsize,
    /// Number of tasks; changes under the lock.
    queued: AtomicUsize,
    tasks: Mutex<VecDeque<Task>>,
    /// There are tasks.
    begun: Condvar,
    /// A task has ended.
    ended: Condvar,
}

/// A member of a team in a step.
struct Task {
    team: Arc<Shared>,
    member: usize,
}

/// What the members of a team share.
#[derive(Debug)]
struct Shared {
    rendezvous: Rendezvous,
    /// Tasks of the step that have not ended; changes under the pool's lock.
    left: AtomicUsize,
}

/// The members besides the caller.
#[derive(Debug)]
pub(crate) struct Members {
    team: Arc<Shared>,
    count: usize,
}

impl Members {
    pub(crate) fn new(count: usize) -> Result<Self, CpuError> {
        // A page makes no more workers than it has cores for, unless it is configured to.
        let rendezvous = Rendezvous::new(count, usize::MAX);
        Ok(Self { team: Arc::new(Shared { rendezvous, left: AtomicUsize::new(0) }), count })
    }

    pub(crate) fn step(&mut self, lead: impl FnOnce(Option<&Rendezvous>) + Send) {
        if self.count == 0 {
            return lead(None);
        }
        let rendezvous = &self.team.rendezvous;
        rendezvous.begin();
        POOL.add(&self.team, self.count);
        lead(Some(rendezvous));
        rendezvous.rest();
        rendezvous.wake_members();
        POOL.end(&self.team);
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, team: &Arc<Shared>, count: usize) {
        let mut tasks = self.lock();
        team.left.store(count, Ordering::Relaxed);
        tasks.extend((1..=count).map(|member| Task { team: Arc::clone(team), member }));
        self.queued.store(tasks.len(), Ordering::Release);
        drop(tasks);
        self.begun.notify_all();
    }

    /// Takes back what has not begun, and waits for the rest.
    fn end(&self, team: &Arc<Shared>) {
        let mut tasks = self.lock();
        let before = tasks.len();
        tasks.retain(|task| !Arc::ptr_eq(&task.team, team));
        self.queued.store(tasks.len(), Ordering::Release);
        let taken_back = before - tasks.len();
        team.left.fetch_sub(taken_back, Ordering::Relaxed);
        while team.left.load(Ordering::Relaxed) > 0 {
            tasks = self.ended.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Works on one task after another, for ever. A worker without one spins for a moment, as the
    /// next step often comes soon, and then sleeps.
    fn serve(&self) -> ! {
        loop {
            let mut spin = Spin::new();
            while self.queued.load(Ordering::Acquire) == 0 && spin.turn() {}
            let Task { team, member } = self.take();
            debug_assert!(float_mode::is_ieee(), "WebAssembly has one float mode");
            team.rendezvous.serve(member, true);
            let _tasks = self.lock();
            if team.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.ended.notify_all();
            }
        }
    }

    fn take(&self) -> Task {
        let mut tasks = self.lock();
        loop {
            if let Some(task) = tasks.pop_front() {
                self.queued.store(tasks.len(), Ordering::Release);
                return task;
            }
            tasks = self.begun.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Makes the calling thread a worker of the pool. It does not return.
pub fn serve_pool() -> ! {
    POOL.serve()
}

/// Says how many threads serve the pool.
pub fn set_pool_workers(count: usize) {
    POOL.workers.store(count, Ordering::Relaxed);
}

/// Threads that serve the pool.
#[must_use]
pub fn pool_workers() -> usize {
    POOL.workers.load(Ordering::Relaxed)
}

pub(crate) fn default_threads() -> usize {
    pool_workers().clamp(1, DEFAULT_MAX_THREADS)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Two teams of three members and two workers between them: each part is done once, and a member
    /// is never in a job twice.
    #[test]
    fn teams_share_the_workers() {
        const STEPS: usize = if cfg!(miri) { 3 } else { 100 };
        set_pool_workers(2);
        assert_eq!((pool_workers(), default_threads()), (2, 2));
        for _ in 0..pool_workers() {
            thread::spawn(|| serve_pool());
        }
        let work = || {
            let mut members = Members::new(3).expect("three members");
            let inside: Vec<_> = (0..=3).map(|_| AtomicUsize::new(0)).collect();
            let done = AtomicUsize::new(0);
            for step in 1..=STEPS {
                members.step(|rendezvous| {
                    let next = AtomicUsize::new(0);
                    rendezvous.expect("members").run(&|member| {
                        assert_eq!(inside[member].fetch_add(1, Ordering::SeqCst), 0);
                        while next.fetch_add(1, Ordering::SeqCst) < 8 {
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                        inside[member].fetch_sub(1, Ordering::SeqCst);
                    });
                });
                assert_eq!(done.load(Ordering::SeqCst), 8 * step);
            }
        };
        thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
    }
}

//! The rendezvous of a thread team: the leader offers a job, the members take it.
//!
//! One word says it all: whether a job is open, how many members are inside, the job's number,
//! and whether the leader sleeps. The leader opens a job, works on it itself, closes it and waits
//! until no member is inside. A member enters an open job that it has not seen, works and leaves.
//! The leader never waits for a member that has not entered: as jobs hand out their parts by claims, the others do its
//! share, so a member that the system has put to sleep costs nothing.
//!
//! A thread without work spins for a moment and then sleeps. No more members are kept awake
//! than there are cores for: more would take the cores from those that are inside.

#![expect(unsafe_code, reason = "a job borrows from the leader's stack")]

use super::{
    Job,
    spin::Spin,
    sync::{AtomicBool, AtomicPtr, AtomicU32, Condvar, Mutex, MutexGuard, Ordering, PoisonError},
};

/// Most threads that are used unless requested: beyond it memory is the limit.
pub(super) const DEFAULT_MAX_THREADS: usize = 16;

/// A job may be entered.
const OPEN: u32 = 1;
/// No step is running: members sleep, or leave where the threads are not theirs.
const RESTING: u32 = 1 << 1;
/// Members leave for good.
const OVER: u32 = 1 << 2;
/// The leader sleeps until no member is inside.
const LEADER_ASLEEP: u32 = 1 << 3;
/// One member inside; ten bits.
const ONE_INSIDE: u32 = 1 << 4;
const INSIDE: u32 = (ONE_INSIDE << 10) - ONE_INSIDE;
/// The job's number; the remaining bits, wrapping.
const ONE_JOB: u32 = ONE_INSIDE << 10;
const JOB: u32 = !(ONE_JOB - 1);

/// Most members besides the leader.
pub(crate) const MAX_MEMBERS: usize = (INSIDE / ONE_INSIDE) as usize;

/// See the [module](self).
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Rendezvous {
    state: AtomicU32,
    job: AtomicPtr<&'static Job<'static>>,
    members: u32,
    /// Members that have a core each beside the leader's; at least one.
    useful: u32,
    /// Changes under the lock, as does the next.
    asleep: AtomicU32,
    /// Those asleep that have been called and have not answered.
    waking: AtomicU32,
    panicked: AtomicBool,
    lock: Mutex<()>,
    work: Condvar,
    done: Condvar,
}

impl Rendezvous {
    /// Members that sleep.
    #[cfg(test)]
    pub(super) fn asleep(&self) -> u32 {
        self.asleep.load(Ordering::SeqCst)
    }

    /// For this many members besides the leader, and this many cores.
    pub(crate) fn new(members: usize, cores: usize) -> Self {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            state: AtomicU32::new(RESTING),
            job: AtomicPtr::new(std::ptr::null_mut()),
            members: count(members),
            useful: count(members.min(cores.saturating_sub(1).max(1))),
            asleep: AtomicU32::new(0),
            waking: AtomicU32::new(0),
            panicked: AtomicBool::new(false),
            lock: Mutex::new(()),
            work: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Leader: a step begins. Members wake up with its first job.
    pub(crate) fn begin(&self) {
        self.waking.store(0, Ordering::SeqCst);
        self.state.fetch_and(!RESTING, Ordering::SeqCst);
    }

    /// Leader: the step is over.
    pub(crate) fn rest(&self) {
        self.state.fetch_or(RESTING, Ordering::SeqCst);
    }

    /// Leader: no job will come again.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn dismiss(&self) {
        self.state.fetch_or(OVER, Ordering::SeqCst);
        self.wake_members();
    }

    /// Leader: offers `job` to the members, takes part in it, and returns when all is done.
    ///
    /// # Panics
    ///
    /// If a member panicked.
    pub(crate) fn run(&self, job: &Job<'_>) {
        // Only the leader changes the word while no job is open.
        let state = self.state.load(Ordering::Relaxed);
        let number = (state & JOB).wrapping_add(ONE_JOB);
        self.job.store((&raw const job).cast_mut().cast(), Ordering::Relaxed);
        // On every way out of this function, unwinding included, the job is closed and empty
        // before `job` goes away.
        let closing = Closing(self);
        // A swap where a store would do: emulators of ARM let the loads that follow overtake a
        // store, and a member that has just gone to sleep would not be seen.
        self.state.swap((state & !JOB) | number | OPEN, Ordering::SeqCst);
        self.wake_useful();
        job(0);
        drop(closing);
        assert!(!self.panicked.swap(false, Ordering::Relaxed), "a member of the team panicked");
    }

    /// Member: works until the team is dismissed or, with `leave_at_rest`, the step is over.
    pub(crate) fn serve(&self, member: usize, leave_at_rest: bool) {
        let mut seen = None;
        while let Some(state) = self.await_job(seen, leave_at_rest) {
            let entered = state + ONE_INSIDE;
            let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            if self.state.compare_exchange(state, entered, order, failed).is_err() {
                continue;
            }
            seen = Some(state & JOB);
            let _leaving = Leaving(self);
            // SAFETY: the leader has stored a pointer to its `&Job` before it opened the job,
            // which the exchange has seen; `Closing` keeps the leader, and with it both
            // references, until `Leaving` has let go.
            let job: &Job<'_> = unsafe { *self.job.load(Ordering::Relaxed) };
            job(member);
        }
    }

    /// Leader: wakes as many members as are missing from those that have a core.
    fn wake_useful(&self) {
        if self.missing() == 0 {
            return;
        }
        let guard = self.lock();
        let missing = self.missing();
        self.waking.fetch_add(missing, Ordering::SeqCst);
        drop(guard);
        (0..missing).for_each(|_| self.work.notify_one());
    }

    /// Members to wake; exact under the lock, and without it at most too many.
    fn missing(&self) -> u32 {
        let awake = self.awake();
        self.useful.saturating_sub(awake + self.waking.load(Ordering::SeqCst))
    }

    fn awake(&self) -> u32 {
        self.members.saturating_sub(self.asleep.load(Ordering::SeqCst))
    }

    /// The word once it shows a job that is open and not the one seen; none to leave.
    fn await_job(&self, seen: Option<u32>, leave_at_rest: bool) -> Option<u32> {
        let mut spin = Spin::new();
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state & OVER != 0 || (leave_at_rest && state & RESTING != 0) {
                return None;
            }
            let crowded = self.awake() > self.useful;
            if !crowded && state & OPEN != 0 && seen != Some(state & JOB) {
                return Some(state);
            }
            if crowded || state & RESTING != 0 || !spin.turn() {
                self.sleep(state & JOB, leave_at_rest);
                spin = Spin::new();
            }
        }
    }

    /// Sleeps until there is a job other than `number`.
    fn sleep(&self, number: u32, leave_at_rest: bool) {
        let mut guard = self.lock();
        self.asleep.fetch_add(1, Ordering::SeqCst);
        loop {
            let state = self.state.load(Ordering::SeqCst);
            let leaves = state & OVER != 0 || (leave_at_rest && state & RESTING != 0);
            if leaves || state & JOB != number {
                break;
            }
            guard = self.work.wait(guard).unwrap_or_else(PoisonError::into_inner);
            self.answer();
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// Member: has heard of a call, if there was one. One too many only makes the leader call
    /// again; one too few, and it would wait for a member that is never woken.
    fn answer(&self) {
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        let _ = self.waking.fetch_update(set, get, |waking| waking.checked_sub(1));
    }

    /// Wakes all members that have gone to sleep. A member looks at the word under the lock before
    /// it sleeps, so it either sees the change or hears of it.
    pub(crate) fn wake_members(&self) {
        drop(self.lock());
        self.work.notify_all();
    }

    fn await_empty(&self) {
        let mut spin = Spin::new();
        while self.state.load(Ordering::Acquire) & INSIDE != 0 {
            if spin.turn() {
                continue;
            }
            let mut guard = self.lock();
            let mut state = self.state.fetch_or(LEADER_ASLEEP, Ordering::AcqRel);
            while state & INSIDE != 0 {
                guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
                state = self.state.load(Ordering::Acquire);
            }
            self.state.fetch_and(!LEADER_ASLEEP, Ordering::AcqRel);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the job and waits for those inside.
struct Closing<'a>(&'a Rendezvous);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::AcqRel);
        self.0.await_empty();
    }
}

/// A member's way out, also when it panics.
struct Leaving<'a>(&'a Rendezvous);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let team = self.0;
        if std::thread::panicking() {
            team.panicked.store(true, Ordering::Relaxed);
        }
        let before = team.state.fetch_sub(ONE_INSIDE, Ordering::AcqRel);
        let is_last = before & INSIDE == ONE_INSIDE;
        if is_last && before & LEADER_ASLEEP != 0 {
            drop(team.lock());
            team.done.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    #[test]
    fn a_call_that_went_astray_does_not_leave_a_member_asleep() {
        let team = Rendezvous::new(1, 2);
        let came = AtomicBool::new(false);
        let wait_for = |condition: &dyn Fn() -> bool| {
            for _ in 0..60_000 {
                if condition() {
                    return true;
                }
                thread::sleep(Duration::from_millis(1));
            }
            false
        };
        thread::scope(|scope| {
            scope.spawn(|| team.serve(1, false));
            assert!(wait_for(&|| team.asleep.load(Ordering::SeqCst) == 1), "never asleep");
            team.waking.store(1, Ordering::SeqCst);
            team.begin();
            let in_time = AtomicBool::new(false);
            team.run(&|member| match member {
                0 => in_time.store(wait_for(&|| came.load(Ordering::SeqCst)), Ordering::SeqCst),
                _ => came.store(true, Ordering::SeqCst),
            });
            team.rest();
            team.dismiss();
            assert!(in_time.into_inner(), "the member was not woken");
        });
    }
}

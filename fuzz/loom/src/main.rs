//! Every order in which threads that share a team, a queue of events or slots can run, by loom.
//!
//! The code is that of the crates, over loom's locks and atomics. A program and not a test, because
//! the files' own tests use threads of the system.

mod events;
mod slots;
mod team;

#[expect(dead_code, reason = "a stream's other ways to take events")]
#[path = "../../../crates/setun-engine/src/event_queue.rs"]
mod event_queue;
#[expect(dead_code, reason = "some parts are for WebAssembly, others for the team around them")]
#[path = "../../../crates/setun-cpu/src/team/rendezvous.rs"]
mod rendezvous;
#[expect(dead_code, reason = "an engine counts and splits them")]
#[path = "../../../crates/setun-engine/src/request_slots.rs"]
mod request_slots;

use loom::model::Builder;
use team::{Job, spin};

/// Times that a thread may be stopped where it would have gone on. Each more takes many times as
/// long.
const PREEMPTIONS: usize = 2;

/// loom's locks and atomics in place of the standard library's.
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use loom::sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering},
    };

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

mod error {
    #[derive(Debug, PartialEq)]
    pub(crate) enum Error {
        Disposed,
    }
}

mod event {
    #[derive(Debug, PartialEq)]
    pub(crate) struct Event(pub(crate) usize);

    impl Event {
        pub(crate) fn is_token(&self) -> bool {
            self.0 > 0
        }
    }
}

mod options {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum BackPressure {
        Pause,
        End,
    }
}

fn main() {
    check("a team of one member, two jobs, then one", || team::steps(1, &[2, 1], false));
    check("a team of two members, one job", || team::steps(2, &[1], false));
    check("a team whose member leaves after each step", || team::steps(1, &[2], true));
    check("a queue for one event, of three", || events::all_come(1, 3));
    check("a queue for two events, of three", || events::all_come(2, 3));
    check("a stream that is dropped", events::is_dropped);
    check("a stream that is cancelled", events::is_cancelled);
    check("two slots, three callers", || slots::never_too_many(2, 3));
}

fn check(what: &str, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
    println!("{what}: no order fails");
}

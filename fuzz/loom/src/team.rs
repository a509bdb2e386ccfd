//! The thread team of `setun-cpu`.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use crate::rendezvous::Rendezvous;

/// A job: called with the index of the member.
pub(crate) type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// A wait that goes to sleep after one look.
pub(crate) mod spin {
    pub(crate) struct Spin(bool);

    impl Spin {
        pub(crate) fn new() -> Self {
            Self(true)
        }

        pub(crate) fn turn(&mut self) -> bool {
            loom::thread::yield_now();
            std::mem::replace(&mut self.0, false)
        }
    }
}

/// Steps with these numbers of jobs. Each part of a job is done once, before the job's end, and nobody
/// works on a job that is over.
pub(crate) fn steps(members: usize, jobs: &'static [usize], leave_at_rest: bool) {
    let team = Arc::new(Rendezvous::new(members, members + 1));
    let mut threads = vec![];
    let mut start = || {
        for member in 1..=members {
            let team = Arc::clone(&team);
            threads.push(thread::spawn(move || team.serve(member, leave_at_rest)));
        }
    };
    if !leave_at_rest {
        start();
    }
    for &jobs in jobs {
        team.begin();
        if leave_at_rest {
            start();
        }
        (0..jobs).for_each(|_| run_job(&team));
        team.rest();
        if leave_at_rest {
            team.wake_members();
        }
    }
    team.dismiss();
    for thread in threads {
        thread.join().expect("no member panics");
    }
}

fn run_job(team: &Rendezvous) {
    const PARTS: usize = 2;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let over = Arc::new(AtomicBool::new(false));
    team.run(&|_| {
        assert!(!over.load(Ordering::Relaxed), "a member works on a job that is over");
        while next.fetch_add(1, Ordering::Relaxed) < PARTS {
            done.fetch_add(1, Ordering::Relaxed);
        }
    });
    over.store(true, Ordering::Relaxed);
    assert_eq!(done.load(Ordering::Relaxed), PARTS);
}

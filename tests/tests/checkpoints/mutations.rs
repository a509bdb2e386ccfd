//! Damaged files of every format: thousands of random cuts, flips and shifted runs, each an error or
//! a checkpoint, never a panic; where bytes are hashed, never another checkpoint. Files of texts
//! beside the weights are damaged in the same way.
//!
//! A case has a format and a number, and `SETUN_MUTATION=gguf:123` runs that one alone.

mod change;
mod random;
mod subject;
mod texts;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use setun_tests::trial;

use self::{
    random::Random,
    subject::{Subject, lone_safetensors, of_extension, safetensors_folders},
};

/// Cases of each format.
const CASES: usize = 10_000;

/// A case that takes longer hangs: the slowest take milliseconds.
const HANG: Duration = Duration::from_mins(2);

const THREADS: usize = 2;

#[test]
fn safetensors_folders_do_no_harm() {
    let subjects = safetensors_folders();
    assert!(subjects.len() >= 4, "small fixtures");
    damage("safetensors", &subjects);
}

#[test]
fn lone_safetensors_files_do_no_harm() {
    damage("lone", &lone_safetensors());
}

#[test]
fn gguf_files_do_no_harm() {
    damage("gguf", &of_extension("gguf"));
}

#[test]
fn onnx_files_do_no_harm() {
    damage("onnx", &of_extension("onnx"));
}

/// Every byte that counts is hashed.
#[test]
fn containers_are_never_others() {
    damage("setun", &of_extension("setun"));
}

/// Runs the cases of a format over its subjects.
fn damage(format: &str, subjects: &[Subject]) {
    assert!(!subjects.is_empty(), "fixtures of {format}");
    run(format, CASES, |case| try_case(format, case, subjects));
}

/// Runs the cases of a format, or the one that the environment names, some at a time.
fn run(format: &str, cases: usize, try_case: impl Fn(usize) + Sync) {
    let one = std::env::var("SETUN_MUTATION").ok();
    let (begin, end) = match one.as_deref().and_then(|one| one.split_once(':')) {
        None => (0, cases),
        Some((found, case)) if found == format => {
            let case = case.parse().expect("the number of a case");
            (case, case + 1)
        }
        Some(_) => return,
    };
    let next = AtomicUsize::new(begin);
    let (sender, events) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (sender, next, try_case) = (sender.clone(), &next, &try_case);
            scope.spawn(move || {
                loop {
                    let case = next.fetch_add(1, Relaxed);
                    if case >= end || sender.send(Event::Begun(case)).is_err() {
                        break;
                    }
                    let tried = AssertUnwindSafe(|| try_case(case));
                    let event = match catch_unwind(tried) {
                        Ok(()) => Event::Ended(case),
                        Err(panic) => Event::Failed(case, said(panic)),
                    };
                    if sender.send(event).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        watch(format, &events);
    });
}

/// The outcome of a case.
enum Event {
    Begun(usize),
    Ended(usize),
    Failed(usize, String),
}

/// Follows the cases to their ends. One that does not end takes the process with it.
fn watch(format: &str, events: &mpsc::Receiver<Event>) {
    let mut under_way = vec![];
    loop {
        match events.recv_timeout(HANG) {
            Ok(Event::Begun(case)) => under_way.push(case),
            Ok(Event::Ended(case)) => under_way.retain(|other| *other != case),
            Ok(Event::Failed(case, said)) => panic!("SETUN_MUTATION={format}:{case} {said}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let cases = under_way.iter().map(|case| format!("SETUN_MUTATION={format}:{case}"));
                eprintln!("no end of {}", cases.collect::<Vec<_>>().join(" or "));
                std::process::abort();
            }
        }
    }
}

fn try_case(format: &str, case: usize, subjects: &[Subject]) {
    let mut random = Random::new(format, case);
    let subject = &subjects[random.below(subjects.len())];
    let damaged = subject.damaged(&mut random);
    let found = trial::read(&subject.source, &damaged.folder(subject));
    if let (Some(expected), Ok(found)) = (&subject.hashed, found) {
        assert!(found == *expected, "{}: another checkpoint", subject.name);
    }
}

fn said(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "panic".to_owned(), |text| (*text).to_owned())
        }
    }
}

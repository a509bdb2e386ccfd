//! Commands that are killed at any moment: what they leave is no model, the old one or the new one.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{
    Arguments, Files, clear, conversion, everything, logits, run, start, synthesis, text,
    with_force, words,
};
use crate::support::{PROMPT, STORIES, TINY, drawn_share, model, setun};

/// A command that is killed, and where it writes.
struct Killed<'a> {
    command: Arguments<'a>,
    name: &'a str,
    /// What has made the files that it takes the place of.
    before: Option<Arguments<'a>>,
}

impl Killed<'_> {
    /// Kills it at this number of moments. What is left is no model, or one that is whole; the next run
    /// ends well and leaves nothing else.
    fn rounds(&self, rounds: u32) {
        let keep = tempfile::tempdir().expect("a folder");
        let place = keep.path().join(self.name);
        let args = (self.command)(&text(&place));
        let args = if self.before.is_some() { with_force(args) } else { args };
        let old = self.prepare(keep.path());
        let begun = Instant::now();
        run(&args);
        let whole = begun.elapsed();
        let new = everything(keep.path());
        assert!(old.as_ref() != Some(&new), "two results that can be told apart");
        for round in 0..rounds {
            clear(keep.path());
            self.prepare(keep.path());
            let mut child = start(&args);
            thread::sleep(moment(round, whole));
            let _ = child.kill();
            child.wait().expect("it has ended");
            let found = everything(keep.path());
            let is_new = has(&found, &new);
            if !is_new && !old.as_ref().is_some_and(|old| has(&found, old)) {
                assert_no_model(&place, round);
            }
            let next = setun(&words(&args));
            if self.before.is_none() && is_new {
                assert!(next.stderr.contains("[bad-option]"), "round {round}: {}", next.stderr);
            } else {
                assert_eq!(next.status, Some(0), "round {round}: {}", next.stderr);
                let left = everything(keep.path());
                assert!(left == new, "round {round}: {:?}", left.keys());
            }
        }
    }

    /// Makes what is there before.
    fn prepare(&self, folder: &Path) -> Option<Files> {
        let before = self.before?;
        run(&before(&text(&folder.join(self.name))));
        Some(everything(folder))
    }
}

/// Spread over the run, and dense near its end, where files get their names.
fn moment(round: u32, whole: Duration) -> Duration {
    let share = drawn_share(round);
    whole.mul_f64(if round.is_multiple_of(2) { share } else { 1.0 - share / 5.0 })
}

fn has(found: &Files, files: &Files) -> bool {
    files.iter().all(|(name, bytes)| found.get(name) == Some(bytes))
}

/// A file has its name when it is whole. In a folder some may have theirs.
fn assert_no_model(place: &Path, round: u32) {
    assert!(!place.is_file(), "round {round}");
    let report = setun(&["verify", &text(place)]);
    assert_eq!(report.status, Some(1), "round {round}: {}", report.stdout);
}

fn conversions(rounds: u32) {
    for (format, name) in [("setun", "m.setun"), ("hf", "folder")] {
        let (old, new) = (conversion(TINY, format), conversion(STORIES, format));
        for before in [None, Some(&old as Arguments<'_>)] {
            Killed { command: &new, name, before }.rounds(rounds);
        }
    }
}

fn exports(rounds: u32) {
    let (old, new) = (logits(TINY, "1,2"), logits(TINY, "3,4,5"));
    for before in [None, Some(&old as Arguments<'_>)] {
        Killed { command: &new, name: "logits", before }.rounds(rounds);
    }
}

/// The times in a trace differ from run to run, so it is whole where it is JSON.
fn traces(rounds: u32) {
    let keep = tempfile::tempdir().expect("a folder");
    let path = keep.path().join("trace.json");
    let args = ["run", "--model", &model(STORIES), "--max-tokens", "5", "--trace", &text(&path)];
    let args: Vec<String> = args.iter().chain(&[PROMPT]).map(ToString::to_string).collect();
    let begun = Instant::now();
    setun(&words(&args)).text();
    let whole = begun.elapsed();
    let is_whole = || {
        let found = std::fs::read(&path).expect("a trace");
        serde_json::from_slice::<serde_json::Value>(&found).expect("JSON");
        everything(keep.path()).len() == 1
    };
    assert!(is_whole());
    for round in 0..rounds {
        clear(keep.path());
        let mut child = start(&args);
        thread::sleep(moment(round, whole));
        let _ = child.kill();
        child.wait().expect("it has ended");
        if path.exists() {
            is_whole();
        }
        assert_eq!(setun(&words(&with_force(args.clone()))).status, Some(0), "round {round}");
        assert!(is_whole(), "round {round}");
    }
}

#[test]
fn a_conversion_that_is_killed_leaves_nothing_half() {
    conversions(3);
}

#[test]
fn an_export_that_is_killed_leaves_nothing_half() {
    exports(3);
    traces(3);
}

#[test]
fn a_random_model_that_is_killed_leaves_nothing_half() {
    Killed { command: &synthesis("1", "hf"), name: "folder", before: None }.rounds(2);
}

#[test]
#[ignore = "350 runs that are killed"]
fn commands_that_are_killed_often_leave_nothing_half() {
    conversions(50);
    exports(50);
    traces(50);
}

#[test]
#[ignore = "150 runs that are killed, of 100 MB each"]
fn random_models_that_are_killed_often_leave_nothing_half() {
    for (format, name) in [("setun", "m.setun"), ("gguf-i2_s", "m.gguf"), ("hf", "folder")] {
        Killed { command: &synthesis("1", format), name, before: None }.rounds(50);
    }
}

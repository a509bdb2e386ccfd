//! Pairs of commands with one destination: one of them wins whole.

use super::{
    Arguments, clear, conversion, everything, logits, reports, run, start, synthesis, text,
    with_force,
};
use crate::support::{STORIES, TINY};

/// Runs pairs of commands at once on one destination. Without force one of them wins; with it at
/// least one. In either case the destination is that of one of them, and nothing else is there.
fn pairs(rounds: usize, commands: [Arguments<'_>; 2], name: &str, force: bool) {
    let expected = commands.map(|command| {
        let keep = tempfile::tempdir().expect("a folder");
        run(&command(&text(&keep.path().join(name))));
        everything(keep.path())
    });
    assert!(expected[0] != expected[1], "two results that can be told apart");
    let keep = tempfile::tempdir().expect("a folder");
    let to = text(&keep.path().join(name));
    for round in 0..rounds {
        let children = commands
            .map(|command| start(&if force { with_force(command(&to)) } else { command(&to) }));
        let outputs = children.map(|child| child.wait_with_output().expect("its end"));
        let won = outputs.iter().filter(|output| output.status.success()).count();
        assert!(won == 1 || (force && won == 2), "round {round}: {}", reports(&outputs));
        for output in outputs.iter().filter(|output| !output.status.success()) {
            let error = String::from_utf8_lossy(&output.stderr);
            let is_known = ["another process is writing", "exists already", "has files"];
            assert!(is_known.iter().any(|words| error.contains(words)), "{error}");
        }
        let found = everything(keep.path());
        assert!(expected.contains(&found), "round {round}: {:?}", found.keys());
        if !force || round % 2 == 0 {
            clear(keep.path());
        }
    }
}

fn conversions(rounds: usize) {
    for (format, name) in [("setun", "m.setun"), ("hf", "folder")] {
        let commands = [conversion(TINY, format), conversion(STORIES, format)];
        for force in [false, true] {
            pairs(rounds, [&commands[0], &commands[1]], name, force);
        }
    }
}

fn exports(rounds: usize) {
    for force in [false, true] {
        pairs(rounds, [&logits(TINY, "1,2"), &logits(TINY, "3,4,5")], "logits", force);
    }
}

#[test]
fn of_two_conversions_one_wins_whole() {
    conversions(3);
}

#[test]
fn of_two_exports_one_wins_whole() {
    exports(3);
}

#[test]
fn of_two_random_models_one_wins_whole() {
    pairs(1, [&synthesis("1", "hf"), &synthesis("2", "hf")], "folder", false);
}

#[test]
#[ignore = "120 pairs"]
fn of_two_commands_one_wins_whole_often() {
    conversions(20);
    exports(20);
}

#[test]
#[ignore = "120 pairs that write 100 MB each"]
fn of_two_random_models_one_wins_whole_often() {
    for (format, name) in [("setun", "m.setun"), ("gguf-i2_s", "m.gguf"), ("hf", "folder")] {
        for force in [false, true] {
            pairs(20, [&synthesis("1", format), &synthesis("2", format)], name, force);
        }
    }
}

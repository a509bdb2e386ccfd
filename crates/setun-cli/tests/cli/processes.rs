//! Commands that write, several at once, and killed at any moment.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Output},
    thread,
    time::{Duration, Instant},
};

use crate::{
    destinations::{contents, convert},
    support::{STORIES, TINY, command, model, setun},
};

type Files = BTreeMap<String, Vec<u8>>;

/// The arguments of a command with a destination.
type Arguments<'a> = &'a dyn Fn(&str) -> Vec<String>;

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn start(args: &[&str]) -> Child {
    command(args).spawn().expect("it starts")
}

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
        let children = commands.map(|command| {
            let mut args = command(&to);
            args.extend(force.then(|| "--force".to_owned()));
            start(&args.iter().map(String::as_str).collect::<Vec<_>>())
        });
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

fn run(args: &[String]) {
    setun(&args.iter().map(String::as_str).collect::<Vec<_>>()).text();
}

fn reports(outputs: &[Output]) -> String {
    outputs.iter().map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).collect()
}

/// Contents of a folder and of the folders in it.
fn everything(folder: &Path) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            let within = contents(&entry.path()).into_iter();
            files.extend(within.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            files.insert(name, fs::read(entry.path()).expect("a file"));
        }
    }
    files
}

fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.expect("it is removed");
    }
}

fn conversion(source: &'static str, format: &'static str) -> impl Fn(&str) -> Vec<String> {
    move |to| convert(&model(source), to, format).map(str::to_owned).to_vec()
}

fn synthesis(seed: &'static str, format: &'static str) -> impl Fn(&str) -> Vec<String> {
    move |to| {
        let args = ["synth", "--shape", "small", "--seed", seed, "--to", format, to];
        args.map(str::to_owned).to_vec()
    }
}

#[test]
fn of_two_conversions_one_wins_whole() {
    for (format, name) in [("setun", "m.setun"), ("hf", "folder")] {
        let commands = [conversion(TINY, format), conversion(STORIES, format)];
        for force in [false, true] {
            pairs(20, [&commands[0], &commands[1]], name, force);
        }
    }
}

#[test]
fn of_two_random_models_one_wins_whole() {
    pairs(1, [&synthesis("1", "hf"), &synthesis("2", "hf")], "folder", false);
}

#[test]
#[ignore = "two hundred models of 100 MB"]
fn of_two_random_models_one_wins_whole_often() {
    for (format, name) in [("setun", "m.setun"), ("gguf-i2_s", "m.gguf"), ("hf", "folder")] {
        for force in [false, true] {
            pairs(20, [&synthesis("1", format), &synthesis("2", format)], name, force);
        }
    }
}

/// Kills a command at random moments. What is left is no model or the whole one, and the next run
/// ends well and leaves nothing else.
fn kills(rounds: u32, command: Arguments<'_>, name: &str) {
    let keep = tempfile::tempdir().expect("a folder");
    let place = keep.path().join(name);
    let args = command(&text(&place));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let begun = Instant::now();
    setun(&args).text();
    let whole = begun.elapsed();
    let expected = everything(keep.path());
    clear(keep.path());
    for round in 0..rounds {
        let mut child = start(&args);
        // Spread over the run, and dense near its end, where files get their names.
        let share = f64::from(round.wrapping_mul(0x9E37_79B9) % 1000) / 1000.0;
        thread::sleep(whole.mul_f64(if round % 2 == 0 { share } else { 1.0 - share / 5.0 }));
        let _ = child.kill();
        child.wait().expect("it has ended");
        let found = everything(keep.path());
        let is_whole = expected.iter().all(|(file, bytes)| found.get(file) == Some(bytes));
        if !is_whole {
            let report = setun(&["verify", &text(&place)]);
            assert_eq!(report.status, Some(1), "round {round}: {}", report.stdout);
        }
        let next = setun(&args);
        let is_refused = is_whole && next.stderr.contains("[bad-option]");
        assert!(next.status == Some(0) || is_refused, "round {round}: {}", next.stderr);
        if !is_refused {
            assert!(everything(keep.path()) == expected, "round {round}");
        }
        clear(keep.path());
    }
}

#[test]
fn a_conversion_that_is_killed_leaves_nothing_half() {
    for (format, name) in [("setun", "m.setun"), ("hf", "folder")] {
        kills(6, &conversion(STORIES, format), name);
    }
}

#[test]
#[ignore = "500 runs, many of 100 MB"]
fn commands_that_are_killed_often_leave_nothing_half() {
    for (format, name) in [("setun", "m.setun"), ("gguf-i2_s", "m.gguf"), ("hf", "folder")] {
        kills(50, &synthesis("1", format), name);
    }
    for (format, name) in [("setun", "m.setun"), ("hf", "folder")] {
        kills(50, &conversion(STORIES, format), name);
    }
}

/// Signals that end a process remove what it has begun to write.
#[test]
fn a_signal_removes_what_is_not_whole() {
    for signal in ["-INT", "-TERM"] {
        let keep = tempfile::tempdir().expect("a folder");
        let folder = keep.path().join("folder");
        let args = synthesis("1", "hf")(&text(&folder));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut child = start(&args);
        let begun = Instant::now();
        let has_part = || {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            entries
                .into_iter()
                .any(|entry| entry.file_name().to_string_lossy().starts_with("model.safetensors."))
        };
        while !has_part() {
            assert!(begun.elapsed() < Duration::from_mins(1), "it begins to write");
            thread::sleep(Duration::from_millis(1));
        }
        let mut kill = std::process::Command::new("kill");
        kill.arg(signal).arg(child.id().to_string());
        assert!(kill.status().expect("kill").success());
        assert_eq!(child.wait().expect("its end").code(), Some(130), "{signal}");
        assert!(contents(keep.path()).is_empty(), "{signal}: {:?}", contents(keep.path()).keys());
    }
}

//! Commands that write: several at once, killed at any moment, ended by a signal, without room.

mod kills;
mod no_room;
mod pairs;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Output},
};

use crate::{
    destinations::{contents, convert},
    support::{command, model, send, setun, statuses},
    wait::wait_for,
};

type Files = BTreeMap<String, Vec<u8>>;

/// The arguments of a command with a destination.
type Arguments<'a> = &'a dyn Fn(&str) -> Vec<String>;

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

fn start(args: &[String]) -> Child {
    command(&words(args)).spawn().expect("it starts")
}

fn run(args: &[String]) {
    setun(&words(args)).text();
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

/// Logits of some tokens, so that two of them differ.
fn logits(source: &'static str, ids: &'static str) -> impl Fn(&str) -> Vec<String> {
    move |to| {
        let args = ["logits", "--model", &model(source), "--ids", ids, "--out", to];
        args.map(str::to_owned).to_vec()
    }
}

fn with_force(mut args: Vec<String>) -> Vec<String> {
    args.push("--force".to_owned());
    args
}

/// Signals that end a process remove what it has begun to write.
#[test]
fn a_signal_removes_what_is_not_whole() {
    for (signal, status) in statuses() {
        let keep = tempfile::tempdir().expect("a folder");
        let folder = keep.path().join("folder");
        let mut child = start(&synthesis("1", "hf")(&text(&folder)));
        let has_part = || {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            entries
                .into_iter()
                .any(|entry| entry.file_name().to_string_lossy().starts_with("model.safetensors."))
        };
        wait_for("a part", has_part);
        send(signal, &child);
        assert_eq!(child.wait().expect("its end").code(), Some(status), "{signal}");
        assert!(contents(keep.path()).is_empty(), "{signal}: {:?}", contents(keep.path()).keys());
    }
}

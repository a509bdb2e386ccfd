//! Signals: they end a text, a conversation or the command, and the exit status names them.

use std::{
    fs,
    io::{Read, Write},
    process::{Child, Command, Stdio},
};

use crate::{
    chat::with_template,
    support::{STORIES, command, model},
};

/// Signals that end a process, and the statuses that shells have for them.
const STATUSES: [(&str, i32); 3] = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)];

/// Options of a text that is still being written when a signal arrives, however late.
const LONG: [&str; 6] =
    ["--context-overflow", "sliding-window", "--min-tokens", "1000000", "--max-tokens", "1000000"];

/// Those that a child of this process does not ignore: under `nohup` it inherits that of SIGHUP.
pub(crate) fn statuses() -> Vec<(&'static str, i32)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Bit n of the mask is signal n + 1, and a shell's status 128 more than the signal.
    STATUSES.into_iter().filter(|(_, status)| mask >> (status - 129) & 1 == 0).collect()
}

pub(crate) fn send(signal: &str, child: &Child) {
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
}

/// In the middle of a text.
#[test]
fn a_signal_ends_the_text() {
    let stories = model(STORIES);
    let args = [&["run"][..], &LONG, &["--model", &stories, "Once upon a"]].concat();
    for (signal, status) in statuses() {
        let mut child = command(&args).spawn().expect("the command is built");
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut [0; 1]).expect("a byte");
        send(signal, &child);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("the rest");
        assert_eq!(child.wait().expect("its end").code(), Some(status));
        assert!(rest.ends_with('\n'), "{rest}");
    }
}

/// Ctrl-C stops an answer alone; what asks for the end of the process gets it.
#[test]
fn a_conversation_goes_on_after_an_interrupt_and_ends_when_it_is_terminated() {
    let (_keep, folder) = with_template();
    let args = [&["chat"][..], &LONG, &["--model", &folder]].concat();
    let mut child = command(&args).stdin(Stdio::piped()).spawn().expect("the command is built");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    for signal in ["-INT", "-TERM"] {
        stdin.write_all(b"A dog.\n").expect("it reads");
        stdout.read_exact(&mut [0; 1]).expect("a byte of an answer");
        send(signal, &child);
    }
    stdout.read_to_end(&mut vec![]).expect("the rest");
    assert_eq!(child.wait().expect("its end").code(), Some(143));
}

/// `nohup` has a process ignore SIGHUP. The other signals end it as ever.
#[test]
fn a_hangup_that_is_ignored_ends_nothing_and_an_interrupt_does() {
    let stories = model(STORIES);
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP INT; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_setun"), "run"])
        .args(LONG)
        .args(["--model", &stories, "Once upon a"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut stdout = child.stdout.take().expect("a pipe");
    for signal in ["-HUP", "-INT"] {
        stdout.read_exact(&mut [0; 1]).expect("a byte");
        send(signal, &child);
    }
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("the rest");
    assert_eq!(child.wait().expect("its end").code(), Some(130));
}

//! Signals: they end a text, a conversation or the command, and the exit status names them.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
};

use crate::support::{STORIES, command, model, send, statuses, with_chat_template};

/// Options of a text that is still being written when a signal arrives, however late.
const LONG: [&str; 6] =
    ["--context-overflow", "sliding-window", "--min-tokens", "1000000", "--max-tokens", "1000000"];

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
    let (_keep, folder) = with_chat_template();
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
        .args([crate::PROGRAM, "run"])
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

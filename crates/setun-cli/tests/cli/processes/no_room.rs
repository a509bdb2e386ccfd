//! Commands that find no room: an error, and everything as it was.

use std::{
    fs,
    process::{Command, Stdio},
};

use super::{Arguments, conversion, everything, logits, run, synthesis, text, with_force};
use crate::support::{Outcome, PROMPT, STORIES, TINY, command, model};

/// Runs a command whose files may have this number of blocks, of 512 or 1024 bytes. As on a full disk a
/// write fails; nothing has the process ignore the signal that comes with it.
fn limited(blocks: u32, args: &[String]) -> Outcome {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let program = command(&args);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -f {blocks}; exec \"$@\""), "sh"]);
    limited.arg(program.get_program()).args(program.get_args());
    limited.stdin(Stdio::null());
    let output = limited.output().expect("it runs");
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[test]
fn a_command_without_room_leaves_nothing() {
    let commands: [(Arguments<'_>, &str); 4] = [
        (&conversion(STORIES, "setun"), "m.setun"),
        (&conversion(STORIES, "hf"), "folder"),
        (&synthesis("1", "hf"), "folder"),
        (&logits(TINY, "1,2,3,4,5,6,7,8"), "logits"),
    ];
    for (command, name) in commands {
        // Room for its beginning, for the lock alone, and for nothing.
        for blocks in [4, 1, 0] {
            let keep = tempfile::tempdir().expect("a folder");
            let error = limited(blocks, &command(&text(&keep.path().join(name)))).failure();
            assert!(error.contains("[storage-full]") && error.contains(name), "{error}");
            let left: Vec<_> = fs::read_dir(keep.path()).expect("the folder").flatten().collect();
            assert!(left.is_empty(), "{blocks}: {left:?}");
        }
    }
}

#[test]
fn a_command_without_room_keeps_what_it_was_to_overwrite() {
    for (format, name) in [("setun", "m.setun"), ("hf", "folder")] {
        let keep = tempfile::tempdir().expect("a folder");
        let to = text(&keep.path().join(name));
        run(&conversion(TINY, format)(&to));
        let before = everything(keep.path());
        for blocks in [4, 0] {
            let again = with_force(conversion(STORIES, format)(&to));
            assert!(limited(blocks, &again).failure().contains("[storage-full]"));
            assert!(everything(keep.path()) == before, "{name}");
        }
    }
}

#[test]
fn a_trace_without_room_is_told_after_its_text() {
    let keep = tempfile::tempdir().expect("a folder");
    let to = text(&keep.path().join("trace.json"));
    let args = ["run", "--model", &model(STORIES), "--max-tokens", "5", "--trace", &to, PROMPT];
    let found = limited(1, &args.map(str::to_owned));
    assert!(!found.stdout.trim().is_empty());
    assert!(found.failure().contains("[storage-full]"));
    assert!(everything(keep.path()).is_empty());
}

//! Pulls that find no room: a limit of the process, and a disk that is full.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{MB, PATH, bytes, in_store, noted, outcome};
use crate::{server::Server, small_disk::Mounted};

/// With one connection, as chunks that come together stop together.
fn pull(home: &TempDir, address: &str) -> Command {
    in_store(home, &["models", "pull", "--chunk-size", "1", "--connections", "1", address])
}

#[test]
fn a_file_that_may_not_grow_is_reported_and_continued() {
    let server = Server::start();
    let content = bytes(6 * MB);
    server.put(PATH, content.clone(), "\"first\"");
    let home = tempfile::tempdir().expect("a folder");
    // A file may have 2.8 or 5.6 MB: shells count in 512 or 1024 bytes.
    let pulling = pull(&home, &server.at(PATH));
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 5500; exec \"$@\"", "sh"]);
    limited.arg(pulling.get_program()).args(pulling.get_args());
    for (name, value) in pulling.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.stdout(Stdio::piped()).stderr(Stdio::piped());
    let error = outcome(limited).failure();
    assert!(error.contains("[storage-full]") && error.contains("m.gguf.part"), "{error}");
    let left = 6 * MB - noted(&home).len() as u64 * MB;
    assert!(error.contains("bytes are still to be written") && left >= MB, "{error}");
    goes_on(&server, &home, &content);
}

/// The rest comes once there is room, and nothing else.
fn goes_on(server: &Server, home: &TempDir, content: &[u8]) {
    let there = noted(home);
    assert!(!there.is_empty(), "what has come is kept");
    let listed = outcome(in_store(home, &["models", "list"])).text();
    assert_eq!(listed, "");
    server.requests();
    let path = outcome(pull(home, &server.at(PATH))).text();
    assert_eq!(std::fs::read(path.trim()).expect("the file"), content);
    let starts: Vec<u64> =
        (0..6).filter(|chunk| !there.contains(chunk)).map(|chunk| chunk * MB).collect();
    assert_eq!(server.starts(PATH), starts);
}

#[test]
fn a_full_disk_is_reported_and_the_pull_continued() {
    let home = tempfile::tempdir().expect("a folder");
    let Some(disk) = Mounted::new(home.path(), "4m") else { return };
    let server = Server::start();
    let content = bytes(6 * MB);
    server.put(PATH, content.clone(), "\"first\"");
    let error = outcome(pull(&home, &server.at(PATH))).failure();
    assert!(error.contains("[storage-full]") && error.contains("m.gguf.part"), "{error}");
    disk.resize("32m");
    goes_on(&server, &home, &content);
}

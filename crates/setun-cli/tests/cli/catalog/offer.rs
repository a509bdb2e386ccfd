//! The offer to pull a model that is not in the store, or is damaged, to somebody at a terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    process::Stdio,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use setun::hub::catalog;

use super::{mirror::put, repository::repository};
use crate::{models::in_store, server::Server};

/// A terminal: the side of who sits at it, and that of the command.
fn terminal() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&person).expect("its other side");
    unlockpt(&person).expect("its other side");
    let name = ptsname(&person, vec![]).expect("a name").into_string().expect("UTF-8");
    let command = OpenOptions::new().read(true).write(true).open(name).expect("its other side");
    (person.into(), command)
}

/// What the terminal shows until it has this at its end, or the command has closed it.
fn shown_until(person: &mut File, end: &str) -> String {
    let (mut shown, mut byte) = (vec![], [0]);
    // Linux fails where the other side is closed.
    while !shown.ends_with(end.as_bytes()) && person.read(&mut byte).is_ok_and(|read| read == 1) {
        shown.push(byte[0]);
    }
    String::from_utf8(shown).expect("UTF-8")
}

/// Runs a model at a terminal, where somebody answers: status, standard output, and the rest of what
/// the terminal shows.
fn answered(
    home: &tempfile::TempDir,
    server: &Server,
    name: &str,
    offered: &str,
    answer: &str,
) -> (Option<i32>, String, String) {
    let (mut person, side) = terminal();
    let mut command = in_store(home, &["run", "--model", name, "--max-tokens", "2", "Hi"]);
    command.env("HF_ENDPOINT", server.at("")).stdin(side.try_clone().expect("a side"));
    let mut running = command.stderr(side).stdout(Stdio::piped()).spawn().expect("the command");
    drop(command); // it has the sides, and the terminal is open as long
    let question = shown_until(&mut person, "[y/N] ");
    assert!(question.contains(offered), "{question}");
    person.write_all(answer.as_bytes()).expect("a terminal");
    let rest = shown_until(&mut person, "\0");
    let mut text = String::new();
    running.stdout.take().expect("a pipe").read_to_string(&mut text).expect("UTF-8");
    (running.wait().expect("a status").code(), text, rest)
}

#[test]
fn a_model_is_pulled_where_somebody_says_yes() {
    let server = Server::start();
    let entry = catalog().iter().find(|entry| entry.format != "gguf").expect("an entry");
    put(&server, &entry.repository, &repository(entry));
    let home = tempfile::tempdir().expect("a folder");
    let name = &entry.name;
    let from = format!("from {} (licence {})", entry.repository, entry.licence);
    let pull = format!("setun models pull {}", entry.name);
    let [not_here, offered] = [format!("{name} is not here: pull "), from];
    let (status, text, rest) = answered(&home, &server, name, &not_here, "n\n");
    assert_eq!((status, &*text), (Some(1), ""), "{rest}");
    assert!(rest.contains("[not-found]") && rest.contains(&pull), "{rest}");
    let (status, text, rest) = answered(&home, &server, name, &offered, "yes\n");
    assert_eq!(status, Some(0), "{rest}");
    assert!(!text.is_empty());
    // It is there from now on, and nobody is asked.
    let mut again = in_store(&home, &["run", "--model", &entry.name, "--max-tokens", "2", "Hi"]);
    let again = again.env("SETUN_OFFLINE", "1").output().expect("the command");
    assert_eq!(again.status.code(), Some(0));
}

#[test]
fn a_repository_that_the_catalog_lacks_is_offered_too() {
    let server = Server::start();
    let entry = catalog().iter().find(|entry| entry.format != "gguf").expect("an entry");
    put(&server, "owner/name", &repository(entry));
    let home = tempfile::tempdir().expect("a folder");
    let offered = format!("pull it from {}", server.at("").trim_end_matches('/'));
    let (status, text, rest) = answered(&home, &server, "owner/name", &offered, "y\n");
    assert_eq!(status, Some(0), "{rest}");
    assert!(!text.is_empty());
}

#[test]
fn a_damaged_model_is_pulled_again_where_somebody_says_yes() {
    let server = Server::start();
    let entry = catalog().iter().find(|entry| entry.format != "gguf").expect("an entry");
    put(&server, "owner/name", &repository(entry));
    let home = tempfile::tempdir().expect("a folder");
    let mut pull = in_store(&home, &["models", "pull", "owner/name"]);
    let pulled = pull.env("HF_ENDPOINT", server.at("")).output().expect("the command");
    let folder = String::from_utf8(pulled.stdout).expect("UTF-8");
    std::fs::write(format!("{}/config.json", folder.trim()), "short").expect("damage");
    let damage = "`config.json` has 5 bytes, expected ";
    let (status, text, rest) = answered(&home, &server, "owner/name", damage, "n\n");
    assert_eq!((status, &*text), (Some(1), ""), "{rest}");
    let offered = "Pull what is wrong with it again?";
    let (status, text, rest) = answered(&home, &server, "owner/name", offered, "y\n");
    assert_eq!(status, Some(0), "{rest}");
    assert!(!text.is_empty());
}

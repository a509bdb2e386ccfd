//! Processes that pull and remove one model at once, or are killed at any moment.

use std::{
    io::{BufRead, BufReader},
    process::Output,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{MB, PATH, bytes, in_store, outcome};
use crate::{
    server::{Act, Server},
    support::drawn_share,
    wait::wait_for,
};

/// A server with a file of three chunks.
fn served() -> (Server, Vec<u8>) {
    let (server, content) = (Server::start(), bytes(2 * MB + 1000));
    server.put(PATH, content.clone(), "\"first\"");
    (server, content)
}

fn arguments(verb: &str, address: &str) -> Vec<String> {
    let more: &[&str] = if verb == "pull" { &["--chunk-size", "1"] } else { &[] };
    let words = [&["models", verb], more, &[address]].concat();
    words.into_iter().map(str::to_owned).collect()
}

/// Runs two commands at once.
fn at_once(home: &TempDir, commands: [Vec<String>; 2]) -> [Output; 2] {
    let children = commands.map(|args| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        in_store(home, &args).spawn().expect("it starts")
    });
    children.map(|child| child.wait_with_output().expect("its end"))
}

/// The model is whole and verified, or absent.
fn is_whole(home: &TempDir, address: &str, content: &[u8]) -> bool {
    let listed = outcome(in_store(home, &["models", "list"])).text();
    let found = outcome(in_store(home, &["models", "path", address]));
    assert_eq!(listed.is_empty(), found.status == Some(1), "{listed}{}", found.stderr);
    if found.status == Some(0) {
        assert!(std::fs::read(found.stdout.trim()).expect("the file") == content);
        // It is no model, but its bytes are those that were pulled.
        let verified = outcome(in_store(home, &["models", "verify", address]));
        assert!(verified.stdout.contains("good"), "{}{}", verified.stdout, verified.stderr);
    }
    found.status == Some(0)
}

/// Of two that remove one does; of two that pull one downloads.
fn pulls_and_removals(rounds: u64) {
    let (server, content) = served();
    let address = server.at(PATH);
    let home = tempfile::tempdir().expect("a folder");
    for round in 0..rounds {
        let pulled = at_once(&home, [arguments("pull", &address), arguments("pull", &address)]);
        assert!(pulled.iter().all(|output| output.status.success()), "round {round}");
        assert!(is_whole(&home, &address, &content));
        let removed = at_once(&home, [arguments("rm", &address), arguments("rm", &address)]);
        let done = removed.iter().filter(|output| output.status.success()).count();
        assert_eq!(done, 1, "round {round}");
        let errors = removed.iter().map(|output| String::from_utf8_lossy(&output.stderr));
        assert!(errors.into_iter().any(|error| error.contains("[not-found]")), "round {round}");
        assert!(!is_whole(&home, &address, &content));
    }
    assert_eq!(server.sent(), rounds * content.len() as u64);
}

/// One that pulls and one that removes leave all or nothing.
fn opposites(rounds: u64) {
    let (server, content) = served();
    let address = server.at(PATH);
    let home = tempfile::tempdir().expect("a folder");
    for round in 0..rounds {
        let [pulled, removed] =
            at_once(&home, [arguments("pull", &address), arguments("rm", &address)]);
        assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
        let error = String::from_utf8_lossy(&removed.stderr);
        assert!(removed.status.success() || error.contains("[not-found]"), "{round}: {error}");
        is_whole(&home, &address, &content);
    }
}

#[test]
fn two_processes_at_once_do_the_work_of_one() {
    pulls_and_removals(3);
    opposites(3);
}

#[test]
#[ignore = "60 pairs of processes"]
fn two_processes_at_once_often_do_the_work_of_one() {
    pulls_and_removals(20);
    opposites(20);
}

/// Kills a command at moments that are spread over its run, and finishes it.
fn kills(verb: &str, rounds: u32) {
    let (server, content) = served();
    let address = server.at(PATH);
    let home = tempfile::tempdir().expect("a folder");
    let run = |verb: &str| {
        let args = arguments(verb, &address);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        in_store(&home, &args)
    };
    if verb == "rm" {
        outcome(run("pull"));
    }
    let begun = Instant::now();
    outcome(run(verb));
    let whole = begun.elapsed();
    for round in 0..rounds {
        if verb == "rm" {
            outcome(run("pull"));
        } else {
            outcome(run("rm"));
        }
        let share = drawn_share(round);
        let mut child = run(verb).spawn().expect("it starts");
        thread::sleep(whole.mul_f64(share));
        let _ = child.kill();
        child.wait().expect("it has ended");
        let was_whole = is_whole(&home, &address, &content);
        let next = outcome(run(verb));
        let is_gone = verb == "rm" && !was_whole && next.stderr.contains("[not-found]");
        assert!(next.status == Some(0) || is_gone, "round {round}: {}", next.stderr);
        assert_eq!(is_whole(&home, &address, &content), verb == "pull", "round {round}");
    }
}

#[test]
fn a_pull_that_is_killed_at_any_moment_ends_well_the_next_time() {
    kills("pull", 6);
}

#[test]
fn a_removal_that_is_killed_at_any_moment_ends_well_the_next_time() {
    kills("rm", 6);
}

#[test]
#[ignore = "hundreds of processes"]
fn commands_of_the_store_that_are_killed_often_end_well_the_next_time() {
    for verb in ["pull", "rm"] {
        kills(verb, 50);
    }
    kills_of_aliases(50);
}

/// Kills a process that sets an alias: the others are there whatever happens, and so is this one
/// after the next.
fn kills_of_aliases(rounds: u32) {
    let home = tempfile::tempdir().expect("a folder");
    let set = |alias: &str| in_store(&home, &["models", "alias", alias, "o/n"]);
    let begun = Instant::now();
    outcome(set("first")).text();
    let whole = begun.elapsed();
    let mut expected = vec!["first".to_owned()];
    for round in 0..rounds {
        let alias = format!("alias{round}");
        let mut child = set(&alias).spawn().expect("it starts");
        let share = drawn_share(round);
        thread::sleep(whole.mul_f64(share));
        let _ = child.kill();
        child.wait().expect("it has ended");
        let mut found = aliases(&home);
        found.retain(|found| *found != alias);
        assert_eq!(found, expected, "round {round}");
        outcome(set(&alias)).text();
        expected.push(alias);
        expected.sort();
        assert_eq!(aliases(&home), expected, "round {round}");
    }
    let left = std::fs::read_dir(home.path()).expect("the store").flatten();
    let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["aliases.json", "locks"]);
}

fn aliases(home: &TempDir) -> Vec<String> {
    let listed = outcome(in_store(home, &["models", "alias", "--json"])).json();
    listed.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn an_alias_that_is_killed_loses_no_other() {
    kills_of_aliases(6);
}

#[test]
fn a_removal_says_that_it_waits_for_a_pull() {
    let (server, _) = served();
    let address = server.at(PATH);
    let home = tempfile::tempdir().expect("a folder");
    let go = super::hold_after_first_chunk(&server);
    let args = arguments("pull", &address);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let pulling = in_store(&home, &args).spawn().expect("it starts");
    wait_for("a chunk", || !super::noted(&home).is_empty());
    let mut removing = in_store(&home, &["models", "rm", &address]).spawn().expect("it starts");
    let mut reported = String::new();
    let stderr = removing.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut reported).expect("a line");
    assert!(reported.contains("another process pulls or removes this model"), "{reported}");
    super::kill(pulling);
    go.store(true, Ordering::Relaxed);
    assert!(removing.wait().expect("its end").success());
    assert!(outcome(in_store(&home, &["models", "list", "--unfinished"])).text().is_empty());
}

/// What has come is kept, whatever ends the process.
#[test]
fn a_pull_that_is_terminated_goes_on() {
    let (server, content) = served();
    let address = server.at(PATH);
    let home = tempfile::tempdir().expect("a folder");
    let go = super::hold_after_first_chunk(&server);
    let args = arguments("pull", &address);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut child = in_store(&home, &args).spawn().expect("it starts");
    wait_for("a chunk", || !super::noted(&home).is_empty());
    crate::support::send("-TERM", &child);
    assert_eq!(child.wait().expect("its end").code(), Some(143));
    let there = super::noted(&home);
    assert!(!there.is_empty());
    server.clear_rules();
    go.store(true, Ordering::Relaxed);
    wait_for("the end of its connections", || server.connections() == 0);
    server.sent();
    outcome(in_store(&home, &args)).text();
    assert!(is_whole(&home, &address, &content));
    let missing = (0..3).filter(|chunk| !there.contains(chunk));
    let sizes = missing.map(|chunk| if chunk == 2 { 1000 } else { MB });
    assert_eq!(server.sent(), sizes.sum::<u64>(), "{there:?} were there");
}

#[test]
fn a_pull_ends_at_its_deadline() {
    let (server, content) = served();
    let address = server.at(PATH);
    let home = tempfile::tempdir().expect("a folder");
    server.rule(PATH, usize::MAX, Act::Slow(Duration::from_hours(1)));
    let args = ["models", "pull", "--timeout", "1", &address];
    let error = outcome(in_store(&home, &args)).failure();
    assert!(error.contains("[network]") && error.contains("reached its deadline"), "{error}");
    server.clear_rules();
    outcome(in_store(&home, &["models", "pull", &address])).text();
    assert!(is_whole(&home, &address, &content));
}

#[test]
fn a_pull_that_waits_for_an_answer_says_so() {
    // The system takes connections, and nobody answers them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/m.gguf", silent.local_addr().expect("an address"));
    let home = tempfile::tempdir().expect("a folder");
    let mut pull = in_store(&home, &["models", "pull", "--timeout", "5", &address]);
    let output = pull.output().expect("its end");
    let words = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(words.starts_with(&format!("connecting to {address}\n")), "{words}");
    assert!(words.contains("reached its deadline"), "{words}");
}

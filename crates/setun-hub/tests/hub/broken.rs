//! Connections that break, servers that refuse, lengths that lie: pulls go on, and ask for no
//! byte twice that is there.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use setun_clock::Clock;
use setun_hub::{Error, PullEvent};

use crate::{
    server::{Act, Server},
    support::{CHUNK, PIECE, TestStore, bytes},
};

const PATH: &str = "/models/m.gguf";

/// A server with a file of five chunks and a bit.
fn served() -> (Server, Vec<u8>) {
    let server = Server::start();
    let content = bytes(5 * PIECE + 100, 1);
    server.put(PATH, content.clone(), "\"first\"");
    (server, content)
}

const STARTS: [u64; 6] = [0, CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK, 5 * CHUNK];

#[test]
fn each_chunk_is_asked_for_once() {
    let (server, content) = served();
    let env = TestStore::new(&server);
    let model = env.pull(&server.at(PATH)).unwrap();
    assert_eq!(server.starts(PATH), STARTS);
    assert_eq!(server.sent(), content.len() as u64);
    assert_eq!(std::fs::read(model.path(None).unwrap()).unwrap(), content);
    assert_eq!(env.files(), ["m.gguf", "manifest.json"]);
    let received = env.events().into_iter().map(|event| match event {
        PullEvent::Received { bytes, .. } => bytes,
        _ => 0,
    });
    assert_eq!(received.sum::<u64>(), content.len() as u64);
    // Once more: only what comes before the bytes.
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(server.sent(), 0);
    assert!(env.events().iter().any(|event| matches!(event, PullEvent::AlreadyStored { .. })));
}

#[test]
fn a_broken_connection_is_taken_up_where_it_broke() {
    let (server, content) = served();
    server.rule_at(PATH, 2 * CHUNK, 1, Act::Break(40_000));
    let env = TestStore::new(&server);
    env.pull(&server.at(PATH)).unwrap();
    let mut expected = STARTS.to_vec();
    expected.insert(3, 2 * CHUNK + 40_000);
    assert_eq!(server.starts(PATH), expected);
    assert_eq!(server.sent(), content.len() as u64);
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), content);
}

#[test]
fn a_server_that_always_breaks_is_given_up_and_taken_up_later() {
    let (server, content) = served();
    server.rule_at(PATH, 3 * CHUNK, usize::MAX, Act::Break(0));
    let mut env = TestStore::new(&server);
    env.options.attempts = 3;
    env.options.connections = 1;
    let error = env.pull(&server.at(PATH)).unwrap_err();
    assert!(matches!(error, Error::Network { .. }), "{error}");
    assert_eq!(server.starts(PATH), [0, CHUNK, 2 * CHUNK, 3 * CHUNK, 3 * CHUNK, 3 * CHUNK]);
    env.assert_nothing_listed(&server.at(PATH));
    server.clear_rules();
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(server.starts(PATH), STARTS[3..]);
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), content);
}

#[test]
fn a_length_that_is_too_long_or_too_short_is_found() {
    for act in [Act::SayMore(10), Act::SayFewer(10), Act::Chunked(1), Act::Chunked(0)] {
        let (server, content) = served();
        server.rule_at(PATH, CHUNK, 1, act.clone());
        let env = TestStore::new(&server);
        env.pull(&server.at(PATH)).unwrap();
        assert_eq!(env.read(&server.at(PATH), "m.gguf"), content, "{act:?}");
    }
}

#[test]
fn a_length_that_stays_wrong_is_an_error() {
    for act in [Act::SayMore(10), Act::Chunked(1)] {
        let (server, _) = served();
        server.rule_at(PATH, CHUNK, usize::MAX, act.clone());
        let mut env = TestStore::new(&server);
        env.options.attempts = 2;
        let error = env.pull(&server.at(PATH)).unwrap_err();
        assert!(matches!(error, Error::SizeMismatch { expected: CHUNK, .. }), "{act:?}: {error}");
        env.assert_nothing_listed(&server.at(PATH));
    }
}

#[test]
fn refusals_are_waited_for() {
    let (server, content) = served();
    let after = |seconds: &str| vec![("retry-after", seconds.to_owned())];
    server.rule_at(PATH, 0, 1, Act::Status(429, after("1")));
    server.rule_at(PATH, CHUNK, 2, Act::Status(500, vec![]));
    server.rule_at(PATH, 2 * CHUNK, 1, Act::Status(503, after("0")));
    server.rule_of_all(PATH, 1, Act::Status(502, vec![]));
    let mut env = TestStore::new(&server);
    env.options.clock = Clock::held(); // waits take no time
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), content);
    let wait = |event| match event {
        PullEvent::Retry { wait, .. } => Some(wait),
        _ => None,
    };
    let waits: Vec<_> = env.events().into_iter().filter_map(wait).collect();
    assert_eq!(waits.len(), 5);
    let second = Duration::from_secs(1);
    assert_eq!(waits.iter().filter(|wait| **wait >= second).count(), 1, "as the server asked");
}

#[test]
fn a_server_that_asks_for_too_long_a_wait_is_told_of() {
    let (server, _) = served();
    server.rule(PATH, 1, Act::Status(429, vec![("retry-after", "3600".into())]));
    let error = TestStore::new(&server).pull(&server.at(PATH)).unwrap_err();
    assert!(matches!(error, Error::RateLimited { wait, .. } if wait.as_secs() == 3600), "{error}");
}

#[test]
fn refusals_for_good_are_not_tried_again() {
    let (server, _) = served();
    server.rule(PATH, usize::MAX, Act::Status(403, vec![]));
    let mut env = TestStore::new(&server);
    env.options.connections = 1;
    let error = env.pull(&server.at(PATH)).unwrap_err();
    assert!(matches!(error, Error::HttpStatus { status: 403, .. }), "{error}");
    assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    assert_eq!(server.starts(PATH).len(), 1);
}

#[test]
fn a_server_without_parts_sends_the_file_once() {
    let (server, content) = served();
    server.rule_of_all(PATH, usize::MAX, Act::IgnoreRange);
    let env = TestStore::new(&server);
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), content);
    let whole = env
        .events()
        .into_iter()
        .filter(|event| matches!(event, PullEvent::RangesUnsupported { .. }));
    assert_eq!(whole.count(), 1);
    // One try for a part, and the whole.
    assert_eq!(server.starts(PATH), [0, u64::MAX]);
}

#[test]
fn what_came_without_parts_is_kept_should_there_be_parts_later() {
    let (server, content) = served();
    server.rule_of_all(PATH, 3, Act::IgnoreRange); // HEAD to plan, HEAD to begin, a part
    server.rule(PATH, 1, Act::Break(2 * PIECE + 10));
    let env = TestStore::new(&server);
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), content);
    let mut expected = vec![0];
    expected.extend(&STARTS[2..]);
    expected.push(u64::MAX);
    assert_eq!(server.starts(PATH), expected);
}

#[test]
fn a_pull_that_is_cancelled_stops_and_goes_on_later() {
    let (server, content) = served();
    server.rule_at(PATH, 4 * CHUNK, 1, Act::Slow(Duration::from_hours(1)));
    let mut env = TestStore::new(&server);
    let cancel = Arc::new(AtomicBool::new(false));
    env.options.connections = 1;
    env.options.cancel = Arc::clone(&cancel);
    let stop = |event| {
        if matches!(event, PullEvent::Received { .. }) && server.sent_so_far() > 4 * CHUNK {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let error = env.store.pull(&server.at(PATH), &env.options, &stop).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    env.assert_nothing_listed(&server.at(PATH));
    server.requests();
    env.options.cancel = Arc::default();
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(server.starts(PATH), STARTS[4..]);
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), content);
}

#[test]
fn an_empty_file_is_a_file() {
    let server = Server::start();
    server.put("/e.gguf", [], "\"e\"");
    let env = TestStore::new(&server);
    env.pull(&server.at("/e.gguf")).unwrap();
    assert_eq!(env.read(&server.at("/e.gguf"), "e.gguf"), b"");
}

//! Servers that are too slow, and pulls that may not take longer.

use std::{net::TcpListener, time::Duration};

use setun_clock::Clock;
use setun_hub::{Error, ErrorKind, PullEvent};

use crate::{
    server::{Act, Server},
    support::{PIECE, TestStore, bytes, hub_path, list_path, put_hub},
};

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_left() {
    let server = Server::start();
    let content = bytes(2 * PIECE, 1);
    put_hub(&server, "o/n", &[("m.gguf", &content)]);
    let mut env = TestStore::new(&server);
    env.options.attempts = 2;
    env.options.connections = 1;
    // Each look at the clock finds that some minutes have passed, and nobody sends so much in some.
    env.options.clock = Clock::ticking(env.options.read_timeout / 2);
    env.options.min_speed = 1 << 30;
    let window = env.options.read_timeout.as_secs();
    let trickle = Act::Trickle(Duration::from_millis(1));
    for path in [hub_path("o/n", "m.gguf"), list_path("o/n", "main")] {
        server.rule(&path, usize::MAX, trickle.clone());
        let error = env.pull("o/n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Network);
        let expected = format!("bytes came in {window}.0 s, expected {}", window << 30);
        assert!(error.to_string().contains(&expected), "{error}");
        server.clear_rules();
    }
    // The bytes that came are kept.
    env.options.clock = Clock::held();
    env.pull("o/n").unwrap();
    assert_eq!(env.read("o/n", "m.gguf"), content);
}

#[test]
fn a_pull_ends_at_its_deadline_and_keeps_what_has_come() {
    let server = Server::start();
    let content = bytes(4 * PIECE, 1);
    put_hub(&server, "o/n", &[("m.gguf", &content)]);
    let mut env = TestStore::new(&server);
    env.options.deadline = Some(env.options.clock.now());
    let error = env.pull("o/n").unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded), "{error}");
    assert!(server.requests().is_empty());
    // In the midst of a chunk that never ends.
    let trickle = Act::Trickle(Duration::from_millis(5));
    server.rule_at(&hub_path("o/n", "m.gguf"), 3 * PIECE as u64, usize::MAX, trickle);
    env.options.min_speed = 0;
    env.options.deadline = Some(env.options.clock.now() + Duration::from_millis(300));
    let error = env.pull("o/n").unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded), "{error}");
    server.clear_rules();
    env.options.deadline = None;
    env.pull("o/n").unwrap();
    assert_eq!(env.read("o/n", "m.gguf"), content);
}

/// A server that takes the connection and never says a word. Without the deadline it would be waited
/// for an hour.
#[test]
fn a_pull_ends_at_its_deadline_while_it_connects() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/m.gguf", silent.local_addr().unwrap());
    let mut env = TestStore::with(|_| ());
    // It stands still, so that the connection always has its time, which is the system's.
    env.options.clock = Clock::held();
    env.options.read_timeout = Duration::from_hours(1);
    for attempts in [1, 6] {
        env.options.attempts = attempts;
        env.options.deadline = Some(env.options.clock.now() + Duration::from_millis(200));
        let error = env.pull(&address).unwrap_err();
        assert!(matches!(error, Error::DeadlineExceeded), "{error}");
    }
    assert_eq!(env.events().len(), 2, "each time one that it connects, and no other attempt");
}

#[test]
fn what_is_asked_is_told_before_it_answers() {
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(100, 1))]);
    let env = TestStore::new(&server);
    env.pull("o/n").unwrap();
    let asked: Vec<_> = env
        .events()
        .into_iter()
        .filter_map(|event| match event {
            PullEvent::Connecting { address } => Some(address),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [server.at(""), server.at(&hub_path("o/n", "m.gguf"))]);
}

//! Servers behind a proxy that are killed or drained.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::json;

use super::{
    BLOCK,
    cluster::{Balance, Cluster},
    replay::{Answer, Client, Pace, send, served_by},
    trace::{Conversations, Request},
};
use crate::support::send as signal;

/// Room for all conversations on each server.
const ROOM: usize = 720 * BLOCK;

/// Tokens of a stream that is open when a server ends.
const TOKENS: usize = 400;

/// The requests of each turn.
fn rounds(crowd: &Conversations) -> Vec<Vec<Request>> {
    let mut taken = BTreeMap::<String, usize>::new();
    let mut rounds = vec![vec![]; usize::try_from(crowd.turns).expect("few")];
    for request in crowd.requests(2) {
        let turn = taken.entry(request.key.clone()).or_default();
        rounds[*turn].push(request);
        *turn += 1;
    }
    for round in &mut rounds {
        round.sort_by(|a, b| a.key.cmp(&b.key));
    }
    rounds
}

/// Whether all whole blocks of the prompt before were found.
fn is_hit(answer: &Answer, earlier: &Request) -> bool {
    usize::try_from(answer.cached_tokens).expect("few") >= earlier.length() / BLOCK * BLOCK
}

/// Requests come one at a time, so no bound moves one.
#[test]
#[ignore = "needs HAProxy"]
fn conversations_of_a_killed_server_miss_once_and_no_others_do() {
    let rounds = rounds(&Conversations { count: 60, systems: 6, turns: 4 });
    let mut cluster = Cluster::start(Balance::Committed, ROOM);
    let address = cluster.address.clone();
    let turn = |turn: usize| send(&rounds[turn], &address, Pace::Open(1));
    let (first, second) = (turn(0), turn(1));
    let killed = Cluster::NAMES[1];
    let of_killed = first.iter().filter(|answer| answer.server == killed).count();
    assert!((10..=30).contains(&of_killed), "{of_killed} of 60");
    signal("-KILL", &cluster.server(killed).child);
    let (third, fourth) = (turn(2), turn(3));
    let answers = first.iter().zip(&second).zip(third.iter().zip(&fourth));
    for (number, ((first, second), (third, fourth))) in answers.enumerate() {
        let key = &first.key;
        assert!(second.server == first.server && is_hit(second, &rounds[0][number]), "{second:?}");
        let moves = first.server == killed;
        assert_eq!(third.server != first.server, moves, "{key}: {third:?}");
        assert_eq!(is_hit(third, &rounds[1][number]), !moves, "{key}: {third:?}");
        assert_eq!(fourth.server, third.server, "{key}");
        assert!(is_hit(fourth, &rounds[2][number]), "{key}: {fourth:?}");
    }
}

/// A request whose body has not ended keeps the server from its end, so that it answers 503.
#[test]
#[ignore = "needs HAProxy"]
fn a_drained_server_ends_its_streams_and_gets_no_new_ones() {
    let rounds = rounds(&Conversations { count: 60, systems: 6, turns: 2 });
    let mut cluster = Cluster::start(Balance::Committed, ROOM);
    let address = cluster.address.clone();
    let client = Client::new(&address);
    let mut streams: Vec<_> = (0..12).map(|number| stream(&client, number)).collect();
    let drained = Cluster::NAMES[0];
    let server = cluster.server(drained);
    let mut held = TcpStream::connect(&server.address).expect("a connection");
    let head = "POST /tokenize HTTP/1.0\r\nhost: localhost\r\ncontent-length: 15\r\n\r\n";
    held.write_all(format!("{head}{{\"pr").as_bytes()).expect("it is taken");
    signal("-TERM", &server.child);
    let line = server.line();
    assert!(line.starts_with("ending: "), "{line}");
    let answers = |turn: usize| {
        for answer in send(&rounds[turn], &address, Pace::Open(4)) {
            assert_ne!(answer.server, drained, "{answer:?}");
        }
    };
    answers(0);
    cluster.wait_for(&format!("Server setun/{drained} is DOWN"));
    answers(1);
    let of_drained = streams.iter().filter(|(server, _)| server == drained).count();
    assert!(of_drained > 0, "no stream was on {drained}");
    for (server, stream) in &mut streams {
        let lines: Vec<String> = stream.map(|line| line.expect("a line")).collect();
        let events = lines.iter().filter(|line| line.starts_with("data: {")).count();
        let is_whole = lines.iter().any(|line| line == "data: [DONE]");
        assert!(is_whole && events >= TOKENS / 2, "{server}: {events} events");
        assert!(!lines.iter().any(|line| line.contains("\"error\"")), "{server}: {lines:?}");
    }
    held.write_all(b"ompt\": \"A\"}").expect("it is taken");
    let status = cluster.server(drained).child.wait().expect("its end");
    assert_eq!(status.code(), Some(0));
}

/// A stream that has begun, and its server.
fn stream(
    client: &Client,
    number: usize,
) -> (String, impl Iterator<Item = std::io::Result<String>>) {
    let body = json!({"prompt": "Once upon a time", "seed": number, "stream": true,
        "min_tokens": TOKENS, "max_tokens": TOKENS, "prompt_cache_key": format!("stream-{number}")});
    let response = client.post("/v1/completions", &[], &body.to_string());
    let server = served_by(&response);
    let mut lines = BufReader::new(response.into_body().into_reader()).lines();
    assert!(lines.next().expect("a line").expect("a line").starts_with("data: {"));
    (server, lines)
}

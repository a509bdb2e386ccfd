//! Signals while a crowd of streams is open.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use super::{STREAMS, Server, events, expected_text, whole_text};
use crate::{
    support::{STORIES, model, send},
    wait::wait_for,
};

/// What is left of the request that holds a server.
const LEFT: &str = r#"ompt": "A"}"#;

/// Time that a server gives its connections to send what is left, once it ends. A machine that stands
/// still for so long may lose the end of an answer.
const CLOSING: Duration = Duration::from_secs(2);

/// Beside the streams there is a request whose body has not ended: no server ends by itself before it.
struct Crowd {
    server: Server,
    held: TcpStream,
    streams: Vec<TcpStream>,
    _folder: tempfile::TempDir,
}

impl Crowd {
    /// After a first signal.
    fn signalled(grace: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("serve.toml");
        let tables = format!("[batch]\nmax_concurrent = {STREAMS}\n");
        std::fs::write(&config, tables).expect("a file");
        let (config, story) = (config.to_string_lossy(), model(STORIES));
        let times = ["--grace-time", grace, "--body-timeout", "600"];
        let args = [&["--model", &story, "--config", &config], &times[..]].concat();
        let mut server = Server::start(&args, STORIES);
        let mut held = TcpStream::connect(&server.address).expect("a connection");
        let begun = r#"{"pr"#;
        let head = "POST /tokenize HTTP/1.0\r\nhost: localhost\r\ncontent-length";
        let request = format!("{head}: {}\r\n\r\n{begun}", begun.len() + LEFT.len());
        held.write_all(request.as_bytes()).expect("it is taken");
        let streams = server.streams(STORIES);
        send("-TERM", &server.child);
        let line = server.line();
        assert!(line.starts_with("ending: ") && line.ends_with("under way\n"), "{line}");
        Self { server, held, streams, _folder: folder }
    }

    /// Until new requests are refused: the signal was reported before.
    fn wait_for_refusals(&self) {
        let answer = || self.server.body("POST /tokenize", r#"{"prompt": "A"}"#);
        wait_for("a refusal", || answer().contains("\"shutting_down\""));
    }

    fn ends_with(&mut self, status: i32) {
        assert_eq!(self.server.child.wait().expect("its end").code(), Some(status));
    }
}

#[test]
fn streams_and_requests_end_whole_within_the_grace_time() {
    let mut crowd = Crowd::signalled("600");
    crowd.wait_for_refusals();
    let expected = expected_text();
    for stream in crowd.streams.drain(..) {
        assert_eq!(whole_text(&events(stream)), expected);
    }
    let released = Instant::now();
    crowd.held.write_all(LEFT.as_bytes()).expect("it is taken");
    crowd.ends_with(0);
    let mut answer = String::new();
    let _ = crowd.held.read_to_string(&mut answer);
    let is_whole = answer.contains("\"tokens\"");
    assert!(is_whole || released.elapsed() > CLOSING, "it came before the signal: {answer}");
}

#[test]
fn streams_end_with_an_error_when_the_grace_time_is_over() {
    let begun = Instant::now();
    let mut crowd = Crowd::signalled("0");
    // The texts are cut off before the port is closed. The other request would wait for its body.
    wait_for("a closed port", || TcpStream::connect(&crowd.server.address).is_err());
    crowd.held.shutdown(Shutdown::Both).expect("an open socket");
    for stream in crowd.streams.drain(..) {
        let events = events(stream);
        let end = events.last().expect("an event");
        let is_told = end == "[DONE]" || end.contains("\"shutting_down\"");
        assert!(is_told || begun.elapsed() > CLOSING, "{end}");
    }
    crowd.ends_with(0);
    assert_eq!(crowd.server.line(), "the grace time is over: requests were cut off\n");
}

#[test]
fn a_second_signal_ends_the_server_at_once_and_leaves_no_half_event() {
    let mut crowd = Crowd::signalled("600");
    crowd.wait_for_refusals();
    send("-TERM", &crowd.server.child);
    crowd.ends_with(143);
    for stream in crowd.streams.drain(..) {
        let _ = events(stream); // which are whole
    }
    let mut rest = vec![];
    let _ = crowd.held.read_to_end(&mut rest); // it may be reset
    assert!(rest.is_empty(), "nothing was answered");
}

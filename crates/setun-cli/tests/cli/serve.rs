//! `setun serve`: a request over a socket, and the end after a signal.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
};

use crate::{
    signals::send,
    support::{command, setun},
};

/// Without a model it is the embedded one, whose text is that of `setun run`.
#[test]
fn a_completion_is_the_text_of_run_and_a_signal_ends_the_server() {
    let mut child = command(&["serve", "--port", "0"]).spawn().expect("the command is built");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("serving setun-stories at http://");
    let mut socket = TcpStream::connect(address.expect(&line)).expect("a connection");
    let body = r#"{"prompt": "Once upon a time", "seed": 5, "max_tokens": 12}"#;
    let head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    let (_, json) = answer.split_once("\r\n\r\n").expect("a body");
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let run = setun(&["run", "--seed", "5", "--max-tokens", "12", "Once upon a time"]).text();
    assert_eq!(json["choices"][0]["text"].as_str(), run.strip_suffix('\n'));
    send("-TERM", &child);
    assert_eq!(child.wait().expect("its end").code(), Some(0), "it ended by itself");
    line.clear();
    stderr.read_line(&mut line).expect("a line");
    assert_eq!(line, "ending: 0 requests under way\n");
}

#[test]
fn keys_that_protect_nothing_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    std::fs::write(&file, "# none\n").expect("a file");
    let file = file.to_string_lossy();
    setun(&["serve", "--api-keys", &file]).wrong_usage("--api-keys: there is no key, expected");
}

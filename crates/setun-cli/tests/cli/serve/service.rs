//! Surroundings of a server: keys, a log, and a service manager.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use super::Server;
use crate::{
    models::in_store,
    support::{STORIES, TINY, model, send},
};

const COMPLETE: &str = r#"{"prompt": "A cat", "max_tokens": 2}"#;

/// The embedded model.
const SERVED: &str = "setun-stories";

#[test]
fn keys_come_from_a_file_and_a_variable_and_a_signal_reads_the_file_again() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("keys");
    std::fs::write(&file, "# of one client\nfirst\n").expect("a file");
    let path = file.to_string_lossy().into_owned();
    let mut command = in_store(&home, &["serve", "--port", "0", "--api-keys", &path]);
    command.env("SETUN_API_KEYS", "other");
    let mut server = Server::spawned(home, command, SERVED);
    let is_taken = |server: &Server, key: &str| {
        let headers = format!("authorization: Bearer {key}\r\n");
        let mut socket = server.open_with("POST /v1/completions", &headers, COMPLETE);
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).expect("a status").to_owned();
        assert!(status == "200" || status == "401", "{answer}");
        status == "200"
    };
    let taken =
        |server: &Server| ["first", "second", "other", "none"].map(|key| is_taken(server, key));
    assert_eq!(taken(&server), [true, false, true, false]);
    std::fs::write(&file, "second\n").expect("a file");
    send("-HUP", &server.child);
    assert!(server.line().starts_with("reloaded: "));
    assert_eq!(taken(&server), [false, true, true, false]);
    server.end();
}

#[test]
fn a_host_that_others_reach_is_warned_of_without_keys() {
    for (host, key, is_warned) in
        [("0.0.0.0", None, true), ("0.0.0.0", Some("a"), false), ("127.0.0.1", None, false)]
    {
        let home = tempfile::tempdir().expect("a folder");
        let mut command = in_store(&home, &["serve", "--port", "0", "--host", host]);
        key.map(|key| command.env("SETUN_API_KEYS", key));
        let server = Server::spawned(home, command, SERVED);
        let words = format!("warning: whoever reaches {} may use this server: ", server.address);
        assert_eq!(server.said.contains(&words), is_warned, "{host} {key:?}: {}", server.said);
        assert_eq!(server.said.contains("SETUN_API_KEYS"), is_warned, "{}", server.said);
        server.end();
    }
}

/// A field that nobody knows is named; what a client writes is not told.
#[test]
fn the_log_has_a_json_object_a_line_and_no_texts() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = in_store(&home, &["serve", "--port", "0", "--log-format", "json"]);
    command.env("RUST_LOG", "setun_serve=debug,setun=debug");
    let mut server = Server::spawned(home, command, SERVED);
    let body = r#"{"prompt": "hushed", "stop": "hidden", "strange": "veiled", "temperature": 0,
        "min_tokens": 20, "max_tokens": 20}"#;
    let answer = server.ask("POST /v1/completions", body);
    let text = answer["choices"][0]["text"].as_str().expect("a text").trim().to_owned();
    assert!(text.len() > 20, "too short to tell it from other words: {text}");
    send("-TERM", &server.child);
    assert!(server.child.wait().expect("its end").success());
    let mut log = String::new();
    server.stderr.read_to_string(&mut log).expect("UTF-8");
    let lines: Vec<Value> = log
        .lines()
        .filter(|line| !line.starts_with("ending: "))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let has = |text: &str| lines.iter().any(|line| line.to_string().contains(text));
    assert!(has("unknown fields are ignored") && has("strange") && has("answered"), "{log}");
    for secret in ["hushed", "hidden", "veiled", &text] {
        assert!(!log.contains(secret), "{secret:?} is in the log: {log}");
    }
}

#[test]
fn a_service_manager_is_told_each_state() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_mins(2))).expect("a time");
    let told = || {
        let mut state = [0; 64];
        let length = manager.recv(&mut state).expect("a state");
        String::from_utf8_lossy(&state[..length]).into_owned()
    };
    let mut command = in_store(&home, &["serve", "--port", "0"]);
    command.env("NOTIFY_SOCKET", &path);
    let mut server = Server::spawned(home, command, SERVED);
    assert_eq!(told(), "READY=1");
    send("-HUP", &server.child);
    assert!(server.line().starts_with("reloaded: "));
    assert_eq!([told(), told()], ["RELOADING=1", "READY=1"]);
    send("-TERM", &server.child);
    assert_eq!(told(), "STOPPING=1");
    assert!(server.child.wait().expect("its end").success());
}

/// The manager's socket comes as descriptor 3, and is served instead of the port.
#[test]
fn a_socket_of_the_service_manager_is_served() {
    let home = tempfile::tempdir().expect("a folder");
    let (mut command, address) = at_socket(&home);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let server = Server::spawned(home, command, SERVED);
    assert_eq!(server.address, address);
    let answer = server.ask("POST /v1/completions", COMPLETE);
    assert_eq!(answer["usage"]["completion_tokens"], 2, "{answer}");
    server.end();
}

#[test]
fn models_beside_those_of_the_start_are_named() {
    let home = tempfile::tempdir().expect("a folder");
    let (first, second) = (model(STORIES), model(TINY));
    let args = ["serve", "--port", "0", "--model", &first, "--model", &second];
    let mut command = in_store(&home, &args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("built");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut before = vec![];
    let last = loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).expect("a line"), 0, "it ended: {before:?}");
        if line.starts_with("serving ") {
            break line;
        }
        before.push(line.trim_end().to_owned());
    };
    assert!(last.starts_with("serving real-tinystories-1m at http://"), "{last}");
    let expected = "loaded when a request names them: `packed`";
    assert!(before.iter().any(|line| line == expected), "{before:?}");
    send("-TERM", &child);
    assert!(child.wait().expect("its end").success());
}

/// A server that is given a socket as a service manager gives it, and the socket's address.
pub(super) fn at_socket(home: &TempDir) -> (Command, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let serve = in_store(home, &["serve", "--port", "0"]);
    let mut command = Command::new("sh");
    command.args(["-c", r#"LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&0 </dev/null"#, "sh"]);
    command.arg(serve.get_program()).args(serve.get_args());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::from(OwnedFd::from(listener)));
    (command, address)
}

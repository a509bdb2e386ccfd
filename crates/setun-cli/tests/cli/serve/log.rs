//! Logs that cannot be written: nothing waits for them, and nothing ends by them.

use std::{
    fs::File,
    io::{Read, Write, pipe},
    net::TcpStream,
    process::{Child, Stdio},
};

use super::service::at_socket;
use crate::{
    support::{PROMPT, command, send},
    wait::wait_for,
};

/// Requests whose log is more than a pipe holds.
const REQUESTS: usize = 600;

/// A server whose log goes there, and its address.
fn serve(log: impl Into<Stdio>) -> (Child, String) {
    let home = tempfile::tempdir().expect("a folder");
    let (mut command, address) = at_socket(&home);
    command.env("RUST_LOG", "setun_serve=debug").stdout(Stdio::null()).stderr(log);
    (command.spawn().expect("a shell"), address)
}

/// Sends requests over one connection, and reads each answer; the last one.
fn ask(address: &str) -> String {
    let mut socket = TcpStream::connect(address).expect("a connection");
    let request = b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for _ in 0..REQUESTS {
        socket.write_all(request).expect("it is taken");
        let mut answer = vec![];
        while !answer.ends_with(b"}") {
            let mut byte = [0];
            socket.read_exact(&mut byte).expect("an answer");
            answer.extend(byte);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
    }
    socket.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it is taken");
    let mut page = String::new();
    socket.read_to_string(&mut page).expect("a page");
    page
}

fn dropped(page: &str) -> usize {
    let line = page.lines().find_map(|line| line.strip_prefix("setun_log_lines_dropped_total "));
    line.expect("the metric").parse().expect("a number")
}

fn end(mut server: Child) {
    send("-TERM", &server);
    let mut ended = None;
    wait_for("the end after a signal", || {
        ended = server.try_wait().expect("a child");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "it ended by itself");
}

#[test]
fn a_disk_that_is_full_stops_no_request_and_no_signal() {
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let (server, address) = serve(full);
    assert!(dropped(&ask(&address)) >= REQUESTS, "each has a line or more");
    end(server);
}

#[test]
fn a_pipe_that_is_closed_stops_no_request_and_no_signal() {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    let (server, address) = serve(writer);
    assert!(dropped(&ask(&address)) >= REQUESTS, "each has a line or more");
    end(server);
}

#[test]
fn a_pipe_that_nobody_reads_stops_no_request_and_no_signal() {
    let (reader, writer) = pipe().expect("a pipe");
    let (server, address) = serve(writer);
    ask(&address);
    end(server);
    drop(reader);
}

/// The log of other commands is no failure, either.
#[test]
fn a_text_is_told_whatever_becomes_of_its_log() {
    let run = ["run", "--temperature", "0", "--max-tokens", "4", PROMPT];
    let expected = command(&run).output().expect("the command is built");
    assert!(expected.status.success());
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let mut logged = command(&run);
    let found = logged.env("RUST_LOG", "setun=trace").stderr(full).output().expect("it is built");
    assert_eq!((found.status.code(), found.stdout), (Some(0), expected.stdout));
}

//! `setun serve`: a request over a socket, and the end after a signal.

mod ends;
mod files;
mod life;
#[cfg(target_os = "linux")]
mod log;
mod replicas;
#[cfg(target_os = "linux")]
mod service;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStderr, Command},
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    models::{in_store, outcome, with_model},
    support::{PROMPT, STORIES, TINY, model, send, setun, story},
};

/// Streams of a crowd, which run at once where a configuration lets them.
const STREAMS: usize = 16;

/// Tokens of each.
const TOKENS: usize = 100;

/// A server, and what it reports.
struct Server {
    _home: TempDir,
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
    /// Lines on standard error before the server listens.
    said: String,
}

impl Server {
    /// Waits until it says that it serves this.
    fn start(args: &[&str], served: &str) -> Self {
        Self::with_store(tempfile::tempdir().expect("a folder"), args, served)
    }

    /// One with this store and nothing of the user's environment.
    fn with_store(home: TempDir, args: &[&str], served: &str) -> Self {
        let command = in_store(&home, &[&["serve", "--port", "0"], args].concat());
        Self::spawned(home, command, served)
    }

    /// Of a command that may log other things first.
    fn spawned(home: TempDir, mut command: Command, served: &str) -> Self {
        let mut child = command.spawn().expect("the command is built");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (address, said) = (String::new(), String::new());
        let mut server = Self { _home: home, child, stderr, address, said };
        let begin = format!("serving {served} at http://");
        server.address = loop {
            let line = server.line();
            if let Some(address) = line.trim_end().strip_prefix(&begin) {
                break address.to_owned();
            }
            server.said += &line;
            assert!(!line.is_empty() && !line.starts_with("serving "), "{}", server.said);
        };
        server
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("a line");
        line
    }

    /// The body of an answer, in JSON.
    fn ask(&self, head: &str, body: &str) -> Value {
        serde_json::from_str(&self.body(head, body)).expect("JSON")
    }

    fn body(&self, head: &str, body: &str) -> String {
        read_body(self.open(head, body))
    }

    /// A request whose answer is to be read. HTTP/1.0 has no chunks: a body ends with its connection.
    fn open(&self, head: &str, body: &str) -> TcpStream {
        self.open_with(head, "", body)
    }

    /// One with more headers, each of which ends its line.
    fn open_with(&self, head: &str, headers: &str, body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("a connection");
        let head = format!("{head} HTTP/1.0\r\nhost: localhost\r\n{headers}");
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        socket.write_all(request.as_bytes()).expect("it is taken");
        socket
    }

    /// A crowd of streams of the same story, each of which has begun.
    fn streams(&self, model: &str) -> Vec<TcpStream> {
        let body = json!({"model": model, "prompt": PROMPT, "seed": 5, "stream": true,
            "min_tokens": TOKENS, "max_tokens": TOKENS});
        let body = body.to_string();
        let open = |_| self.open("POST /v1/completions", &body);
        let streams: Vec<_> = (0..STREAMS).map(open).collect();
        for stream in &streams {
            assert_eq!(stream.peek(&mut [0]).expect("an answer"), 1);
        }
        streams
    }

    fn end(mut self) {
        send("-TERM", &self.child);
        assert_eq!(self.child.wait().expect("its end").code(), Some(0), "it ended by itself");
        assert_eq!(self.line(), "ending: 0 requests under way\n");
    }
}

/// A test that fails leaves no process.
impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill()); // it may have ended
    }
}

fn read_body(mut socket: TcpStream) -> String {
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    body.to_owned()
}

/// The data of a stream's events, all of which are whole.
fn events(stream: TcpStream) -> Vec<String> {
    let body = read_body(stream);
    assert!(body.is_empty() || body.ends_with("\n\n"), "{body}");
    let data = |event: &str| event.strip_prefix("data: ").expect("an event").to_owned();
    body.split_terminator("\n\n").map(data).collect()
}

/// The text of a stream that ends as it should.
fn whole_text(events: &[String]) -> String {
    let (end, pieces) = events.split_last().expect("an event");
    assert_eq!(end, "[DONE]");
    let piece = |event: &String| -> Value { serde_json::from_str(event).expect("JSON") };
    let pieces = pieces.iter().map(piece);
    pieces.map(|piece| piece["choices"][0]["text"].as_str().expect("a text").to_owned()).collect()
}

/// What `setun run` tells in the place of a stream.
fn expected_text() -> String {
    let tokens = TOKENS.to_string();
    let options = ["--seed", "5", "--min-tokens", &tokens, "--max-tokens", &tokens];
    let text = story(&options, &[]).text();
    text.strip_suffix('\n').expect("a line").to_owned()
}

/// A request that a collector gets: its head and its body.
fn received(collector: &TcpListener) -> (String, Vec<u8>) {
    let (socket, _) = collector.accept().expect("a connection");
    let (mut socket, mut head) = (BufReader::new(socket), String::new());
    while !head.ends_with("\r\n\r\n") && socket.read_line(&mut head).expect("a line") > 0 {}
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    socket.read_exact(&mut body).expect("a body");
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    let _ = socket.get_mut().write_all(answer); // of a request that there was
    (head, body)
}

/// Without a model it is the embedded one, whose text is that of `setun run`. A collector gets the span
/// of the request before the end.
#[test]
fn a_completion_is_the_text_of_run_and_a_signal_ends_the_server() {
    let collector = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = collector.local_addr().expect("an address");
    let received = thread::spawn(move || received(&collector));
    let server = Server::start(&["--otlp-endpoint", &format!("http://{address}")], "setun-stories");
    let body = r#"{"prompt": "Once upon a time", "seed": 5, "max_tokens": 12}"#;
    let json = server.ask("POST /v1/completions", body);
    let run = setun(&["run", "--seed", "5", "--max-tokens", "12", "Once upon a time"]).text();
    assert_eq!(json["choices"][0]["text"].as_str(), run.strip_suffix('\n'));
    server.end();
    drop(TcpStream::connect(address)); // so that the collector does not wait where nothing has come
    let (head, body) = received.join().expect("no panic");
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["name"], "text_completion setun-stories");
}

/// A folder's models and those of a table are loaded when they are requested; SIGHUP reads the tables
/// again while streams are open, and what is wrong in them changes nothing. A collector that is away
/// disturbs nothing.
#[test]
fn models_of_a_folder_and_a_configuration_are_served_and_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, story) = (folder.path().join("serve.toml"), model(STORIES));
    let path = config.to_string_lossy().into_owned();
    let golden = model("bitnet-h64");
    let write = |name: &str| {
        let tables = format!(
            "[serve]\nmodels_folder = {golden:?}\nmemory_budget = '64MiB'\nkeep_alive = 300\n\
             queue_timeout = 60.5\nmetrics_compat = 'vllm'\notlp_endpoint = 'http://127.0.0.1:1'\n\
             [[serve.models]]\nmodel = {story:?}\nname = '{name}'\naliases = ['small']\n\
             [batch]\nmax_concurrent = {STREAMS}\n"
        );
        std::fs::write(&config, tables).expect("a file");
    };
    write("story");
    let mut server = Server::start(&["--config", &path], "story");
    let complete = |server: &Server, model: &str| {
        let body = format!(
            r#"{{"model": "{model}", "prompt": [1, 2], "min_tokens": 2, "max_tokens": 2}}"#
        );
        server.ask("POST /v1/completions", &body)
    };
    for name in ["small", "packed", "story"] {
        let answer = complete(&server, name);
        assert_eq!(
            (&answer["model"], &answer["usage"]["completion_tokens"]),
            (&name.into(), &2.into())
        );
    }
    let metrics = server.body("GET /metrics", "");
    assert!(metrics.contains("\nvllm:generation_tokens_total{"), "{metrics}");
    let streams = server.streams("story");
    write("tale");
    send("-HUP", &server.child);
    assert!(server.line().starts_with("reloaded: "));
    assert_eq!(complete(&server, "story")["error"]["code"], "model_not_found");
    assert_eq!(complete(&server, "tale")["model"], "tale");
    std::fs::write(&config, "[serve]\nmemory_budget = 'much'\n").expect("a file");
    send("-HUP", &server.child);
    let refused = server.line();
    assert!(refused.starts_with("not reloaded: ") && refused.contains("line 2"), "{refused}");
    assert_eq!(complete(&server, "small")["model"], "small");
    let expected = expected_text();
    for stream in streams {
        assert_eq!(whole_text(&events(stream)), expected, "of a model that has another name now");
    }
    server.end();
}

/// A pulled model is loaded by the first request, under its name and its alias.
#[test]
fn models_of_the_store_are_served_by_their_names() {
    let (_server, address) = with_model();
    let home = tempfile::tempdir().expect("a folder");
    for args in [["pull", &address].as_slice(), &["alias", "small", &address]] {
        outcome(in_store(&home, &[&["models"], args].concat())).text();
    }
    let server = Server::with_store(home, &["--store"], "1 model");
    let listed = server.ask("GET /v1/models", "")["data"][0]["id"].clone();
    for asked in ["small", listed.as_str().expect("a name")] {
        let body = format!(r#"{{"model": "{asked}", "prompt": [1, 2], "max_tokens": 2}}"#);
        let answer = server.ask("POST /v1/completions", &body);
        assert_eq!(answer["model"], asked, "{answer}");
    }
    server.end();
}

#[test]
fn keys_that_protect_nothing_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    std::fs::write(&file, "# none\n").expect("a file");
    let file = file.to_string_lossy();
    setun(&["serve", "--api-keys", &file]).wrong_usage("--api-keys: there is no key, expected");
    let models = ["--model", &model(STORIES), "--model", &model(TINY)];
    setun(&[&["serve", "--weight-image", "none.image"], &models[..]].concat())
        .wrong_usage("--weight-image (`weight_image`): expected one model, found 2");
    setun(&["serve", "--otlp-endpoint", "localhost:4318"]).wrong_usage("--otlp-endpoint: expected");
    setun(&["serve", "--isolate-keys"])
        .wrong_usage("--isolate-keys needs keys, expected --api-keys");
}

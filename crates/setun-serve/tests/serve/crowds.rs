//! Crowds of clients: some leave, read slowly or send nonsense, and the others get their texts.

use std::net::SocketAddr;

use futures::future::join_all;
use serde_json::{Value, json};
use setun::{Engine, GenerateOptions, text::Draw};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::yield_now,
};

use crate::{
    cancellation::{Server, idle_metrics, leave_held},
    reverse_proxy::Program,
    seed::seed,
    support::engine,
};

/// Clients in every check; the ignored tests have a thousand.
const CLIENTS: usize = 80;

/// Tokens of a text.
const TOKENS: usize = 24;

/// Generations that run at once where clients leave.
const CONCURRENT: usize = 8;

/// Steps after the last client has left: one under way, one that frees the blocks, and one that the
/// count may be behind.
const STEPS: u64 = 3;

/// A client, drawn by its number.
#[derive(Clone, Copy, Debug)]
struct Client {
    seed: u64,
    number: usize,
}

#[test]
fn clients_that_leave_at_random_moments_leave_nothing() {
    leave(CLIENTS, None);
}

#[test]
#[ignore = "1,000 clients"]
fn a_thousand_clients_that_leave_leave_nothing() {
    leave(1000, None);
}

#[test]
#[ignore = "needs haproxy"]
fn clients_leave_through_haproxy() {
    leave_through(Program::Haproxy);
}

#[test]
#[ignore = "needs nginx"]
fn clients_leave_through_nginx() {
    leave_through(Program::Nginx);
}

#[test]
#[ignore = "needs caddy"]
fn clients_leave_through_caddy() {
    leave_through(Program::Caddy);
}

/// Single clients, of which each must be noticed, and a thousand.
fn leave_through(program: Program) {
    leave_held(Some(program));
    leave(1000, Some(program));
}

#[test]
fn bad_clients_change_no_other_text() {
    misbehave(CLIENTS);
}

#[test]
#[ignore = "1,000 open streams"]
fn bad_clients_change_none_of_a_thousand_texts() {
    misbehave(1000);
}

/// Most leave, one in ten stays.
fn leave(clients: usize, proxy: Option<Program>) {
    let engine = engine(|config| {
        config.engine.max_concurrent = CONCURRENT;
        config.engine.queue = clients;
    });
    let server = Server::start(engine.clone()).behind(proxy);
    let (seed, texts) = (seed(), texts(&engine));
    let (address, texts) = (server.address, &texts);
    server.runtime.block_on(join_all((0..clients).map(|number| async move {
        let client = Client { seed, number };
        let mut connection = Connection::open(address, &client.request(TOKENS)).await;
        if number % 10 == 0 {
            connection.read_all().await;
            assert_eq!(connection.text(), texts[client.kind()], "{client:?}");
        } else {
            if number.is_multiple_of(2) {
                connection.read_some(client.draw(2, 2000)).await;
            } else {
                for _ in 0..client.draw(2, 400) {
                    yield_now().await;
                }
            }
            connection.leave(client).await;
        }
    })));
    server.wait_for(0);
    leave_together(&server, &engine);
    let metrics = idle_metrics(&server.runtime, &engine);
    assert_eq!((metrics.used_blocks, metrics.failed), (0, 0));
    let all = (clients + CONCURRENT + PROMPTS.len()) as u64;
    let (aborted, finished) = (metrics.aborted, metrics.finished);
    assert!(
        aborted >= CONCURRENT as u64 && aborted + finished <= all,
        "{aborted} and {finished} of {all}"
    );
    assert!(server.end(), "all requests have ended");
}

/// As many as run at once leave in the middle of their texts.
fn leave_together(server: &Server, engine: &Engine) {
    let seed = seed();
    let begin = |number| async move {
        let request = Client { seed, number: 2 * number }.request(400);
        let mut connection = Connection::open(server.address, &request).await;
        connection.read_some(1).await;
        connection
    };
    drop(server.runtime.block_on(join_all((0..CONCURRENT).map(begin))));
    server.wait_for(0);
    let before = server.runtime.block_on(engine.metrics()).expect("metrics").steps;
    let after = idle_metrics(&server.runtime, engine).steps;
    assert!(after - before <= STEPS, "{} steps", after - before);
}

/// All streams are open at once. Of twenty two read no more than a beginning until the good ones
/// have all of theirs, one leaves, and one sends nonsense.
fn misbehave(clients: usize) {
    let engine = engine(|config| {
        config.engine.max_concurrent = clients;
        config.engine.queue = clients;
    });
    let (server, seed, texts) = (Server::start(engine.clone()), seed(), texts(&engine));
    let (address, texts) = (server.address, &texts);
    let good = (0..clients).filter(|number| number % 20 > 3).count();
    let done = &watch::channel(0).0;
    server.runtime.block_on(join_all((0..clients).map(|number| async move {
        let client = Client { seed, number };
        match number % 20 {
            0 | 1 => {
                let mut connection = Connection::open(address, &client.request(TOKENS)).await;
                connection.read_some(20).await;
                done.subscribe().wait_for(|done| *done == good).await.expect("the sender lives");
                connection.read_all().await;
                assert_eq!(connection.text(), texts[client.kind()], "{client:?}");
            }
            2 => {
                let mut connection = Connection::open(address, &client.request(TOKENS)).await;
                connection.read_some(client.draw(2, 2000)).await;
                connection.leave(client).await;
            }
            3 => {
                let mut connection = Connection::open(address, &client.nonsense()).await;
                connection.read_all().await;
                let answer = connection.answer();
                assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{client:?}");
                assert!(!answer.contains(" 500 "), "{client:?}: {answer}");
            }
            _ => {
                let mut connection = Connection::open(address, &client.request(TOKENS)).await;
                connection.read_all().await;
                done.send_modify(|done| *done += 1);
                assert_eq!(connection.text(), texts[client.kind()], "{client:?}");
            }
        }
    })));
    let metrics = idle_metrics(&server.runtime, &engine);
    assert_eq!((metrics.used_blocks, metrics.failed), (0, 0));
    assert!(server.end(), "all requests have ended");
}

/// Prompts of the clients.
const PROMPTS: [&str; 4] = ["A cat", "Once upon a time", "The dog ran to", "One day a little girl"];

/// What the engine tells alone for each prompt.
fn texts(engine: &Engine) -> Vec<String> {
    let text = |prompt: &&str| {
        let options = GenerateOptions::new().seed(7).min_tokens(TOKENS).max_tokens(TOKENS);
        let told = engine.generate(*prompt, options).expect("a generation").wait();
        told.expect("a text").text
    };
    PROMPTS.iter().map(text).collect()
}

impl Client {
    /// A number below a bound; each question has its own.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
    fn draw(self, question: u64, bound: u32) -> u64 {
        let draw = Draw { seed: self.seed, sequence: self.number as u64, index: question };
        (draw.uniform(0) * f64::from(bound)) as u64
    }

    /// The place of its prompt.
    fn kind(self) -> usize {
        self.number / 2 % PROMPTS.len()
    }

    /// HTTP/1.0 has no chunks: a body ends with its connection. Every other one is a stream.
    fn request(self, tokens: usize) -> Vec<u8> {
        let body = json!({
            "prompt": PROMPTS[self.kind()], "seed": 7, "stream": self.number.is_multiple_of(2),
            "min_tokens": tokens, "max_tokens": tokens,
        });
        let body = body.to_string();
        let length = body.len();
        let head = "POST /v1/completions HTTP/1.0\r\nhost: localhost\r\ncontent-length:";
        format!("{head} {length}\r\n\r\n{body}").into_bytes()
    }

    /// A request that is none.
    fn nonsense(self) -> Vec<u8> {
        let good = self.request(TOKENS);
        match self.draw(1, 4) {
            0 => b"GET / HTTP/9.9\r\n\r\n".to_vec(),
            1 => vec![0xff; 300],
            2 => String::from_utf8_lossy(&good).replace("\"prompt\":\"", "\"prompt\":{").into(),
            _ => String::from_utf8_lossy(&good)
                .replace("content-length: ", "content-length: x")
                .into(),
        }
    }
}

/// A connection, and what came over it.
struct Connection {
    socket: TcpStream,
    bytes: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr, request: &[u8]) -> Self {
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        socket.write_all(request).await.expect("it is taken");
        Self { socket, bytes: vec![] }
    }

    /// Reads at least this many bytes, or all that come.
    async fn read_some(&mut self, least: u64) {
        while (self.bytes.len() as u64) < least {
            if self.socket.read_buf(&mut self.bytes).await.expect("bytes or the end") == 0 {
                return;
            }
        }
    }

    async fn read_all(&mut self) {
        // A server may reset a connection whose request it did not read whole.
        let _ = self.socket.read_to_end(&mut self.bytes).await;
    }

    async fn leave(mut self, client: Client) {
        match client.draw(3, 3) {
            0 => drop(self),
            1 => {
                self.socket.set_zero_linger().expect("an open socket"); // a reset
                drop(self);
            }
            _ => {
                // What is closed for writing counts as closed; a text that had ended comes whole.
                self.socket.shutdown().await.expect("an open socket");
                self.read_all().await;
            }
        }
    }

    fn answer(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The text of an answer, whole or in events.
    fn text(&self) -> String {
        let answer = self.answer();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        assert_eq!(head.split(' ').nth(1), Some("200"), "{answer}");
        let text = |json: &str| {
            let value: Value = serde_json::from_str(json).expect(json);
            value["choices"][0]["text"].as_str().unwrap_or_default().to_owned()
        };
        if !body.starts_with("data: ") {
            return text(body);
        }
        let events = body.strip_suffix("data: [DONE]\n\n").expect("an end");
        events.split_terminator("\n\n").map(|event| text(&event["data: ".len()..])).collect()
    }
}

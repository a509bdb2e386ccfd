//! Clients that leave, through sockets.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use setun::{Engine, EngineMetrics};
use setun_serve::{Lifecycle, Limits, ServeOptions, router, serve_with};
use tokio::{net::TcpListener, runtime::Runtime, task::JoinHandle};

use crate::{
    reverse_proxy::{Program, ReverseProxy},
    support::Gate,
    wait::wait_for,
};

/// A server on a port of its own.
pub(crate) struct Server {
    pub(crate) runtime: Runtime,
    pub(crate) address: SocketAddr,
    pub(crate) lifecycle: Lifecycle,
    served: JoinHandle<std::io::Result<bool>>,
    proxy: Option<ReverseProxy>,
}

impl Server {
    pub(crate) fn start(engine: Engine) -> Self {
        Self::start_within(engine, |_| {})
    }

    pub(crate) fn start_within(engine: Engine, set: impl FnOnce(&mut Limits)) -> Self {
        Self::start_for(engine, Duration::from_mins(10), set)
    }

    /// With this grace time.
    pub(crate) fn start_for(
        engine: Engine,
        grace: Duration,
        set: impl FnOnce(&mut Limits),
    ) -> Self {
        let mut limits = Limits::default();
        set(&mut limits);
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let lifecycle = Lifecycle::new();
        let options = ServeOptions::new().bound_to(address).lifecycle(lifecycle.clone());
        let router = router(engine, options.limits(limits));
        let served = serve_with(listener, router, lifecycle.clone(), grace, limits);
        let served = runtime.spawn(served);
        Self { runtime, address, lifecycle, served, proxy: None }
    }

    /// Puts a proxy before it, which has the address from now on.
    pub(crate) fn behind(mut self, program: Option<Program>) -> Self {
        self.proxy = program.map(|program| ReverseProxy::start(program, self.address));
        self.address = self.proxy.as_ref().map_or(self.address, |proxy| proxy.address);
        self
    }

    /// Sends a request over a connection of its own.
    pub(crate) fn send(&self, request: &[u8]) -> Connection {
        let mut socket = TcpStream::connect(self.address).expect("a connection");
        socket.set_nodelay(true).expect("an open socket"); // pieces are sent as they are
        socket.write_all(request).expect("it is taken");
        Connection(socket)
    }

    /// Whether all requests have ended when the server has.
    pub(crate) fn end(self) -> bool {
        self.lifecycle.drain();
        self.runtime.block_on(self.served).expect("no panic").expect("no error")
    }

    /// Waits until there are this many requests.
    pub(crate) fn wait_for(&self, requests: usize) {
        wait_for("the number of requests", || self.lifecycle.requests() == requests);
    }
}

pub(crate) struct Connection(TcpStream);

impl Connection {
    /// Sends more of a request, unless the server has closed the connection.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    /// What comes until the server closes or resets the connection.
    pub(crate) fn rest(&mut self) -> String {
        let mut bytes = vec![];
        let _ = self.0.read_to_end(&mut bytes);
        String::from_utf8(bytes).expect("UTF-8")
    }

    /// Reads until the first event has come, which proxies must not keep.
    fn read_event(&mut self) {
        let mut bytes = vec![];
        while !bytes.ends_with(b"data: {") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("a byte of the answer");
            bytes.extend(byte);
        }
    }

    /// Returns the connection, if there is still one.
    fn leave(self, how: Leave, runtime: &Runtime) -> Option<Self> {
        match how {
            Leave::Close => None,
            Leave::Reset => {
                let _entered = runtime.enter();
                self.0.set_nonblocking(true).expect("an open connection");
                let socket = tokio::net::TcpStream::from_std(self.0).expect("an open connection");
                socket.set_zero_linger().expect("an open connection");
                None
            }
            Leave::HalfClose => {
                self.0.shutdown(Shutdown::Write).expect("an open connection");
                Some(self)
            }
        }
    }

    /// Whether an answer or the end of the connection comes within this time.
    pub(crate) fn is_answered(&self, time: Duration) -> bool {
        self.0.set_read_timeout(Some(time)).expect("an open socket");
        let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
        !self.0.peek(&mut [0]).is_err_and(|error| waits.contains(&error.kind()))
    }

    /// All that comes until the server closes the connection.
    pub(crate) fn text(&mut self) -> String {
        let mut text = String::new();
        self.0.read_to_string(&mut text).expect("UTF-8");
        text
    }
}

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Close,
    Reset,
    HalfClose,
}

/// Ways to leave an answer that is streamed, and one that is not.
const LEAVES: [(bool, Leave); 6] = [
    (true, Leave::Close),
    (true, Leave::Reset),
    (true, Leave::HalfClose),
    (false, Leave::Close),
    (false, Leave::Reset),
    (false, Leave::HalfClose),
];

/// A request after which the connection is closed.
pub(crate) fn request(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The metrics of an engine that has nothing to do any more.
pub(crate) fn idle_metrics(runtime: &Runtime, engine: &Engine) -> EngineMetrics {
    loop {
        let metrics = runtime.block_on(engine.metrics()).expect("metrics");
        if metrics.running + metrics.waiting == 0 {
            return metrics;
        }
        thread::yield_now(); // the answer came from the scheduler, between two steps
    }
}

#[test]
fn a_client_that_leaves_ends_its_generation_and_frees_its_blocks() {
    leave_held(None);
}

/// The generation would run for 400 tokens: it is held at its third until the client has left.
pub(crate) fn leave_held(proxy: Option<Program>) {
    for (is_streamed, leave) in LEAVES {
        let gate = Gate::default();
        let engine = gate.engine();
        let server = Server::start(engine.clone()).behind(proxy);
        let options = json!({"prompt": "A cat", "min_tokens": 400, "max_tokens": 400});
        let body = crate::support::with(&options, &json!({"stream": is_streamed}));
        let mut client = server.send(&request("/v1/completions", &body));
        gate.wait();
        if is_streamed {
            client.read_event();
        }
        // One that is closed for writing alone stays until the request has ended.
        let left = client.leave(leave, &server.runtime);
        server.wait_for(0);
        drop(left);
        gate.open();
        let metrics = idle_metrics(&server.runtime, &engine);
        let found = (metrics.aborted, metrics.finished, metrics.used_blocks);
        assert_eq!(found, (1, 0, 0), "{is_streamed} {leave:?}");
        assert!(metrics.tokens <= 4, "{is_streamed} {leave:?}: {} tokens", metrics.tokens);
        assert!(server.end());
    }
}

/// Another text holds each step, and the prompt has at most 16 rows in one, as its log-probabilities
/// are reported: no step has more of it once its client has left.
#[test]
fn a_client_that_leaves_while_its_prompt_is_computed_ends_that() {
    for (is_streamed, leave) in LEAVES {
        let gate = Gate::default();
        let engine = gate.engine_for(2);
        let server = Server::start(engine.clone());
        let other = json!({"prompt": "A cat", "min_tokens": 400, "max_tokens": 400});
        let mut other = server.send(&request("/v1/completions", &other));
        gate.wait();
        let prompt =
            "Once upon a time there was a cat that had a red ball and a big dog. ".repeat(9);
        let options = json!({"echo": true, "logprobs": 1, "max_tokens": 4});
        let more = json!({"prompt": prompt, "stream": is_streamed});
        let client =
            server.send(&request("/v1/completions", &crate::support::with(&options, &more)));
        server.wait_for(2);
        let latest = || engine.latest_metrics().expect("an engine");
        while latest().running < 2 {
            gate.step();
        }
        assert!(latest().prompt_rows > 0, "its prompt has begun");
        let left = client.leave(leave, &server.runtime);
        server.wait_for(1);
        drop(left);
        gate.open();
        assert!(other.text().contains("\"completion_tokens\":400"));
        let metrics = idle_metrics(&server.runtime, &engine);
        let found = (metrics.aborted, metrics.finished, metrics.tokens, metrics.used_blocks);
        assert_eq!(found, (1, 1, 400, 0), "{is_streamed} {leave:?}");
        // Of the other's prompt a few, and of this one those of two steps: it has more than 100.
        assert!(metrics.prompt_rows < 50, "{} rows", metrics.prompt_rows);
        assert!(server.end());
    }
}

#[test]
fn a_client_that_leaves_the_queue_takes_no_turn() {
    let gate = Gate::default();
    let engine = gate.engine();
    let server = Server::start(engine.clone());
    let body = json!({"prompt": "A cat", "min_tokens": 20, "max_tokens": 20});
    let mut first = server.send(&request("/v1/completions", &body));
    gate.wait();
    let second = server.send(&request("/v1/completions", &body));
    server.wait_for(2);
    drop(second);
    server.wait_for(1);
    gate.open();
    let text = first.text();
    assert!(
        text.starts_with("HTTP/1.1 200 ") && text.contains("\"completion_tokens\":20"),
        "{text}"
    );
    let metrics = idle_metrics(&server.runtime, &engine);
    assert_eq!((metrics.finished, metrics.used_blocks, metrics.tokens), (1, 0, 20));
    assert!(server.end());
}

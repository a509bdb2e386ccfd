//! Memory and descriptors of a server after crowds of clients.
//!
//! A program of its own, because all its memory is counted. `SETUN_CROWDS=200` runs it longer, and
//! with `-- --nocapture` it says what is in use after each crowd.

#![expect(clippy::print_stdout, reason = "a long run says what it sees")]

#[path = "../../../tests/support/memory.rs"]
mod memory;
#[path = "../../../tests/support/wait.rs"]
mod wait;

use std::{env, fs, net::SocketAddr, time::Duration};

use futures::future::join_all;
use memory::live;
use setun::{Engine, Model, Pressure};
use setun_serve::{Lifecycle, ServeOptions, router, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};
use wait::{comes, wait_for};

/// Clients of a crowd, which are all there at once.
const CLIENTS: usize = 48;

/// Crowds of a short run, and those after which everything has been used once.
const CROWDS: usize = 7;
const WARM_UP: usize = 3;

/// Bytes by which memory may differ: lists keep the room that they once needed.
const SLACK: usize = 1 << 15;

/// Routes with bodies that they take or refuse.
const REQUESTS: [(&str, &str); 8] = [
    ("/v1/completions", r#"{"prompt":"A cat","min_tokens":40,"max_tokens":40,"stream":true}"#),
    ("/api/generate", r#"{"model":"m","prompt":"A dog","options":{"num_predict":40}}"#),
    ("/v1/completions", r#"{"prompt":"A cat","max_tokens":8,"logprobs":2}"#),
    ("/v1/completions", r#"{"prompt":"A cat","max_tokens":8,"n":3,"stream":true}"#),
    ("/v1/embeddings", r#"{"input":["A cat","A dog"]}"#),
    ("/tokenize", r#"{"prompt":"A cat"}"#),
    ("/v1/completions", r#"{"prompt":["A cat"#),
    ("/nothing", "{}"),
];

#[test]
fn crowds_leave_no_memory_and_no_descriptors() {
    let engine = Engine::builder(Model::embedded().expect("a model")).threads(1);
    let engine = engine.max_concurrent(8).queue(CLIENTS * 3).build().expect("an engine");
    let (runtime, lifecycle) = (runtime(), Lifecycle::new());
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("an address");
    let options = ServeOptions::new().bound_to(address).lifecycle(lifecycle.clone());
    let router = router(engine.clone(), options);
    let grace = Duration::from_mins(1);
    let served = runtime.spawn(serve(listener, router, lifecycle.clone(), grace));

    let (open, mut start) = (descriptors(), usize::MAX / 2);
    let crowds =
        env::var("SETUN_CROWDS").map_or(CROWDS, |number| number.parse().expect("a number"));
    for number in 0..crowds {
        runtime.block_on(join_all((0..CLIENTS).map(|client| request(address, client))));
        let found = rest(&runtime, &engine, &lifecycle, (start + SLACK, open));
        assert!(found.0 <= start + SLACK, "crowd {number}: {} bytes, before {start}", found.0);
        assert!(found.1 <= open, "crowd {number}: {} descriptors, before {open}", found.1);
        if number + 1 == WARM_UP {
            start = found.0;
        }
    }
    lifecycle.drain();
    assert!(runtime.block_on(served).expect("no panic").expect("no error"), "all have ended");
}

/// Tokenizes on one thread: a regular expression keeps 33 kB for each of the most threads that have
/// searched with it at once, and that number may rise late.
fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().max_blocking_threads(1).thread_keep_alive(Duration::from_hours(1));
    builder.build().expect("a runtime")
}

/// A client of a connection of its own. One of three leaves early, another sends more than a
/// request.
async fn request(address: SocketAddr, client: usize) {
    let (path, body) = REQUESTS[client % REQUESTS.len()];
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n");
    let more = if client % 3 == 1 { "GET" } else { "" };
    let sent =
        format!("{head}content-type: application/json\r\nconnection: close\r\n\r\n{body}{more}");
    socket.write_all(sent.as_bytes()).await.expect("it is taken");
    if client.is_multiple_of(3) {
        socket.read_exact(&mut [0; 100]).await.expect("a beginning");
    } else {
        // A server may reset a connection whose request it did not read whole.
        let _ = socket.read_to_end(&mut vec![]).await;
    }
}

/// Bytes and descriptors that are in use once all is done and what is kept between texts is given
/// back, or once they are at most these.
fn rest(
    runtime: &Runtime,
    engine: &Engine,
    lifecycle: &Lifecycle,
    most: (usize, usize),
) -> (usize, usize) {
    let metrics = || runtime.block_on(engine.metrics()).expect("an engine");
    wait_for("the end of all requests", || {
        lifecycle.requests() == 0 && metrics().running + metrics().waiting == 0
    });
    engine.reset_prefix_cache().expect("an engine");
    runtime.block_on(engine.release_memory(Pressure::Critical)).expect("an engine");
    let mut found = (live(), descriptors());
    comes(|| {
        found = (live(), descriptors()); // connections end after their requests
        found.0 <= most.0 && found.1 <= most.1
    });
    println!("{} bytes, {} descriptors", found.0, found.1);
    found
}

/// On Linux alone.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

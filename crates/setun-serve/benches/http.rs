//! Streams over HTTP beside streams of the engine, with the embedded model and one thread:
//! `cargo bench -p setun-serve --bench http`.
//!
//! Rounds with and without HTTP take turns. Clients, server and engine share the machine. A last
//! part opens 1,000 streams at once, in turn without and with clients that misbehave;
//! `SETUN_CROWDS` is the number of these crowds.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::{
    env,
    error::Error,
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures::{StreamExt, future::try_join_all};
use setun::{Engine, Event, GenerateOptions, Model};
use setun_serve::{Lifecycle, ServeOptions, router, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    time::sleep,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PROMPT: &str = "Once upon a time";

/// Tokens of a text, and rounds of each kind.
const TOKENS: usize = 200;
const ROUNDS: usize = 15;

/// Streams that are open at once in the last part, and their tokens.
const CROWD: usize = 1000;
const CROWD_TOKENS: usize = 40;

/// How often they are opened after the first time.
const CROWDS: usize = 6;

fn main() -> Outcome<()> {
    let engine = Engine::builder(Model::embedded()?).threads(1);
    let engine = engine.max_concurrent(CROWD).build()?;
    let runtime = Runtime::new()?;
    let address = runtime.block_on(start(engine.clone()))?;
    for streams in [1, 4, 16] {
        runtime.block_on(compare(&engine, address, streams))?;
    }
    let crowds = env::var("SETUN_CROWDS").map_or(Ok(CROWDS), |number| number.parse())?;
    runtime.block_on(crowd(address, false))?; // what is allocated once
    print_resources();
    for number in 0..crowds {
        runtime.block_on(crowd(address, number % 2 == 1))?;
        print_resources();
    }
    Ok(())
}

async fn start(engine: Engine) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (options, lifecycle) = (ServeOptions::new().bound_to(address), Lifecycle::new());
    tokio::spawn(serve(listener, router(engine, options), lifecycle, Duration::from_secs(1)));
    Ok(address)
}

/// Tokens a second of all streams, over HTTP and without.
async fn compare(engine: &Engine, address: SocketAddr, streams: usize) -> Outcome<()> {
    let (mut with, mut without) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        try_join_all((0..streams).map(|_| told(engine))).await?;
        without.push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        try_join_all((0..streams).map(|_| event_times(address, TOKENS, TOKENS))).await?;
        with.push(begun.elapsed().as_secs_f64());
    }
    let tokens = f64::from(u32::try_from(streams * TOKENS)?);
    let (with, without) = (median(with), median(without));
    println!(
        "{streams:2} streams: {:7.0} tokens/s of the engine, {:7.0} over HTTP ({:.3}), {:5.1} µs a token more",
        tokens / without,
        tokens / with,
        without / with,
        (with - without) / tokens * 1e6
    );
    Ok(())
}

/// A text of the engine's, event by event as the server takes it.
async fn told(engine: &Engine) -> Outcome<()> {
    let options = GenerateOptions::new().seed(7).min_tokens(TOKENS).max_tokens(TOKENS);
    let mut events = engine.generate(PROMPT, options)?;
    while let Some(event) = events.next().await {
        if let Event::Done(done) = event? {
            assert_eq!(done.usage.completion_tokens, TOKENS);
        }
    }
    Ok(())
}

/// Time between the tokens of the good clients of a crowd. Of twenty bad ones two read nothing
/// until the others have ended, one leaves, and one sends nonsense.
async fn crowd(address: SocketAddr, has_bad: bool) -> Outcome<()> {
    let begun = Instant::now();
    let clients = (0..CROWD).map(|number| async move {
        match number % 20 {
            0 | 1 if has_bad => {
                let socket = open(address, CROWD_TOKENS).await?;
                sleep(Duration::from_secs(5)).await;
                drop(socket);
                Ok(vec![])
            }
            2 if has_bad => event_times(address, CROWD_TOKENS, 5).await,
            3 if has_bad => {
                let mut socket = TcpStream::connect(address).await?;
                socket.write_all(&[0xff; 100]).await?;
                let _ = socket.read_to_end(&mut vec![]).await;
                Ok(vec![])
            }
            0..=3 => event_times(address, CROWD_TOKENS, CROWD_TOKENS).await.map(|_| vec![]),
            _ => event_times(address, CROWD_TOKENS, CROWD_TOKENS).await,
        }
    });
    let times: Vec<Vec<Instant>> = try_join_all(clients).await?;
    let gaps = times.iter().flat_map(|times| times.windows(2)).map(|pair| pair[1] - pair[0]);
    let mut gaps: Vec<f64> = gaps.map(|gap| gap.as_secs_f64() * 1e3).collect();
    gaps.sort_by(f64::total_cmp);
    let at = |share: usize| gaps[gaps.len() * share / 1000];
    println!(
        "{CROWD} streams, bad ones {}: between tokens p50 {:.1} ms, p99 {:.1} ms; {:.1} s",
        if has_bad { "among them" } else { "none" },
        at(500),
        at(990),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Opens a stream. HTTP/1.0 has no chunks: the body ends with the connection.
async fn open(address: SocketAddr, tokens: usize) -> Outcome<TcpStream> {
    let body = format!(
        r#"{{"prompt":"{PROMPT}","seed":7,"stream":true,"min_tokens":{tokens},"max_tokens":{tokens}}}"#
    );
    let head = "POST /v1/completions HTTP/1.0\r\nhost: localhost\r\ncontent-length:";
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    Ok(socket)
}

/// When each event of a stream came; leaves after some events.
async fn event_times(address: SocketAddr, tokens: usize, events: usize) -> Outcome<Vec<Instant>> {
    let mut socket = open(address, tokens).await?;
    let (mut bytes, mut times) = (vec![], vec![]);
    loop {
        bytes.clear();
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(times);
        }
        let come = bytes.windows(6).filter(|window| window == b"data: ").count();
        times.extend(std::iter::repeat_n(Instant::now(), come));
        if times.len() >= events && events < tokens {
            return Ok(times);
        }
    }
}

/// Resident memory and open descriptors, clients included, where Linux tells them.
fn print_resources() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    println!("memory {:.1} MB, descriptors {descriptors}", kilobytes.unwrap_or_default() / 1e3);
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

//! One engine under random requests from several threads: texts are the same as alone, and memory,
//! threads and descriptors return to their start.
//!
//! A program of its own, because all its memory is counted. `SETUN_SOAK_MINUTES=30` runs it longer.

#![expect(clippy::print_stdout, reason = "a test says that it passed")]

#[path = "../../support/memory.rs"]
mod memory;
mod operations;
#[path = "../../support/seed.rs"]
mod seed;
mod usage;
#[path = "../../support/wait.rs"]
mod wait;

use std::{
    env, thread,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use operations::Caller;
use seed::seed;
use setun::{Engine, EngineMetrics, Model, Pressure};
use setun_tests::fixture;
use usage::Usage;

const MODEL: &str = "golden/real-tinystories-1m";

/// Threads that call the engine, and what each asks for between two looks at what is in use.
const CALLERS: u64 = 3;
const OPERATIONS: u64 = 25;

/// Rounds of a short run, and those after which everything has been used once.
const ROUNDS: u64 = 4;
const WARM_UP: u64 = 2;

fn main() {
    let minutes = env::var("SETUN_SOAK_MINUTES").ok().map(|minutes| minutes.parse());
    let minutes: f64 = minutes.transpose().expect("a number of minutes").unwrap_or(0.0);
    let (begun, time) = (Instant::now(), Duration::from_secs_f64(60.0 * minutes));
    engine().close(); // Threads that load models are for the process.
    let before = Usage::now();
    let engine = engine();
    let mut rounds = 0;
    let mut start = None;
    while rounds < ROUNDS || begun.elapsed() < time {
        round(&engine, rounds);
        rounds += 1;
        let rest = rest(&engine);
        let usage = Usage::now();
        assert_eq!((rest.used_blocks, rest.cached_blocks), (0, 0), "blocks that are lost");
        if rounds == WARM_UP {
            start = Some(usage);
        }
        if let Some(start) = &start {
            usage.assert_is(start, &format!("round {rounds}"));
        }
        if minutes > 0.0 && rounds % 100 == 0 {
            println!("{:.0?}, round {rounds}, {} texts: {usage}", begun.elapsed(), rest.admissions);
        }
    }
    let found = block_on(engine.metrics()).expect("an engine");
    assert!(found.accepted_tokens > 0 && found.aborted > 0 && found.prefix_hits > 0, "{found:?}");
    engine.close();
    Usage::now().assert_is(&before, "after the end");
    println!("{rounds} rounds, {} texts, {} tokens", found.admissions, found.tokens);
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

/// With a draft, and a cache that is too small for all texts at once.
fn engine() -> Engine {
    let open = || Model::open(fixture(MODEL)).expect("the story model");
    Engine::builder(open())
        .draft(open())
        .threads(2)
        .contexts(2)
        .max_concurrent(6)
        .queue(40)
        .build()
        .expect("an engine")
}

fn round(engine: &Engine, round: u64) {
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let mut caller = Caller::new(engine, seed() ^ (round * CALLERS + caller));
            scope.spawn(move || (0..OPERATIONS).for_each(|_| caller.operate()));
        }
    });
    rest(engine);
}

/// Waits until nothing runs, and gives back what is kept between texts.
fn rest(engine: &Engine) -> EngineMetrics {
    let metrics = || block_on(engine.metrics()).expect("an engine");
    while metrics().running + metrics().waiting > 0 {}
    engine.reset_prefix_cache().expect("an engine");
    block_on(engine.release_memory(Pressure::Critical)).expect("an engine");
    metrics()
}

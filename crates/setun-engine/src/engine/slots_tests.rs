//! Which requests an engine refuses as `busy`, made all at once.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use super::{Engine, test_support::parts};
use crate::{
    error::{Error, ErrorCode},
    options::{EngineOptions, GenerateOptions},
    stream::GenerationStream,
};

/// Tokens of a generation that does not end by itself while nobody reads it.
const LONG: usize = 60;

/// An engine over models of its own, whose streams hold one event.
fn engine(max_concurrent: usize, queue: usize, devices: usize) -> Engine {
    Engine::start(parts(devices), &engine_options(max_concurrent, queue)).expect("an engine")
}

fn engine_options(max_concurrent: usize, queue: usize) -> EngineOptions {
    EngineOptions { max_concurrent, queue, buffer: 1, ..EngineOptions::default() }
}

fn options(tokens: usize) -> GenerateOptions {
    GenerateOptions::new().max_tokens(tokens).temperature(0.0)
}

/// This many requests of threads that begin in the same moment: the streams, and what others were
/// refused with.
fn at_once(engine: &Engine, count: usize) -> (Vec<GenerationStream>, Vec<Error>) {
    let barrier = Arc::new(Barrier::new(count));
    let threads = (0..count).map(|_| {
        let (engine, barrier) = (engine.clone(), Arc::clone(&barrier));
        thread::spawn(move || {
            barrier.wait();
            engine.generate(vec![1, 2, 3], options(LONG))
        })
    });
    let threads: Vec<_> = threads.collect();
    let (mut streams, mut refused) = (vec![], vec![]);
    for thread in threads {
        match thread.join().expect("no panic") {
            Ok(stream) => streams.push(stream),
            Err(error) => refused.push(error),
        }
    }
    (streams, refused)
}

/// Waits until the engine has seen that all streams have left.
fn wait_until_idle(engine: &Engine) {
    while engine.schedulers.iter().any(|scheduler| scheduler.slots.taken() > 0) {
        thread::yield_now();
    }
}

#[test]
fn an_idle_engine_refuses_nothing_while_streams_are_free() {
    let engine = engine(64, 2, 1);
    for count in [6, 64, 66] {
        let (streams, refused) = at_once(&engine, count);
        assert_eq!((streams.len(), refused.len()), (count, 0));
        drop(streams);
        wait_until_idle(&engine);
    }
}

#[test]
fn what_is_beyond_streams_and_queue_is_refused_and_nothing_else() {
    for devices in [1, 3] {
        let (engine, room) = (engine(4, 2, devices), devices * 6);
        for _ in 0..50 {
            let (streams, refused) = at_once(&engine, room + 3);
            assert_eq!((streams.len(), refused.len()), (room, 3));
            assert!(refused.iter().all(|error| error.code() == ErrorCode::Busy));
            let error = refused[0].to_string();
            assert_eq!(
                error,
                "6 generations run or wait already, expected at most 6 with this request"
            );
            drop(streams);
            wait_until_idle(&engine);
        }
    }
}

#[test]
fn samples_and_beams_count_each() {
    // A search, which nobody's reading delays, waits for two more.
    let waiting = EngineOptions { batch_wait: Duration::from_hours(1), ..engine_options(4, 1) };
    let engine = Engine::start(parts(1), &waiting).expect("an engine");
    let samples = engine.generate_many(vec![1, 2], options(LONG), 4).expect("four streams");
    let beams = crate::BeamOptions::new(2);
    let search = || engine.beams(vec![1, 2], beams, GenerateOptions::new().max_tokens(LONG));
    assert_eq!(search().expect_err("one slot is left").code(), ErrorCode::Busy);
    let last = engine.generate(vec![1], options(LONG)).expect("it waits");
    assert_eq!(engine.schedulers[0].slots.taken(), 5);
    drop((samples, last));
    wait_until_idle(&engine);
    let search = search().expect("all slots are free");
    assert_eq!(engine.schedulers[0].slots.taken(), 2);
    drop(search);
    wait_until_idle(&engine);
}

/// Whoever has seen the last event may ask again at once.
#[test]
fn slots_are_free_before_the_last_event_is_seen() {
    let engine = engine(1, 1, 1);
    for _ in 0..500 {
        let both = [3, 1].map(|tokens| engine.generate(vec![1, 2], options(tokens)));
        for stream in both {
            let completion = stream.expect("a slot").wait().expect("an end");
            assert!(!completion.tokens.is_empty());
        }
    }
}

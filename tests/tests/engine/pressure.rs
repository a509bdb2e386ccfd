//! Memory that is given back while texts are written: it is less, and they are the same.

use std::time::Duration;

use futures::executor::block_on;
use setun::{Device, Engine, EngineMetrics, Event, Model, Pressure};
use setun_tests::fixture;

use super::{MODEL, engine, sampled};

/// Keys and values of 32 positions, eight layers and 64 elements of two bytes.
const BLOCK_BYTES: usize = 2 * 32 * 8 * 64 * 2;

fn metrics(engine: &Engine) -> EngineMetrics {
    block_on(engine.metrics()).expect("an engine")
}

fn release_memory(engine: &Engine, pressure: Pressure) -> usize {
    block_on(engine.release_memory(pressure)).expect("an engine")
}

fn limit(engine: &Engine, bytes: usize) -> usize {
    block_on(engine.limit_cache(bytes)).expect("an engine")
}

/// Prompts of several lengths, two of which begin alike.
fn prompts() -> Vec<Vec<u32>> {
    let prompt = |len: u32, from: u32| (0..len).map(|at| (at * 7 + from) % 500).collect();
    vec![prompt(9, 1), prompt(70, 2), prompt(150, 2), prompt(40, 3), prompt(100, 4)]
}

fn texts(engine: &Engine) -> Vec<Vec<u32>> {
    let text = |(seed, prompt): (u64, Vec<u32>)| engine.complete(prompt, sampled(seed));
    (1..).zip(prompts()).map(|asked| text(asked).expect("a story").tokens).collect()
}

/// All at once, and something is done to the engine between their tokens.
fn texts_under(engine: &Engine, mut squeeze: impl FnMut(usize)) -> Vec<Vec<u32>> {
    let stream = |(seed, prompt): (u64, Vec<u32>)| engine.generate(prompt, sampled(seed));
    let streams = (1..).zip(prompts()).map(|asked| stream(asked).expect("a stream").blocking());
    let mut streams: Vec<_> = streams.map(|stream| (stream, vec![])).collect();
    for round in 0.. {
        let mut is_over = true;
        for (stream, text) in &mut streams {
            let event = stream.next().map(|event| event.expect("no failure"));
            is_over &= event.is_none();
            text.extend(event.and_then(|event| match event {
                Event::Text(delta) => Some(delta.token),
                _ => None,
            }));
        }
        if is_over {
            break;
        }
        squeeze(round);
    }
    streams.into_iter().map(|(_, text)| text).collect()
}

/// In one piece, and in two on threads.
fn engines() -> Vec<Engine> {
    let split = Device::Split(vec![(Device::Cpu, 1), (Device::Scalar, 0)]);
    let open = |device| {
        let model = Model::open(fixture(MODEL)).expect("the story model");
        Engine::builder(model).device(device).context_length(256).build().expect("an engine")
    };
    [Device::Cpu, split].into_iter().map(open).collect()
}

#[test]
fn texts_are_the_same_while_memory_is_given_back() {
    let expected = texts(&engine());
    for engine in engines() {
        let found = texts_under(&engine, |round| {
            let pressure = if round % 2 == 0 { Pressure::Critical } else { Pressure::Moderate };
            release_memory(&engine, pressure);
        });
        assert_eq!(found, expected, "{}", engine.backend());
        let counted = metrics(&engine);
        assert!(counted.memory_releases > 20 && counted.released_bytes > 0, "{counted:?}");
        assert!(release_memory(&engine, Pressure::Moderate) <= counted.memory.cache);
        assert_eq!(block_on(engine.memory()).expect("an engine").cache, 0);
        assert_eq!(texts(&engine), expected, "{}", engine.backend());
    }
}

#[test]
fn a_cache_is_held_to_one_context_and_let_go_again() {
    let expected = texts(&engine());
    for engine in engines() {
        assert_eq!(texts(&engine), expected);
        let whole = metrics(&engine);
        assert!(whole.memory.cache > 0 && whole.cached_blocks > 0);
        assert_eq!(limit(&engine, usize::MAX), 0);
        let given = limit(&engine, 0);
        let held = metrics(&engine);
        assert_eq!((held.blocks, held.memory.cache), (8, whole.memory.cache - given));
        // All five at once have more in their prompts alone.
        assert_eq!(texts_under(&engine, |_| {}), expected, "{}", engine.backend());
        let squeezed = metrics(&engine);
        assert_eq!(squeezed.memory.cache, 8 * BLOCK_BYTES);
        limit(&engine, usize::MAX);
        assert_eq!(metrics(&engine).blocks, whole.blocks);
        assert_eq!(texts_under(&engine, |_| {}), expected, "{}", engine.backend());
        assert!(metrics(&engine).memory.cache > squeezed.memory.cache);
    }
}

#[test]
fn a_watch_of_ones_own_is_heeded() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let mut asked = 0;
    let watch = move || {
        asked += 1;
        (asked % 3 == 0).then_some(Pressure::Critical)
    };
    let builder = Engine::builder(model).memory_monitor(watch, Duration::ZERO);
    let squeezed = builder.build().expect("an engine");
    assert_eq!(texts_under(&squeezed, |_| {}), texts(&engine()));
    assert!(metrics(&squeezed).memory_releases > 0);
}

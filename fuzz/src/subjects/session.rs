//! A saved session of a small model.

use std::{collections::BTreeMap, sync::OnceLock};

use setun::{Device, Engine, GenerateOptions, Model, Source};

use crate::{MemoryBound, run_bounded};

/// Copies of the input, blocks of the cache, and steps of a small model.
const MEMORY: MemoryBound = MemoryBound { fixed: 4 << 20, each: 16 };

const CONFIG: &[u8] =
    include_bytes!("../../../tests/fixtures/golden/bitnet-h64/packed/config.json");
const WEIGHTS: &[u8] =
    include_bytes!("../../../tests/fixtures/golden/bitnet-h64/packed/model.safetensors");

/// Restores the session, goes on from it and saves it.
///
/// # Panics
///
/// If that exceeds its bounds, or the engine answers otherwise than before.
pub fn run(bytes: &[u8]) {
    static ENGINE: OnceLock<(Engine, Vec<u32>)> = OnceLock::new();
    let (engine, expected) = ENGINE.get_or_init(|| {
        let engine = engine();
        let answer = answer(&engine);
        (engine, answer)
    });
    run_bounded(bytes.len(), MEMORY, || {
        restore(engine, bytes);
        assert_eq!(answer(engine), *expected, "an engine that has taken a session");
    });
}

/// A small model, with one thread.
///
/// # Panics
///
/// If it cannot be loaded.
#[must_use]
pub fn engine() -> Engine {
    let files = BTreeMap::from([("config.json", CONFIG), ("model.safetensors", WEIGHTS)]);
    let model = Model::from_files(Source::Folder, "small", &files).expect("a small model");
    let builder = Engine::builder(model).device(Device::Cpu).threads(1);
    builder.prefix_positions(128).build().expect("an engine")
}

/// What the engine answers to a prompt that no session's blocks can hold: it is shorter than one.
fn answer(engine: &Engine) -> Vec<u32> {
    let options = GenerateOptions::new().temperature(0.0).max_tokens(3);
    engine.complete(vec![5, 6, 7], options).expect("an answer").tokens
}

fn restore(engine: &Engine, bytes: &[u8]) {
    let Ok(session) = pollster::block_on(engine.restore(bytes)) else { return };
    let options = GenerateOptions::new().temperature(0.0).max_tokens(1);
    // Whoever can write a hash can write keys and values that are not finite: a typed error.
    let _ = session.generate(options).map(setun::GenerationStream::wait);
    let saved = pollster::block_on(session.save()).expect("an engine that goes on");
    let again = pollster::block_on(engine.restore(saved)).expect("what was just saved");
    assert_eq!(again.tokens(), session.tokens());
}

//! Telemetry of real runs, as listeners receive it.

mod listener;
mod meters;
mod spans;
mod timeline;

use setun::{Engine, EngineBuilder, EngineMetrics, Model};

/// The embedded model's engine, with one place to run.
fn builder() -> EngineBuilder {
    Engine::builder(Model::embedded().expect("a model")).threads(1)
}

fn metrics(engine: &Engine) -> EngineMetrics {
    pollster::block_on(engine.metrics()).expect("an engine")
}

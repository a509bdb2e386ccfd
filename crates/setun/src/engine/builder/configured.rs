//! What a configuration says, for an engine.

use std::time::Duration;

use super::EngineBuilder;
use crate::{
    config::{EngineConfig, GenerationConfig},
    device::Device,
    error::Error,
    pressure::SystemMemory,
};

/// How often the system is asked for its memory.
const WATCH_EVERY: Duration = Duration::from_secs(1);

impl EngineBuilder {
    /// Sets all that a configuration says. What is set afterwards takes its place.
    ///
    /// # Errors
    ///
    /// If a value is out of its range, or this build has none of the devices.
    pub fn config(mut self, config: &EngineConfig) -> Result<Self, Error> {
        config.check()?;
        let EngineConfig { batch, context, device, memory, streams, generation, monitoring } =
            config;
        let mut devices = known(&device.backends)?.into_iter();
        self.options.device = devices.next().unwrap_or_default();
        self.fallbacks = devices.collect();
        self.options.threads = device.threads;
        self.memory_fraction = device.memory_fraction;
        self.options.cache = memory.cache;
        self.options.head = memory.head;
        self.prefetch = Some(memory.prefetch_bytes);
        if let Some(least) = memory.min_available {
            self = self.memory_watch(SystemMemory::new(least)?, WATCH_EVERY);
        }
        self.wait = Duration::from_secs_f64(batch.wait_seconds);
        self.streams = batch.streams;
        self.waiting = batch.queue;
        self.contexts = context.contexts;
        self.context_length = context.length;
        self.prefix_positions = context.prefix_positions;
        self.buffer = streams.buffer;
        self.back_pressure = streams.back_pressure;
        self.unless.deadline = streams.timeout_seconds.map(Duration::from_secs_f64);
        self.generation(generation);
        (self.profiled, self.timeline) = (monitoring.profile, monitoring.timeline);
        Ok(self)
    }

    fn generation(&mut self, config: &GenerationConfig) {
        self.unless.max_tokens = config.max_tokens;
        self.unless.seed = config.seed;
        self.unless.stop.clone_from(&config.stop);
        let sampling = &mut self.sampling;
        sampling.temperature = config.temperature;
        sampling.top_k = config.top_k;
        sampling.top_p = config.top_p;
        sampling.min_p = config.min_p;
        sampling.repetition_penalty = config.repetition_penalty;
    }
}

/// The devices that this build and this processor have, one or more.
fn known(names: &[String]) -> Result<Vec<Device>, Error> {
    let (mut devices, mut missing) = (vec![], None);
    for name in names {
        match name.parse() {
            Ok(device) => devices.push(device),
            Err(error @ Error::BackendUnavailable { .. }) => missing = Some(error),
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if devices.is_empty() => Err(error),
        _ => Ok(devices),
    }
}

//! Options of a configuration, applied to an engine.

use std::time::Duration;

use super::EngineBuilder;
use crate::{
    config::EngineConfig,
    device::{Device, DeviceOptions},
    error::Error,
    system_memory::SystemMemory,
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
        self.device = DeviceOptions {
            device: devices.next().unwrap_or_default(),
            threads: device.threads,
            cache: memory.cache,
            head: memory.head,
            ..self.device
        };
        self.fallbacks = devices.collect();
        self.memory_fraction = device.memory_fraction;
        self.prefetch = Some(memory.prefetch_bytes);
        let options = &mut self.options;
        if let Some(least) = memory.min_available {
            options.set_memory_monitor(SystemMemory::new(least)?, WATCH_EVERY);
        }
        options.batch_wait = Duration::from_secs_f64(batch.wait_seconds);
        options.streams = batch.streams;
        options.queue = batch.queue;
        options.contexts = context.contexts;
        options.context_length = context.length;
        options.prefix_positions = context.prefix_positions;
        options.buffer = streams.buffer;
        options.back_pressure = streams.back_pressure;
        (options.profile, options.timeline) = (monitoring.profile, monitoring.timeline);
        options.defaults = generation.clone();
        Ok(self)
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

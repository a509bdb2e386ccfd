//! The ranges of a configuration's values.

use setun_cpu::Level;
use setun_engine::Error as EngineError;
use setun_text::Sampler;

use super::EngineConfig;
use crate::{
    device::{Device, GpuApi},
    error::Error,
};

/// Most seconds that requests may be gathered.
const MAX_WAIT: f64 = 3600.0;

/// Most seconds that a generation can be given.
const MAX_TIMEOUT: f64 = 1e9;

/// Most bytes that are read before they are wanted.
const MAX_PREFETCH: usize = 1 << 30;

impl EngineConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { batch, context, device, memory, streams, generation, .. } = self;
        let counts = [
            ("batch.streams", Some(batch.streams)),
            ("batch.queue", Some(batch.queue)),
            ("context.length", context.length),
            ("context.contexts", Some(context.contexts)),
            ("streams.buffer", Some(streams.buffer)),
            ("device.threads", device.threads),
            ("generation.max_tokens", generation.max_tokens),
        ];
        for (option, count) in counts {
            expect(option, count.unwrap_or(1), |count| count > 0, "1 or more")?;
        }
        let wait = |wait: f64| (0.0..=MAX_WAIT).contains(&wait);
        expect("batch.wait_seconds", batch.wait_seconds, wait, "0 to 3600")?;
        let timeout = |time: f64| (0.0..=MAX_TIMEOUT).contains(&time);
        let time = streams.timeout_seconds.unwrap_or(0.0);
        expect("streams.timeout_seconds", time, timeout, "0 to 1e9")?;
        let fraction = |fraction: f64| fraction > 0.0 && fraction <= 1.0;
        let share = device.memory_fraction.unwrap_or(1.0);
        expect("device.memory_fraction", share, fraction, "a number above 0, up to 1")?;
        let least = memory.min_available.unwrap_or(0.5);
        let is_part = |share: f64| share > 0.0 && share < 1.0;
        expect("memory.min_available", least, is_part, "a number above 0, below 1")?;
        let is_small = |bytes| bytes <= MAX_PREFETCH;
        expect("memory.prefetch_bytes", memory.prefetch_bytes, is_small, "0 to 1073741824")?;
        let threads = device.threads.unwrap_or(1);
        expect("device.threads", threads, |threads| threads <= 1024, "1 to 1024")?;
        self.check_sampling()?;
        device.backends.iter().try_for_each(|name| check_name(name))
    }

    /// As a generation without options would be checked.
    fn check_sampling(&self) -> Result<(), Error> {
        let generation = &self.generation;
        Sampler::new(generation.sampling().over(&setun_text::SamplerOptions::default()))?;
        setun_text::StopStrings::new(generation.stop.clone())?;
        Ok(())
    }
}

fn expect<T: Copy + ToString>(
    option: &'static str,
    value: T,
    is_good: impl Fn(T) -> bool,
    expected: &str,
) -> Result<(), Error> {
    if is_good(value) {
        return Ok(());
    }
    let (found, expected) = (value.to_string(), expected.into());
    Err(EngineError::BadOption { option, found, expected }.into())
}

/// A device that some build on some machine has, so that a slip of the pen is not passed over.
fn check_name(name: &str) -> Result<(), Error> {
    let single = |name: &str| {
        let fixed = [Device::Auto, Device::Cpu, Device::Scalar];
        fixed.iter().any(|device| device.to_string() == name)
            || GpuApi::ALL.iter().any(|api| api.name() == name)
            || Level::ALL.iter().any(|level| level.name() == name)
    };
    let is_known = match name.split_once(':') {
        Some(("each", list)) => list.split(',').all(single),
        Some(("split", list)) => list
            .split(',')
            .all(|share| single(share.split_once('=').map_or(share, |(device, _)| device))),
        _ => single(name),
    };
    if is_known {
        return Ok(());
    }
    let expected = "the name of a device or level, as `setun devices` lists them".into();
    let found = format!("`{name}`");
    Err(EngineError::BadOption { option: "device.backends", found, expected }.into())
}

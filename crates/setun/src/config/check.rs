//! The ranges of a configuration's values.

use setun_cpu::Level;
use setun_engine::Error as EngineError;
use setun_text::{OptionKind, OptionValue};

use super::EngineConfig;
use crate::{
    device::{Device, GpuApi},
    error::Error,
};

impl EngineConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { batch, context, device, memory, streams, generation, .. } = self;
        let count = |count: usize| Some(OptionValue::from(count));
        let number = |number: f64| Some(OptionValue::Number(number));
        for (option, kind, value) in [
            ("batch.streams", OptionKind::POSITIVE_COUNT, count(batch.streams)),
            ("batch.queue", OptionKind::POSITIVE_COUNT, count(batch.queue)),
            ("batch.wait_seconds", OptionKind::number(0.0, 3600.0), number(batch.wait_seconds)),
            ("context.length", OptionKind::POSITIVE_COUNT, context.length.and_then(count)),
            ("context.contexts", OptionKind::POSITIVE_COUNT, count(context.contexts)),
            ("device.threads", OptionKind::integer(1, 1024), device.threads.and_then(count)),
            ("device.memory_fraction", SHARE, device.memory_fraction.and_then(number)),
            ("memory.min_available", BELOW_ONE, memory.min_available.and_then(number)),
            (
                "memory.prefetch_bytes",
                OptionKind::integer(0, 1 << 30),
                count(memory.prefetch_bytes),
            ),
            ("streams.buffer", OptionKind::POSITIVE_COUNT, count(streams.buffer)),
        ] {
            if let Some(found) = value.filter(|value| !kind.accepts(value)) {
                let (found, expected) = (found.to_string(), kind.to_string());
                return Err(EngineError::BadOption { option, found, expected }.into());
            }
        }
        generation.check()?;
        device.backends.iter().try_for_each(|name| check_name(name))
    }
}

/// Above 0, up to 1.
const SHARE: OptionKind = OptionKind::number(f32::MIN_POSITIVE, 1.0);

/// Above 0, below 1.
const BELOW_ONE: OptionKind = OptionKind::number(f32::MIN_POSITIVE, 1.0 - f32::EPSILON / 2.0);

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

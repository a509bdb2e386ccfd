//! Which device a model comes to, and how much of its memory it may take.

use super::EngineBuilder;
use crate::{
    device::{Device, DeviceOptions, Loaded, LoadedModel, load_onto},
    error::{Error, ErrorCode},
    input::ModelInput,
};

/// A device that was tried, and why it does not run.
pub(super) type Failed = (Device, Error);

impl EngineBuilder {
    /// Another device, for where those before it are not here, fail, or do not hold the model;
    /// [`Engine::device_report`](crate::Engine::device_report) tells why. A model in memory is
    /// copied for each that is tried.
    pub fn fallback(mut self, device: Device) -> Self {
        self.fallbacks.push(device);
        self
    }

    /// The share of the machine's main memory, above 0 and up to 1, that the weights and the cache
    /// of each processor may take; the cache has fewer [`contexts`](Self::contexts) for it. Only
    /// on Linux, which tells how much there is, and not on GPUs. Default: no limit.
    pub fn memory_fraction(mut self, fraction: f64) -> Self {
        self.memory_fraction = Some(fraction);
        self
    }
}

/// Loads a model onto the first device that takes it; the options with that device, and those
/// that were tried before.
pub(super) async fn load(
    mut model: ModelInput,
    mut options: DeviceOptions,
    fallbacks: Vec<Device>,
) -> Result<(Vec<Loaded>, DeviceOptions, Vec<Failed>), Error> {
    let mut failed = vec![];
    for next in fallbacks {
        match load_all(model.again().await?, &options).await {
            Ok(loaded) => return Ok((loaded, options, failed)),
            Err(error) if is_of_device(&error) => {
                failed.push((std::mem::replace(&mut options.device, next), error));
                model.rewind().await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok((load_all(model, &options).await?, options, failed))
}

/// Whether another device may do better.
fn is_of_device(error: &Error) -> bool {
    let codes = [ErrorCode::BackendUnavailable, ErrorCode::OutOfMemory, ErrorCode::DeviceLost];
    codes.contains(&error.code())
}

/// Loads a model onto a device, or onto each of several.
async fn load_all(mut model: ModelInput, options: &DeviceOptions) -> Result<Vec<Loaded>, Error> {
    let devices = match &options.device {
        Device::Each(devices) => devices.clone(),
        device => vec![device.clone()],
    };
    let mut loaded = vec![];
    for (index, device) in devices.iter().enumerate() {
        // One after the other: they are read from one place.
        if index > 0 {
            model.rewind().await?;
        }
        let options = options.of_one(device, &devices);
        if index + 1 == devices.len() {
            loaded.push(load_onto(model, options).await?);
            break;
        }
        loaded.push(load_onto(model.again().await?, options).await?);
    }
    Ok(loaded)
}

/// Most blocks of a cache within a share of the memory, which must hold one context.
pub(super) fn most_blocks(
    fraction: Option<f64>,
    placed: &LoadedModel,
    context: usize,
) -> Result<usize, Error> {
    let Some(fraction) = fraction else { return Ok(usize::MAX) };
    let bad = |found: String, expected: String| {
        Err(Error::BadOption { option: "memory_fraction", found, expected })
    };
    if !(fraction > 0.0 && fraction <= 1.0) {
        return bad(fraction.to_string(), "a number above 0, up to 1".into());
    }
    let Some(memory) = main_memory().filter(|_| placed.backend == "cpu") else {
        let found = format!("{fraction} for {}", placed.backend);
        return bad(found, "none where the size of the memory is not known".into());
    };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of memory need not be exact"
    )]
    let allowed = (memory as f64 * fraction) as usize;
    let (model, weights) = (&placed.model, placed.model.memory().weights());
    let block_bytes = model.block_bytes().max(1);
    let least = context.div_ceil(model.block_positions());
    let blocks = allowed.saturating_sub(weights) / block_bytes;
    if blocks < least {
        let found = format!("{fraction}, {allowed} bytes");
        let needed = weights + least * block_bytes;
        return bad(found, format!("{needed} bytes or more, for the weights and one context"));
    }
    Ok(blocks)
}

/// Bytes of the machine's main memory, where the system tells.
fn main_memory() -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let lines = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = lines.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

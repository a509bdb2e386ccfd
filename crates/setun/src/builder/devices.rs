//! Which device a model comes to.

use super::EngineBuilder;
use crate::{
    device::{Device, DeviceOptions, Loaded, load_onto},
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

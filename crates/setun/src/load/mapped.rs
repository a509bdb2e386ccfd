//! Weights that are mapped from an image, in place of being read.

use setun_engine::{Error as EngineError, ErrorCode};
use setun_ops::WeightId;

use super::{InputWeights, ModelInput};
use crate::{
    device::{Device, DeviceOpener, OpenedDevice},
    error::Error,
    weight_image::WeightImageFile,
};

/// Gives a device the weights of the image that the options name, if there is one of this model.
/// Else it gives it those of the model, and has the image written.
pub(super) async fn map_or_move(
    model: &mut ModelInput,
    opener: &DeviceOpener,
    device: &mut OpenedDevice,
    keep: bool,
) -> Result<(), Error> {
    let Some(path) = path_of(device, opener)? else {
        return model.move_weights(device, keep || opener.has_fallback()).await;
    };
    let identity = model.identity(device, &path).await?;
    let image = WeightImageFile::new(&path, identity.clone());
    if map(&image, model, device)? {
        model.close().await;
        return Ok(());
    }
    let image = image.create()?;
    model.move_weights(device, keep || opener.has_fallback()).await?;
    // Of files that were written to meanwhile it may have either.
    if model.identity(device, &path).await? == identity {
        device.write_image(image);
    }
    model.close().await;
    Ok(())
}

/// Where the image of a device is, if options name one that it uses.
fn path_of(device: &OpenedDevice, opener: &DeviceOpener) -> Result<Option<String>, Error> {
    let options = opener.options();
    match &options.weight_image {
        Some(path) if device.takes_images() => Ok(Some(path.clone())),
        Some(path) if options.device != Device::Auto => {
            Err(refused(path, "none on this device: images are for levels of the processor"))
        }
        _ => Ok(None),
    }
}

/// Gives a device the weights of an image; false where they must be read from the model.
fn map(
    image: &WeightImageFile,
    model: &ModelInput,
    device: &mut OpenedDevice,
) -> Result<bool, Error> {
    let Some(weights) = image.open()? else { return Ok(false) };
    if weights.len() != model.header.layout.specs.len() {
        return Ok(false);
    }
    for (id, weight) in (0..).map(WeightId).zip(weights) {
        match device.adopt(id, weight) {
            Ok(()) => {}
            Err(error) if error.code() == ErrorCode::OutOfMemory => return Err(error),
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

impl ModelInput {
    /// All that its weights depend on, as they are kept on a device: another text, other weights.
    async fn identity(&self, device: &OpenedDevice, path: &str) -> Result<String, Error> {
        let InputWeights::Reader(reader) = &self.weights else {
            return Err(refused(path, "a model that is still to be read"));
        };
        let Some(files) = reader.file_versions().await else {
            return Err(refused(path, "a model in files of this machine"));
        };
        let (config, kinds) = (&self.header.config, &self.header.kinds);
        let (version, head) = (env!("CARGO_PKG_VERSION"), device.head);
        let options = reader.source.options;
        Ok(format!("setun {version}, head {head}, {options:?}\n{files}{config:?}\n{kinds:?}"))
    }
}

fn refused(path: &str, expected: &str) -> Error {
    let (found, expected) = (path.to_owned(), expected.to_owned());
    EngineError::BadOption { option: "weight_image", found, expected }.into()
}

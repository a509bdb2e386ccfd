//! Weights that are mapped from an image, in place of being read.

use std::path::Path;

use setun_engine::{Error as EngineError, ErrorCode};
use setun_ops::WeightId;

use super::{InputWeights, ModelInput};
use crate::{
    device::{Device, DeviceOpener, DeviceOptions, OpenedDevice},
    error::Error,
    source::ModelFolder,
    weight_image::{NewImage, WeightImageFile},
};

const NO_IMAGES: &str = "none on this device: images are for levels of the processor";

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
    let files = model.file_versions(&path).await?;
    if let Some(image) = WeightImageFile::inside(&path, |own| model.identity(opener, device, own))?
    {
        map_own_file(&path, &files, &image, model, device)?;
        model.close().await;
        return Ok(());
    }
    let identity = model.identity(opener, device, &files)?;
    let image = WeightImageFile::new(&path, identity);
    if map(&image, model, device)? {
        model.close().await;
        return Ok(());
    }
    let image = image.create()?;
    model.move_weights(device, keep || opener.has_fallback()).await?;
    // Of files that were written to meanwhile it may have either.
    if model.file_versions(&path).await? == files {
        device.write_image(image);
    }
    model.close().await;
    Ok(())
}

/// Gives a device the weights of the image that the model's file ends with.
fn map_own_file(
    path: &str,
    files: &str,
    image: &WeightImageFile,
    model: &ModelInput,
    device: &mut OpenedDevice,
) -> Result<(), Error> {
    let is_mapped = is_file(path, files) && map(image, model, device)?;
    if !is_file(path, files) {
        return Err(refused(path, "the model's own file, or one that is no model"));
    }
    if is_mapped {
        return Ok(());
    }
    let fits = "an image of this version, byte order, activation group of a model with relu² and \
                form of the head: convert the model again, or leave the group and the head open";
    Err(refused(path, fits))
}

/// Whether the weights are in this one file, by its version.
fn is_file(path: &str, files: &str) -> bool {
    let path = Path::new(path);
    let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name());
    let version =
        name.and_then(|name| ModelFolder::new(folder).file_version(&name.to_string_lossy()));
    files.lines().count() == 1
        && version.is_some_and(|version| files.trim_end().ends_with(&format!(": {version}")))
}

/// Where the image of a device is, if options name one that it uses.
fn path_of(device: &OpenedDevice, opener: &DeviceOpener) -> Result<Option<String>, Error> {
    let options = opener.options();
    match &options.weight_image {
        Some(path) if device.takes_images() => Ok(Some(path.clone())),
        Some(path) if options.device != Device::Auto => Err(refused(path, NO_IMAGES)),
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
    /// Loads it onto a device and has its weights written as that keeps them. `own` stands for its
    /// file, and `image` is given all that they depend on.
    pub(crate) async fn write_image(
        &mut self,
        options: DeviceOptions,
        own: &str,
        image: impl FnOnce(String) -> Result<NewImage, Error>,
    ) -> Result<(), Error> {
        let mut opener = DeviceOpener::new(&self.header, options)?;
        let mut device = opener.open().await?;
        if !device.takes_images() {
            return Err(refused(&device.level, NO_IMAGES));
        }
        device.write_image(image(self.identity(&opener, &device, own)?)?);
        self.move_weights(&mut device, false).await?;
        self.close().await;
        device.finish().await.map(drop)
    }

    /// Versions of its files, a line each.
    async fn file_versions(&self, path: &str) -> Result<String, Error> {
        let InputWeights::Reader(reader) = &self.weights else {
            return Err(refused(path, "a model that is still to be read"));
        };
        let versions = reader.file_versions().await;
        versions.ok_or_else(|| refused(path, "a model in files of this machine"))
    }

    /// All that its weights depend on, as they are kept on a device: another text, other weights.
    fn identity(
        &self,
        opener: &DeviceOpener,
        device: &OpenedDevice,
        files: &str,
    ) -> Result<String, Error> {
        let InputWeights::Reader(reader) = &self.weights else {
            return Err(refused(files, "a model that is still to be read"));
        };
        let (config, kinds) = (&self.header.config, &self.header.kinds);
        let (version, head) = (env!("CARGO_PKG_VERSION"), device.head);
        let (options, sparse) = (reader.source.options, opener.header().has_sparse_inputs());
        let kept = format!("head {head}, sparse inputs {sparse}");
        Ok(format!("setun {version}, {kept}, {options:?}\n{files}{config:?}\n{kinds:?}"))
    }
}

fn refused(path: &str, expected: &str) -> Error {
    let (found, expected) = (path.to_owned(), expected.to_owned());
    EngineError::BadOption { option: "weight_image", found, expected }.into()
}

//! Writing of an image of the weights into the model's own file.

use std::path::Path;

use setun_checkpoint::Source;
use setun_engine::HeadType;

use super::ModelInput;
use crate::{
    device::{Device, DeviceOptions},
    error::Error,
    reader::ModelReader,
    source::{ModelFolder, ModelSource},
    weight_image::ImageRoom,
};

/// Adds to a `.setun` file its weights as a processor keeps them, so that it can be mapped: see
/// [`EngineBuilder::weight_image`](crate::EngineBuilder::weight_image). The head is kept as the
/// engine is to keep it. The file must have been written with
/// [room for it](crate::ContainerOptions::image), and nobody may read it meanwhile. The whole model
/// is in memory.
///
/// # Errors
///
/// If there is no such file, it is no container of one file, has no room or an image already, cannot
/// be read or written, or the processor is none that keeps weights so. The file is as before then, if
/// the disk permits.
pub fn add_weight_image(path: impl AsRef<Path>, head: HeadType) -> Result<(), Error> {
    let room = ImageRoom::open(path.as_ref())?;
    let added = pollster::block_on(write(&room, head)).and_then(|()| room.name_image());
    if added.is_err() {
        room.clear();
    }
    added
}

/// Opens the model as an engine does, and has its weights written.
async fn write(room: &ImageRoom, head: HeadType) -> Result<(), Error> {
    let path = room.path();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let source = ModelSource::new(Source::File(name.clone()), name, ModelFolder::new(folder));
    let mut model = ModelInput::from(ModelReader::new(source).await?);
    let options = DeviceOptions { device: Device::Cpu, head, ..DeviceOptions::default() };
    model.write_image(options, room.own(), |identity| room.image(identity)).await
}

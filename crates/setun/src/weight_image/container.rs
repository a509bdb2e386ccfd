//! Images at the end of `.setun` files.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use setun_checkpoint::{
    Source,
    container::{Head, IMAGE_ALIGNMENT, ImageEntry, Manifest, write::with_image},
};
use setun_engine::HeadType;
use sha2::{Digest, Sha256};

use super::{NewImage, WeightImageFile, read_up_to};
use crate::{
    device::{Device, DeviceOptions},
    error::Error,
    load::ModelInput,
    reader::ModelReader,
    source::{ModelFolder, ModelSource, open_file},
};

/// Bytes of a head.
#[expect(clippy::cast_possible_truncation, reason = "48")]
const FIRST: usize = Head::BYTES as usize;

/// Bytes that are hashed at once.
const PIECE: usize = 4 << 20;

/// Adds to a `.setun` file its weights as a processor keeps them, so that it can be mapped: see
/// [`EngineBuilder::weight_image`](crate::EngineBuilder::weight_image). The head is kept as the
/// engine is to keep it. The file must have been written with
/// [room for it](crate::ContainerOptions::image); one that this fails for is not to be used.
///
/// # Errors
///
/// If there is no such file, it is no container of one file, has no room, cannot be read, or cannot
/// be written.
pub fn add_weight_image(path: impl AsRef<Path>, head: HeadType) -> Result<(), Error> {
    let path = path.as_ref();
    let unwritable = |source| Error::Unwritable { path: path.into(), source };
    let (first, manifest) = Start::read(path)?.into_container(path)?;
    let old = manifest.image.map(|image| image.stored.start);
    let start = old.unwrap_or(manifest.parts[0].bytes.next_multiple_of(IMAGE_ALIGNMENT));
    let name = path.to_string_lossy();
    // Nothing is written where there is no room for the longest numbers.
    with_image(&name, &first, &ImageEntry { stored: start..u64::MAX, sha256: [0; 32] })?;
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(unwritable)?;
    let written = file.try_clone().map_err(unwritable)?;
    pollster::block_on(write(path, head, written, start))?;
    let end = file.metadata().map_err(unwritable)?.len();
    let sha256 = hash(&mut file, start..end).map_err(unwritable)?;
    let image = ImageEntry { stored: start..end, sha256 };
    let first = with_image(&name, &first, &image)?;
    file.rewind().and_then(|()| file.write_all(&first)).map_err(unwritable)?;
    file.sync_all().map_err(unwritable)
}

/// Compares the image of a `.setun` file with its hash. A file without one is right.
///
/// # Errors
///
/// If they differ, or it cannot be read.
pub fn check_weight_image(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    let start = Start::read(path)?;
    if !start.is_container() {
        return Ok(());
    }
    let (_, Manifest { image: Some(image), .. }) = start.into_container(path)? else {
        return Ok(());
    };
    let failed = |source| Error::Io { path: path.into(), source };
    let mut file = open_file(path).map_err(failed)?;
    let found = hash(&mut file, image.stored).map_err(failed)?;
    if found == image.sha256 { Ok(()) } else { Err(Error::DamagedImage { path: path.into() }) }
}

fn hash(file: &mut File, part: Range<u64>) -> io::Result<[u8; 32]> {
    file.seek(SeekFrom::Start(part.start))?;
    let (mut hasher, mut left) = (Sha256::new(), part.end - part.start);
    let mut buffer = vec![0; PIECE];
    while left > 0 {
        let bytes = PIECE.min(usize::try_from(left).unwrap_or(PIECE));
        file.read_exact(&mut buffer[..bytes])?;
        hasher.update(&buffer[..bytes]);
        left -= bytes as u64;
    }
    Ok(hasher.finalize().into())
}

/// Opens the model as an engine does, and has its weights written.
async fn write(path: &Path, head: HeadType, file: File, start: u64) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let source = ModelSource::new(Source::File(name.clone()), name, ModelFolder::new(folder));
    let mut model = ModelInput::from(ModelReader::new(source).await?);
    let options = DeviceOptions { device: Device::Cpu, head, ..DeviceOptions::default() };
    model
        .write_image(options, |identity| NewImage {
            target: WeightImageFile { path: path.into(), identity, part: Some(start..start) },
            partial: None,
            file,
        })
        .await
}

impl WeightImageFile {
    /// The image at the end of a `.setun` file; none where it is another file, or has no image.
    ///
    /// # Errors
    ///
    /// If it is a `.setun` file that is damaged or cannot be read.
    pub(crate) fn inside(
        path: impl Into<PathBuf>,
        identity: String,
    ) -> Result<Option<Self>, Error> {
        let path = path.into();
        let start = match Start::read(&path) {
            Ok(start) if start.is_container() => start,
            Err(Error::Io { source, .. }) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Io { path, source });
            }
            _ => return Ok(None),
        };
        let (_, manifest) = start.into_container(&path)?;
        let part = manifest.image.map(|image| image.stored);
        Ok(part.map(|part| Self { path, identity, part: Some(part) }))
    }
}

/// A file and its first bytes.
struct Start {
    file: File,
    first: Vec<u8>,
}

impl Start {
    fn read(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Io { path: path.into(), source };
        let mut file = open_file(path).map_err(failed)?;
        let first = read_up_to(&mut file, FIRST).map_err(failed)?;
        Ok(Self { file, first })
    }

    fn is_container(&self) -> bool {
        self.first.starts_with(b"SETUN\0")
    }

    /// Head and manifest, as bytes and read.
    fn into_container(self, path: &Path) -> Result<(Vec<u8>, Manifest), Error> {
        let Self { mut file, first: mut bytes } = self;
        let name = path.to_string_lossy();
        let head = Head::parse(&name, &bytes)?;
        let more = head.manifest().end.saturating_sub(bytes.len() as u64);
        let read = Read::by_ref(&mut file).take(more).read_to_end(&mut bytes);
        read.map_err(|source| Error::Io { path: path.into(), source })?;
        let start = usize::try_from(head.manifest().start).unwrap_or(usize::MAX).min(bytes.len());
        let manifest = Manifest::parse(&name, &head, &bytes[start..])?;
        Ok((bytes, manifest))
    }
}

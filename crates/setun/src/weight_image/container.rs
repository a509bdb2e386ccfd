//! Images at the end of `.setun` files.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use setun_checkpoint::container::{
    Head, IMAGE_ALIGNMENT, ImageEntry, Manifest, is_container, write::with_image,
};
use sha2::{Digest, Sha256};

use super::{
    NewImage, WeightImageFile,
    index::{self, FileHead, Found, HEAD_BYTES},
    read_up_to,
};
use crate::{error::Error, source::open_file};

/// Bytes of a head.
#[expect(clippy::cast_possible_truncation, reason = "48")]
const FIRST: usize = Head::BYTES as usize;

/// Bytes that are hashed at once.
const PIECE: usize = 4 << 20;

/// A `.setun` file whose manifest has room for an image.
pub(crate) struct ImageRoom {
    path: PathBuf,
    /// Head and manifest.
    first: Vec<u8>,
    /// Bytes of the file, without an image.
    bytes: u64,
    /// What stands for the file in the identity of its image.
    own: String,
}

impl ImageRoom {
    /// # Errors
    ///
    /// If there is no such file, it is no container of one file, it has no room or has an image, or
    /// cannot be read.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let (first, manifest) = Start::read(&path)?.into_container(&path)?;
        let (bytes, own) = (manifest.parts[0].bytes, own_identity(&manifest));
        let room = Self { path, first, bytes, own };
        // The longest numbers fit.
        room.named(&ImageEntry { stored: room.start()..u64::MAX, sha256: [0; 32] })?;
        Ok(room)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// Begins the image.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(crate) fn image(&self, identity: String) -> Result<NewImage, Error> {
        let (path, range) = (self.path.clone(), Some(self.start()..self.start()));
        let target = WeightImageFile { path, identity, range };
        Ok(NewImage { target, partial: None, file: self.file()? })
    }

    /// Names the image in the manifest, once it is written.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written.
    pub(crate) fn name_image(&self) -> Result<(), Error> {
        let mut file = self.file()?;
        let end = file.metadata().map_err(|source| self.unwritable(source))?.len();
        let stored = self.start()..end;
        let sha256 = hash(&mut file, &stored).map_err(|source| self.unwritable(source))?;
        let first = self.named(&ImageEntry { stored, sha256 })?;
        let written = file.rewind().and_then(|()| file.write_all(&first));
        written.and_then(|()| file.sync_all()).map_err(|source| self.unwritable(source))
    }

    /// Removes what is written of an image, if the disk permits.
    pub(crate) fn clear(&self) {
        if let Ok(file) = self.file() {
            let _stays = file.set_len(self.bytes);
        }
    }

    fn start(&self) -> u64 {
        self.bytes.next_multiple_of(IMAGE_ALIGNMENT)
    }

    fn named(&self, image: &ImageEntry) -> Result<Vec<u8>, Error> {
        Ok(with_image(&self.path.to_string_lossy(), &self.first, image)?)
    }

    fn file(&self) -> Result<File, Error> {
        let opened = OpenOptions::new().read(true).write(true).open(&self.path);
        opened.map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: io::Error) -> Error {
        Error::Unwritable { path: self.path.clone(), source }
    }
}

/// Compares the image of a `.setun` file with its hash, and checks its index: whoever writes an image may
/// write its hash, too. A file without one is right.
///
/// # Errors
///
/// If they differ, the index is none of this file, or it cannot be read.
pub fn check_weight_image(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    let start = Start::read(path)?;
    if !start.is_container() {
        return Ok(());
    }
    let (_, manifest) = start.into_container(path)?;
    let Some(image) = &manifest.image else { return Ok(()) };
    let failed = |source| Error::Io { path: path.into(), source };
    let mut file = open_file(path).map_err(failed)?;
    let is_sound = match hash(&mut file, &image.stored) {
        Ok(found) if found == image.sha256 => {
            has_sound_index(&mut file, &image.stored, &own_identity(&manifest)).map_err(failed)?
        }
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(failed(error)),
        _ => false,
    };
    if is_sound { Ok(()) } else { Err(Error::DamagedImage { path: path.into() }) }
}

/// Whether the index of an image is one of this file. One of another version is not used.
fn has_sound_index(file: &mut File, stored: &Range<u64>, own: &str) -> io::Result<bool> {
    file.seek(SeekFrom::Start(stored.start))?;
    let bytes = stored.end - stored.start; // its hash has been compared
    let head = match FileHead::find(&read_up_to(file, HEAD_BYTES)?) {
        Found::Head(head) => head,
        Found::OtherVersion => return Ok(true),
        Found::Nothing => return Ok(false),
    };
    let Some(index_bytes) = head.index_bytes().filter(|_| head.bytes == bytes) else {
        return Ok(false);
    };
    let index = read_up_to(file, index_bytes)?;
    Ok(index.len() == index_bytes && index::is_sound(&index, own, bytes))
}

/// In place of the versions of files: the hashes of the chunks beside which an image lies.
fn own_identity(manifest: &Manifest) -> String {
    let mut hasher = Sha256::new();
    manifest.chunks.iter().for_each(|chunk| hasher.update(chunk.sha256));
    let digest: [u8; 32] = hasher.finalize().into();
    format!("its own file, chunks {digest:02x?}\n")
}

fn hash(file: &mut File, range: &Range<u64>) -> io::Result<[u8; 32]> {
    file.seek(SeekFrom::Start(range.start))?;
    let (mut hasher, mut left) = (Sha256::new(), range.end.saturating_sub(range.start));
    let mut buffer = vec![0; PIECE];
    while left > 0 {
        let bytes = PIECE.min(usize::try_from(left).unwrap_or(PIECE));
        file.read_exact(&mut buffer[..bytes])?;
        hasher.update(&buffer[..bytes]);
        left -= bytes as u64;
    }
    Ok(hasher.finalize().into())
}

impl WeightImageFile {
    /// The image at the end of a `.setun` file; none where it is another file, or has no image.
    /// `identity` is given what stands for the file.
    ///
    /// # Errors
    ///
    /// If it is a `.setun` file that is damaged or cannot be read.
    pub(crate) fn inside(
        path: impl Into<PathBuf>,
        identity: impl FnOnce(&str) -> Result<String, Error>,
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
        let Some(image) = &manifest.image else { return Ok(None) };
        let identity = identity(&own_identity(&manifest))?;
        Ok(Some(Self { path, identity, range: Some(image.stored.clone()) }))
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
        is_container(&self.first)
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

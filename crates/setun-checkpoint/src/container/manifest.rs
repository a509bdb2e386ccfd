//! The checked manifest of a container.

use std::{borrow::Cow, ops::Range};

use super::{
    CUT_BYTES, EXTENSION, Hash, Head, MAX_CHUNK_BYTES, MAX_RATIO, VERSION, from_hex, hex, migrate,
    raw::{ContainerFile, Provenance, RawChunk, RawFile, RawManifest, RawTensor},
    sha256,
};
#[cfg(not(target_family = "wasm"))]
use super::{IMAGE_ALIGNMENT, raw::RawImage};
use crate::{dtype::Dtype, error::CheckpointError, header::MAX_RANK, json};

/// What a container holds and where, checked: chunks lie in their files one after the other, are
/// no longer than [`MAX_CHUNK_BYTES`], and hold all files and tensors, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Licence of the weights, in words or as an SPDX expression.
    pub licence: Option<String>,
    /// Where the model came from.
    pub provenance: Provenance,
    /// The container's files. The first holds the manifest.
    pub parts: Vec<ContainerFile>,
    /// The small files.
    pub files: Vec<FileEntry>,
    /// The tensors, in the order in which a forward pass needs them.
    pub tensors: Vec<TensorEntry>,
    /// Where the bytes of files and tensors lie.
    pub chunks: Vec<Chunk>,
    /// The weights as a processor keeps them. Not in WebAssembly, which maps nothing.
    #[cfg(not(target_family = "wasm"))]
    pub image: Option<ImageEntry>,
}

/// An image of the weights, behind the chunks of the first file.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEntry {
    /// Its bytes in that file, which end with it.
    pub stored: Range<u64>,
    /// SHA-256 of these bytes.
    pub sha256: [u8; 32],
}

/// A small file of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name in a Hugging Face folder.
    pub name: String,
    /// The file itself, where the manifest holds it.
    pub text: Option<String>,
    /// Its bytes among the content of the chunks.
    pub content: Range<u64>,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorEntry {
    /// Its name in Hugging Face's layout.
    pub name: String,
    /// Type of its elements.
    pub dtype: Dtype,
    /// Its shape; the last dimension is contiguous.
    pub shape: Vec<usize>,
    /// Its bytes among the content of the chunks.
    pub content: Range<u64>,
}

/// A part of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Index of its file among the [`parts`](Manifest::parts).
    pub part: usize,
    /// Its bytes in that file.
    pub stored: Range<u64>,
    /// Which bytes of all content it holds.
    pub content: Range<u64>,
    /// How it is stored.
    pub encoding: Encoding,
    /// SHA-256 of the stored bytes.
    pub sha256: [u8; 32],
}

/// How a chunk is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Plain,
    /// As one frame of Zstandard.
    Zstd,
}

impl Manifest {
    /// Reads the manifest of a file, whose bytes are those of [`Head::manifest`]. Manifests of
    /// older versions are turned into the newest form.
    ///
    /// # Errors
    ///
    /// If its hash is not that of the head, it is not of the format, or the file is not the first
    /// of its container.
    pub fn parse(file: &str, head: &Head, bytes: &[u8]) -> Result<Self, CheckpointError> {
        head.verify(file, bytes)?;
        let raw: RawManifest = if head.version == VERSION {
            json::read(file, bytes)?
        } else {
            let old = json::read(file, bytes)?;
            json::from_value(file, migrate::newest(file, head, old)?)?
        };
        if raw.version != VERSION {
            let expected = VERSION.to_string();
            return Err(CheckpointError::field(file, "version", expected, raw.version.to_string()));
        }
        if let Some(part) = raw.part {
            let (file, parts) = (file.to_owned(), raw.parts.len());
            return Err(CheckpointError::ContainerPart { file, part, parts });
        }
        Self::check(file, raw)
    }

    /// The content of a chunk, once its hash is found to be right.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::ChunkHash`] if `stored` are not the bytes that were written, or if they
    /// cannot be unpacked, or the chunk does not exist.
    pub fn content<'a>(
        &self,
        chunk: usize,
        stored: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, CheckpointError> {
        let Some(found) = self.chunks.get(chunk) else {
            return Err(bad_chunk(&self.parts[0].file, chunk, "does not exist"));
        };
        found.content(&self.parts[found.part].file, chunk, stored)
    }

    /// Bytes of all files and tensors together, those in the manifest not counted.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.chunks.last().map_or(0, |chunk| chunk.content.end)
    }

    fn check(file: &str, raw: RawManifest) -> Result<Self, CheckpointError> {
        let (provenance, parts) = (raw.provenance.unwrap_or_default(), raw.parts);
        check_files(file, &parts)?;
        let mut end = 0;
        let files = raw.files.into_iter().map(|raw| check_file(file, raw, &mut end));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let tensors = raw.tensors.into_iter().map(|raw| check_tensor(file, raw, &mut end));
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let chunks = check_chunks(file, raw.chunks, &parts)?;
        #[cfg(not(target_family = "wasm"))]
        let image = raw.image.map(|image| check_image(file, &image, &chunks, &parts[0]));
        let manifest = Self {
            licence: raw.licence,
            provenance,
            parts,
            files,
            tensors,
            chunks,
            #[cfg(not(target_family = "wasm"))]
            image: image.transpose()?,
        };
        if manifest.content_bytes() != end {
            let what = format!("ends at byte {} of {end}", manifest.content_bytes());
            return Err(bad_chunk(file, manifest.chunks.len().saturating_sub(1), &what));
        }
        manifest.check_cuts(file)?;
        Ok(manifest)
    }

    /// A chunk holds several files or tensors that are whole, or a piece of one.
    fn check_cuts(&self, file: &str) -> Result<(), CheckpointError> {
        let items = self.files.iter().map(|file| (&file.content, 1));
        let items = items.chain(self.tensors.iter().map(|tensor| (&tensor.content, CUT_BYTES)));
        let mut items = items.filter(|(content, _)| !content.is_empty()).peekable();
        for (index, chunk) in self.chunks.iter().enumerate() {
            let Range { start, end } = chunk.content;
            while items.next_if(|(content, _)| content.end <= start).is_some() {}
            let Some((first, cut)) = items.peek() else {
                return Ok(());
            };
            if (start - first.start) % cut != 0 {
                let what = format!("begins within {cut} bytes that belong together");
                return Err(bad_chunk(file, index, &what));
            }
            if end <= first.end {
                continue; // a piece of one, or one
            }
            let whole_first = first.start == start;
            let mut last = start;
            while let Some((content, _)) = items.next_if(|(content, _)| content.end <= end) {
                last = content.end;
            }
            if !whole_first || last != end {
                return Err(bad_chunk(file, index, "holds pieces of several tensors"));
            }
        }
        Ok(())
    }
}

impl Chunk {
    pub(super) fn content<'a>(
        &self,
        file: &str,
        index: usize,
        stored: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, CheckpointError> {
        let found = sha256(&[stored]);
        if found != self.sha256 {
            let (file, expected, found) = (file.to_owned(), hex(&self.sha256), hex(&found));
            return Err(CheckpointError::ChunkHash { file, chunk: index, expected, found });
        }
        match self.encoding {
            Encoding::Plain => Ok(Cow::Borrowed(stored)),
            Encoding::Zstd => {
                let bytes = self.content.end - self.content.start;
                unpack(stored, bytes).map(Cow::Owned).map_err(|what| bad_chunk(file, index, &what))
            }
        }
    }
}

#[cfg(feature = "zstd")]
fn unpack(stored: &[u8], bytes: u64) -> Result<Vec<u8>, String> {
    // A chunk's content is limited, see `MAX_CHUNK_BYTES`.
    let mut content = vec![0; usize::try_from(bytes).unwrap_or(0)];
    let found = ruzstd::decoding::FrameDecoder::new()
        .decode_all(stored, &mut content)
        .map_err(|error| format!("cannot be unpacked: {error}"))?;
    if found == content.len() {
        return Ok(content);
    }
    Err(format!("holds {found} bytes, expected {bytes}"))
}

#[cfg(not(feature = "zstd"))]
fn unpack(_stored: &[u8], _bytes: u64) -> Result<Vec<u8>, String> {
    Err("is compressed with zstd, which this build does not read: convert the model without".into())
}

pub(super) fn bad_chunk(file: &str, chunk: usize, what: &str) -> CheckpointError {
    CheckpointError::Chunk { file: file.to_owned(), chunk, what: what.to_owned() }
}

fn check_files(file: &str, parts: &[ContainerFile]) -> Result<(), CheckpointError> {
    if parts.is_empty() {
        return Err(CheckpointError::field(file, "parts", "at least one file", "none"));
    }
    for ContainerFile { file: name, .. } in &parts[1..] {
        if !is_plain_name(name) {
            let expected = format!("a plain name that ends in {EXTENSION}");
            return Err(CheckpointError::field(file, "parts.file", expected, name.as_str()));
        }
    }
    Ok(())
}

/// Whether a file of this name lies beside the one that names it.
pub(super) fn is_plain_name(name: &str) -> bool {
    name.ends_with(EXTENSION) && !name.starts_with('.') && !name.contains([':', '/', '\\', '\0'])
}

fn check_file(file: &str, raw: RawFile, end: &mut u64) -> Result<FileEntry, CheckpointError> {
    let bytes = if raw.text.is_some() { 0 } else { raw.bytes.unwrap_or(0) };
    let content = following(end, bytes).ok_or_else(|| {
        let field = format!("files.{}.bytes", raw.name);
        CheckpointError::field(file, field, "a number of bytes", bytes.to_string())
    })?;
    Ok(FileEntry { name: raw.name, text: raw.text, content })
}

fn check_tensor(file: &str, raw: RawTensor, end: &mut u64) -> Result<TensorEntry, CheckpointError> {
    let Some(dtype) = dtype(&raw.dtype) else {
        let (file, tensor) = (file.to_owned(), raw.name);
        return Err(CheckpointError::UnknownDtype { file, tensor, found: raw.dtype });
    };
    let sizes = raw.shape.iter().map(|&size| usize::try_from(size).ok());
    let shape = sizes.collect::<Option<Vec<_>>>().filter(|shape| shape.len() <= MAX_RANK);
    let elements = |shape: &Vec<usize>| shape.iter().try_fold(1, |n: usize, m| n.checked_mul(*m));
    let shape = shape.filter(|shape| elements(shape).is_some());
    let start = *end;
    let content = shape.as_ref().and_then(|shape| following(end, dtype.bytes(shape)?));
    match shape.zip(content) {
        Some((shape, content)) => Ok(TensorEntry { name: raw.name, dtype, shape, content }),
        None => Err(CheckpointError::TensorSize {
            file: file.to_owned(),
            tensor: raw.name,
            dtype,
            shape: raw.shape.into_iter().take(MAX_RANK).collect(),
            found: [start, start],
        }),
    }
}

/// The next this many bytes of the content.
fn following(end: &mut u64, bytes: u64) -> Option<Range<u64>> {
    let start = *end;
    *end = start.checked_add(bytes)?;
    Some(start..*end)
}

fn check_chunks(
    file: &str,
    raw: Vec<RawChunk>,
    parts: &[ContainerFile],
) -> Result<Vec<Chunk>, CheckpointError> {
    let (mut before, mut end) = ((0, 0), 0);
    let mut chunks = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        let bad = |what: &str| bad_chunk(file, index, what);
        let part = parts.get(raw.part).ok_or_else(|| bad("lies in a file that is not named"))?;
        let last = raw.offset.checked_add(raw.stored).filter(|last| *last <= part.bytes);
        let last = last.ok_or_else(|| bad("lies beyond the end of its file"))?;
        if (raw.part, raw.offset) < before {
            return Err(bad("does not follow the one before it"));
        }
        if raw.bytes == 0 || raw.bytes > MAX_CHUNK_BYTES {
            return Err(bad(&format!("holds {} bytes, of {MAX_CHUNK_BYTES}", raw.bytes)));
        }
        let encoding = match raw.encoding.as_deref() {
            None if raw.stored == raw.bytes => Encoding::Plain,
            Some("zstd") if fits_compressed(raw.stored, raw.bytes) => Encoding::Zstd,
            None | Some("zstd") => return Err(bad("is stored in a wrong number of bytes")),
            Some(found) => return Err(bad(&format!("has the unknown encoding `{found}`"))),
        };
        let sha256: Hash = from_hex(&raw.sha256)
            .ok_or_else(|| bad("has a SHA-256 that is not 64 hexadecimal digits"))?;
        let content = following(&mut end, raw.bytes).ok_or_else(|| bad("holds too much"))?;
        before = (raw.part, last);
        chunks.push(Chunk { part: raw.part, stored: raw.offset..last, content, encoding, sha256 });
    }
    Ok(chunks)
}

/// An image lies behind the chunks of the first file, and ends with it.
#[cfg(not(target_family = "wasm"))]
fn check_image(
    file: &str,
    image: &RawImage,
    chunks: &[Chunk],
    first: &ContainerFile,
) -> Result<ImageEntry, CheckpointError> {
    let chunks = chunks.iter().filter(|chunk| chunk.part == 0);
    let start = chunks.map(|chunk| chunk.stored.end).max().unwrap_or(0);
    let RawImage { offset, bytes, .. } = *image;
    let is_behind = offset >= start && offset.is_multiple_of(IMAGE_ALIGNMENT) && bytes > 0;
    let end = offset.checked_add(bytes).filter(|end| is_behind && *end == first.bytes);
    let end = end.ok_or_else(|| {
        let expected = format!("bytes from {start} to {}", first.bytes);
        CheckpointError::field(file, "image", expected, format!("{bytes} from {offset}"))
    })?;
    let sha256 = from_hex(&image.sha256).ok_or_else(|| {
        CheckpointError::field(file, "image.sha256", "64 hexadecimal digits", image.sha256.as_str())
    })?;
    Ok(ImageEntry { stored: offset..end, sha256 })
}

/// Whether this many bytes of content may be stored in this many that are compressed.
pub(super) fn fits_compressed(stored: u64, bytes: u64) -> bool {
    stored < bytes && stored >= bytes.div_ceil(MAX_RATIO)
}

/// The type of a name in a manifest.
fn dtype(name: &str) -> Option<Dtype> {
    let base3 = Dtype::Base3.to_string();
    if name == base3 { Some(Dtype::Base3) } else { Dtype::from_safetensors(name) }
}

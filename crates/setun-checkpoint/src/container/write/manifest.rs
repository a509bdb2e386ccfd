//! Places of chunks, and the manifest that names them.

use super::ContainerWriter;
use crate::{
    container::{
        ContainerFile, EXTENSION, Encoding, Head, Provenance, VERSION, hex,
        manifest::is_plain_name,
        raw::{RawChunk, RawFile, RawManifest, RawTensor},
    },
    error::CheckpointError,
    header::MAX_HEADER_BYTES,
    json,
};

/// Bytes that naming an image adds to a manifest, at most.
const IMAGE_ROOM: usize = 192;

/// Where data start: at a multiple of this many bytes, so that a mapped file is aligned.
const ALIGNMENT: u64 = 64;

impl ContainerWriter {
    /// Distributes chunks over files, and leaves room for manifests.
    pub(super) fn place(&mut self, name: &str) -> Result<(), CheckpointError> {
        if !is_plain_name(name) {
            let what = format!("a file named `{name}`");
            return Err(super::unwritable(what, "take a plain name that ends in .setun"));
        }
        let mut lengths = vec![0];
        let most = self.options.part_bytes.unwrap_or(u64::MAX);
        for chunk in self.units.iter_mut().flat_map(|unit| &mut unit.chunks) {
            let length: u64 = lengths[lengths.len() - 1];
            if length > 0 && length.saturating_add(chunk.bytes) > most {
                lengths.push(0);
            }
            chunk.part = lengths.len() - 1;
            chunk.offset = lengths[chunk.part];
            lengths[chunk.part] += chunk.bytes;
        }
        let stem = name.strip_suffix(EXTENSION).unwrap_or(name);
        let parts = lengths.len();
        let numbered = |part| format!("{stem}-{part:05}-of-{parts:05}{EXTENSION}");
        self.names =
            if parts == 1 { vec![name.to_owned()] } else { (1..=parts).map(numbered).collect() };
        self.room = vec![0; parts];
        self.ends = lengths;
        for part in (0..parts).rev() {
            self.make_room(part)?;
        }
        if self.options.zstd {
            self.ends.clone_from(&self.room);
        }
        Ok(())
    }

    /// Moves a file's chunks behind its manifest. Longer numbers make that longer, so that it may
    /// take a second time.
    fn make_room(&mut self, part: usize) -> Result<(), CheckpointError> {
        loop {
            let bytes = Head::BYTES + self.manifest_json(part)?.len() as u64;
            if bytes > MAX_HEADER_BYTES {
                return Err(CheckpointError::header_too_large(&self.names[part], bytes));
            }
            let room = bytes.next_multiple_of(ALIGNMENT);
            if room <= self.room[part] {
                return Ok(());
            }
            let more = room - self.room[part];
            self.room[part] = room;
            self.ends[part] += more;
            for chunk in self.units.iter_mut().flat_map(|unit| &mut unit.chunks) {
                if chunk.part == part {
                    chunk.offset += more;
                }
            }
        }
    }

    /// The manifest of a file: of the first it names all, of the others themselves.
    pub(super) fn manifest_json(&self, part: usize) -> Result<Vec<u8>, CheckpointError> {
        let parts = self.names.iter().zip(&self.ends);
        let parts = parts.map(|(file, &bytes)| ContainerFile { file: file.clone(), bytes });
        let mut raw =
            RawManifest { version: VERSION, parts: parts.collect(), ..RawManifest::default() };
        if part > 0 {
            // No length of its own: that it may be read without the others is not needed.
            raw.parts.iter_mut().for_each(|part| part.bytes = 0);
            raw.part = Some(part + 1);
            return json::write(&self.names[part], &raw);
        }
        raw.licence.clone_from(&self.options.licence);
        let (source, tool) = (self.options.source.clone(), self.options.tool.clone());
        if source.is_some() || tool.is_some() {
            raw.provenance = Some(Provenance { source, tool });
        }
        let texts = self.texts.iter().cloned();
        let texts = texts.map(|(name, text)| RawFile { name, text: Some(text), bytes: None });
        raw.files.extend(texts);
        for item in &self.items {
            let name = item.name.clone();
            match &item.tensor {
                None => raw.files.push(RawFile { name, text: None, bytes: Some(item.bytes) }),
                Some((dtype, shape)) => {
                    let shape = shape.iter().map(|&size| size as u64).collect();
                    raw.tensors.push(RawTensor { name, dtype: dtype.to_string(), shape });
                }
            }
        }
        raw.chunks =
            self.units.iter().flat_map(|unit| &unit.chunks).map(|chunk| self.raw(chunk)).collect();
        let mut json = json::write(&self.names[part], &raw)?;
        if self.options.image {
            json.extend([b' '; IMAGE_ROOM]);
        }
        Ok(json)
    }

    /// A chunk as the manifest names it; before it is written, as it would be longest.
    fn raw(&self, chunk: &super::NewChunk) -> RawChunk {
        let is_open = self.options.zstd && chunk.sha256 == [0; 32];
        let is_zstd = is_open || chunk.encoding == Encoding::Zstd;
        RawChunk {
            part: chunk.part,
            offset: chunk.offset,
            stored: chunk.stored,
            bytes: chunk.bytes,
            encoding: is_zstd.then(|| "zstd".to_owned()),
            sha256: hex(&chunk.sha256),
        }
    }
}

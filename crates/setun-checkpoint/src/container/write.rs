//! Writing a container, without doing any IO.
//!
//! [`plan`] says what goes where; the [`ContainerWriter`] is given the content of each tensor and
//! hands out [`Piece`]s of files. The head and the manifest, which has all hashes, come last, to room
//! that is left for them: a file that is not complete is none of the format. The same model and
//! options give the same bytes.

mod content;
#[cfg(not(target_family = "wasm"))]
mod image;
mod linear;
mod manifest;
mod options;
mod units;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

#[cfg(not(target_family = "wasm"))]
pub use image::with_image;
pub use options::{Options, TableType};

use content::{Encoded, encode};
use linear::Target;
use units::{Item, Unit, plan_units};

use super::{
    Encoding, Hash,
    manifest::{bad_chunk, fits_compressed},
    sha256,
};
use crate::{
    error::CheckpointError,
    outline::{Content, Outline, OutlineTensor},
    write::{Piece, Sink, Writer},
};

/// A container on its way to its files. See [`plan`].
#[derive(Debug)]
pub struct ContainerWriter {
    options: Options,
    names: Vec<String>,  // of files
    room: Vec<u64>,      // of each file's head and manifest
    ends: Vec<u64>,      // of each file, as far as it is known
    items: Vec<Item>,    // files, then tensors, in the order of their content
    units: Vec<Unit>,    // in that order
    unit_of: Vec<usize>, // by item
    item_of: HashMap<String, usize>,
    planned: HashMap<String, (OutlineTensor, Target)>,
    files: Vec<Vec<u8>>,               // contents of the first items
    texts: Vec<(String, String)>,      // files that the manifest holds
    next: usize,                       // the unit that comes next where chunks are compressed
    waiting: BTreeMap<usize, Vec<u8>>, // small units that came before it
}

/// Plans the files of a container. `name` is that of the one file, and ends in `.setun`; several
/// are called `name-00001-of-00003.setun` and so on.
///
/// # Errors
///
/// If the name is not a plain one, a model cannot be stored as is asked, or its manifest would be
/// too long.
pub fn plan(
    name: &str,
    outline: &Outline,
    options: &Options,
) -> Result<ContainerWriter, CheckpointError> {
    options.check(outline.config.tied_head)?;
    let target = Target::of(outline, options);
    let files = target.files(outline)?;
    let (items, planned) = units::items(outline, options, target)?;
    let (texts, files): (Vec<_>, Vec<_>) =
        files.into_iter().map(units::as_text).partition(Result::is_ok);
    let texts = texts.into_iter().flatten().collect();
    let files: Vec<_> = files.into_iter().filter_map(Result::err).collect();
    let first = files.iter().map(|(name, bytes)| Item::file(name, bytes.len() as u64));
    let items: Vec<_> = first.chain(items).collect();
    let (units, unit_of) = plan_units(&items, files.len(), options);
    let mut item_of = HashMap::new();
    for (index, item) in items.iter().enumerate().skip(files.len()) {
        if item_of.insert(item.name.clone(), index).is_some() {
            let (file, tensor) = (name.to_owned(), item.name.clone());
            return Err(CheckpointError::DuplicateTensor { file, tensor });
        }
    }
    let files = files.into_iter().map(|(_, bytes)| bytes).collect();
    let mut writer = ContainerWriter {
        options: options.clone(),
        names: vec![],
        room: vec![],
        ends: vec![],
        items,
        units,
        unit_of,
        item_of,
        planned,
        files,
        texts,
        next: 0,
        waiting: BTreeMap::new(),
    };
    writer.place(name)?;
    Ok(writer)
}

impl Writer for ContainerWriter {
    fn begin(&mut self, write: &mut Sink<'_>) -> Result<(), CheckpointError> {
        for (index, bytes) in std::mem::take(&mut self.files).into_iter().enumerate() {
            self.add_item(index, &Encoded::Bytes(bytes), write)?;
        }
        Ok(())
    }

    /// Takes tensors in any order, or, where chunks are compressed, in that of the outline.
    fn put(
        &mut self,
        name: &str,
        content: Content,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let Some((planned, target)) = self.planned.remove(name) else {
            return Err(misplaced(name, "it is not planned, or was written before"));
        };
        let table = self.options.table(&planned, target);
        for (name, encoded) in encode(&planned, content, target, table)? {
            let item = self.item_of.get(&name).copied();
            let item = item.ok_or_else(|| misplaced(&name, "it is not planned"))?;
            self.add_item(item, &encoded, write)?;
        }
        Ok(())
    }

    fn end(&mut self, write: &mut Sink<'_>) -> Result<(), CheckpointError> {
        if let Some(name) = self.planned.keys().min() {
            return Err(misplaced(name, "it was not written"));
        }
        for (file, end) in self.ends.iter_mut().enumerate() {
            let chunks = self.units.iter().flat_map(|unit| &unit.chunks);
            let ends = chunks.filter(|chunk| chunk.part == file);
            *end = ends.map(|chunk| chunk.offset + chunk.stored).max().unwrap_or(self.room[file]);
        }
        for file in (0..self.names.len()).rev() {
            let bytes = self.head(file)?;
            write(Piece { file: self.names[file].clone(), offset: 0, bytes });
        }
        Ok(())
    }
}

impl ContainerWriter {
    /// Bytes of each file; where chunks are compressed, those that are written so far.
    #[must_use]
    pub fn bytes(&self) -> &[u64] {
        &self.ends
    }

    /// Takes an item's bytes, and writes each chunk that is complete by them.
    fn add_item(
        &mut self,
        item: usize,
        encoded: &Encoded,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let Item { name, bytes, .. } = &self.items[item];
        let found = encoded.len();
        if found != *bytes {
            let what = format!("it has {found} bytes, planned are {bytes}");
            return Err(misplaced(name, &what));
        }
        let index = self.unit_of[item];
        let unit = &mut self.units[index];
        if unit.items.len() > 1 {
            return match unit.fill(item, encoded) {
                Some(bytes) => self.add_small(index, bytes, write),
                None => Ok(()),
            };
        }
        if unit.is_small {
            return self.add_small(index, encoded.bytes(0..found).into_owned(), write);
        }
        self.expect_turn(index)?;
        let mut start = 0;
        for chunk in 0..self.units[index].chunks.len() {
            let length = self.units[index].chunks[chunk].bytes;
            self.write_chunk(index, chunk, encoded.bytes(start..start + length), write);
            start += length;
        }
        self.write_waiting(write);
        Ok(())
    }

    /// Writes a unit of small items, or keeps it until its turn comes.
    fn add_small(
        &mut self,
        unit: usize,
        bytes: Vec<u8>,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        if self.options.zstd && unit > self.next {
            self.waiting.insert(unit, bytes);
            return Ok(());
        }
        self.expect_turn(unit)?;
        self.write_small(unit, bytes, write);
        self.write_waiting(write);
        Ok(())
    }

    fn write_small(&mut self, unit: usize, bytes: Vec<u8>, write: &mut Sink<'_>) {
        if !self.units[unit].chunks.is_empty() {
            self.write_chunk(unit, 0, bytes.into(), write);
        }
    }

    /// Where a compressed chunk lies is only known once all before it are written.
    fn expect_turn(&self, unit: usize) -> Result<(), CheckpointError> {
        if !self.options.zstd || unit == self.next {
            return Ok(());
        }
        let name = &self.items[self.units[unit].items[0]].name;
        Err(misplaced(name, "compressed tensors come in the outline's order"))
    }

    /// A unit is written: the small ones that waited for it can be.
    fn write_waiting(&mut self, write: &mut Sink<'_>) {
        self.next += 1;
        while let Some(bytes) = self.waiting.remove(&self.next) {
            self.write_small(self.next, bytes, write);
            self.next += 1;
        }
    }

    fn write_chunk(
        &mut self,
        unit: usize,
        index: usize,
        content: Cow<'_, [u8]>,
        write: &mut Sink<'_>,
    ) {
        let packed = self.options.zstd.then(|| options::compress(&content));
        let is_worth =
            |packed: &Vec<u8>| fits_compressed(packed.len() as u64, content.len() as u64);
        let packed = packed.filter(is_worth);
        let chunk = &mut self.units[unit].chunks[index];
        chunk.encoding = if packed.is_some() { Encoding::Zstd } else { Encoding::Plain };
        let bytes = packed.unwrap_or_else(|| content.into_owned());
        chunk.sha256 = sha256(&[&bytes]);
        chunk.stored = bytes.len() as u64;
        if self.options.zstd {
            let end = &mut self.ends[chunk.part];
            chunk.offset = *end;
            *end += chunk.stored;
        }
        write(Piece { file: self.names[chunk.part].clone(), offset: chunk.offset, bytes });
    }

    /// The head and manifest of a file, which fill the room that was left for them.
    fn head(&self, file: usize) -> Result<Vec<u8>, CheckpointError> {
        let mut json = self.manifest_json(file)?;
        let room = self.room[file] - super::Head::BYTES;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if json.len() > room {
            return Err(bad_chunk(&self.names[file], 0, "leaves no room for the manifest"));
        }
        json.resize(room, b' ');
        Ok([super::head::of(&json), json].concat())
    }
}

/// A chunk that is to be written.
#[derive(Debug)]
struct NewChunk {
    part: usize,
    offset: u64,
    stored: u64,
    bytes: u64,
    encoding: Encoding,
    sha256: Hash,
}

/// The error of a tensor that is not handed over as it was planned.
fn misplaced(name: &str, what: &str) -> CheckpointError {
    CheckpointError::Misplaced { name: name.to_owned(), what: what.to_owned() }
}

/// The error of what a container cannot hold, or this build cannot write.
fn unwritable(what: String, way_out: &'static str) -> CheckpointError {
    CheckpointError::Unwritable { format: ".setun", what, way_out }
}

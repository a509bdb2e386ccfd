//! An attempt to read what may be no checkpoint: all that a model and a conversion do with it.

use std::{
    collections::BTreeMap,
    ops::ControlFlow::{self, Break, Continue},
};

use setun_checkpoint::{
    Answer, CheckpointError, Files, ModelConfig, ReadRequest, Reader, Source, outline::Content,
};
use setun_model::{Contents, ModelError, WeightsBuilder};

/// Files by name.
pub type Folder<'a> = BTreeMap<&'a str, &'a [u8]>;

/// What a checkpoint says, in the terms of every format.
#[derive(Debug, PartialEq)]
pub struct Loaded {
    /// Its configuration.
    pub config: ModelConfig,
    /// The files beside its weights.
    pub files: Files,
    /// Codes with their scales, and floats, by name.
    pub contents: BTreeMap<String, Content>,
}

/// Positions that a model is made for: its tables are bounded by them, not by the file.
const POSITIONS: usize = 8;

/// Reads a checkpoint twice: into the weights of a model, and as a conversion does.
///
/// # Errors
///
/// If it is none.
///
/// # Panics
///
/// If more is requested than there can be, or anything after an error.
pub fn read(source: &Source, folder: &Folder<'_>) -> Result<Loaded, ModelError> {
    load(source, folder)?;
    unpack(source, folder)
}

/// Reads a checkpoint up to its tensors' data, and compares names and shapes with its configuration's.
///
/// # Errors
///
/// If it is none.
///
/// # Panics
///
/// As [`read`].
pub fn read_header(source: &Source, folder: &Folder<'_>) -> Result<(), ModelError> {
    feed(source, folder, |reader| {
        let Some(tensors) = reader.tensors() else { return Ok(Continue(())) };
        let config = reader.config().ok_or(CheckpointError::NothingWanted)?;
        let positions = config.context_length.min(POSITIONS);
        WeightsBuilder::new(config, tensors, positions)?;
        Ok(Break(()))
    })
    .map(drop)
}

fn load(source: &Source, folder: &Folder<'_>) -> Result<(), ModelError> {
    let mut weights: Option<WeightsBuilder> = None;
    feed(source, folder, |reader| {
        if let (None, Some(config), Some(tensors)) = (&weights, reader.config(), reader.tensors()) {
            let positions = config.context_length.min(POSITIONS);
            weights = Some(WeightsBuilder::new(config, tensors, positions)?);
        }
        let Some(weights) = &mut weights else { return Ok(Continue(())) };
        while let Some(tensor) = reader.take() {
            weights.add(tensor)?;
        }
        Ok(Continue(()))
    })?;
    weights.ok_or(CheckpointError::NothingWanted)?.finish().map(drop)
}

fn unpack(source: &Source, folder: &Folder<'_>) -> Result<Loaded, ModelError> {
    let mut contents: Option<Contents> = None;
    let mut whole = BTreeMap::new();
    let reader = feed(source, folder, |reader| {
        if let (None, Some(config), Some(tensors)) = (&contents, reader.config(), reader.tensors())
        {
            let new = Contents::new(config, tensors)?;
            reader.select(|info| new.place(&info.name).is_some());
            reader.sort_by_key(|info| new.place(&info.name).unwrap_or(usize::MAX));
            contents = Some(new);
        }
        let Some(contents) = &mut contents else { return Ok(Continue(())) };
        while let Some(tensor) = reader.take() {
            whole.extend(contents.add(tensor)?);
        }
        Ok(Continue(()))
    })?;
    let contents = contents.ok_or(CheckpointError::NothingWanted)?;
    let outline = contents.outline(reader.files())?;
    let is_there = |name: &String| whole.contains_key(name);
    assert!(outline.tensors.iter().all(|tensor| is_there(&tensor.name)), "all tensors came");
    let config = reader.config().cloned().ok_or(CheckpointError::NothingWanted)?;
    Ok(Loaded { config, files: reader.files().clone(), contents: whole })
}

/// Gives a reader what it wants, to the end or to where `look`, called after each answer, stops.
fn feed(
    source: &Source,
    folder: &Folder<'_>,
    mut look: impl FnMut(&mut Reader) -> Result<ControlFlow<()>, ModelError>,
) -> Result<Reader, ModelError> {
    const MAX_SMALL_FILES: usize = 100;
    let bytes: usize = folder.values().map(|bytes| bytes.len()).sum();
    let mut reader = Reader::new(source.clone());
    let mut wants = 0;
    while let Some(want) = reader.next_read() {
        wants += 1;
        assert!(wants <= MAX_SMALL_FILES + bytes, "still wanted: {want:?}");
        if let Err(error) = reader.give(answer(folder, &want)) {
            assert_eq!(reader.next_read(), None, "wanted after {error}");
            return Err(error.into());
        }
        if look(&mut reader)?.is_break() {
            break;
        }
    }
    Ok(reader)
}

/// What a server would say: the part of the range that the file has.
fn answer<'a>(folder: &Folder<'a>, want: &ReadRequest) -> Answer<'a> {
    let Some(bytes) = folder.get(want.file.as_str()) else { return Answer::Missing };
    let place = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
    Answer::Bytes(match &want.range {
        None => bytes,
        Some(range) => &bytes[place(range.start)..place(range.end)],
    })
}

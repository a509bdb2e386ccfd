//! From one format to another, tensor by tensor.

mod format;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use setun_checkpoint::{
    Answer, Options, ReadRequest, Reader, Source,
    outline::Content,
    warning::Warning,
    write::{Piece, Sink, Writer},
};
use setun_model::Contents;

use crate::error::Error;

pub use format::{ContainerOptions, Format, TableType};

/// Converts a model without doing any IO: it says which bytes it wants next, is handed them, and
/// hands out pieces of the files to write. No code and no scale is changed; what the model has no
/// use for is left out.
///
/// A tensor at a time is in memory, and those that came before their turn.
pub struct Conversion {
    name: String,
    reader: Reader,
    contents: Option<Contents>,
    order: HashMap<String, usize>, // of the tensors that are written
    waiting: BTreeMap<usize, (String, Content)>,
    next: usize, // in that order
    format: Format,
    file: String, // to write, where the format has one
    writer: Option<Box<dyn Writer + Send>>,
}

/// The result of a [`Conversion`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Tensors that the model has no use for.
    pub unused: Vec<String>,
    /// What was mended or guessed.
    pub warnings: Vec<Warning>,
}

impl Conversion {
    /// Of the model at a source, reported by that name. `file` is the name of the file to write,
    /// where the format has one.
    #[must_use]
    pub fn new(
        source: Source,
        name: impl Into<String>,
        format: Format,
        file: impl Into<String>,
    ) -> Self {
        Self::with_options(source, Options::default(), name, format, file)
    }

    /// The same, with options for what a file does not say of itself.
    #[must_use]
    pub fn with_options(
        source: Source,
        options: Options,
        name: impl Into<String>,
        format: Format,
        file: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            reader: Reader::with_options(source, options),
            contents: None,
            order: HashMap::new(),
            waiting: BTreeMap::new(),
            next: 0,
            format,
            file: file.into(),
            writer: None,
        }
    }

    /// The bytes that come next, or `None` when all are there.
    #[must_use]
    pub fn next_read(&self) -> Option<ReadRequest> {
        self.reader.next_read()
    }

    /// Takes the bytes that were requested, fewer where the file ends, `None` where there is no
    /// file; hands what is to be written to `write`, piece by piece.
    ///
    /// # Errors
    ///
    /// If a file is missing or damaged, or the format cannot hold the model; those of `write`.
    pub fn give<E: From<Error>>(
        &mut self,
        bytes: Option<&[u8]>,
        write: impl FnMut(Piece) -> Result<(), E>,
    ) -> Result<(), E> {
        until_failure(write, |sink| self.take(bytes, sink))
    }

    fn take(&mut self, bytes: Option<&[u8]>, write: &mut Sink<'_>) -> Result<(), Error> {
        self.reader.give(bytes.map_or(Answer::Missing, Answer::Bytes))?;
        if self.contents.is_none() {
            self.begin()?;
        }
        let Some(contents) = &mut self.contents else { return Ok(()) };
        while let Some(tensor) = self.reader.take() {
            for (name, content) in contents.add(tensor)? {
                let place = self.order.get(&name).copied().unwrap_or(usize::MAX);
                self.waiting.insert(place, (name, content));
            }
        }
        if self.writer.is_none() && contents.is_settled() && !self.waiting.is_empty() {
            let outline = contents.outline(self.reader.files())?;
            let scale = |name: &str| contents.scale(name);
            let mut writer = self.format.writer(&outline, &self.file, scale)?;
            writer.begin(write)?;
            self.writer = Some(writer);
        }
        self.write_those_due(write)
    }

    /// Hands the end of what is to be written to `write`, once nothing is requested any more.
    ///
    /// # Errors
    ///
    /// If a tensor is missing; those of `write`.
    pub fn finish<E: From<Error>>(
        self,
        write: impl FnMut(Piece) -> Result<(), E>,
    ) -> Result<Converted, E> {
        until_failure(write, |sink| self.end(sink))
    }

    fn end(mut self, write: &mut Sink<'_>) -> Result<Converted, Error> {
        let unfinished = || Error::Unfinished { model: self.name.clone() };
        if self.reader.next_read().is_some() || self.next < self.order.len() {
            return Err(unfinished());
        }
        let (Some(mut writer), Some(contents)) = (self.writer.take(), &self.contents) else {
            return Err(unfinished());
        };
        let unused = contents.unused().to_vec();
        let mut warnings = self.reader.warnings().to_vec();
        warnings.extend(writer.warnings());
        writer.end(write)?;
        Ok(Converted { unused, warnings })
    }

    /// Refuses files that are longer than their format says. `size_of` is the size of a file, where
    /// it is known. Has no effect before the headers are read.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::TrailingBytes`](setun_checkpoint::CheckpointError::TrailingBytes) for the
    /// first such file.
    pub fn check_sizes(&self, size_of: impl FnMut(&str) -> Option<u64>) -> Result<(), Error> {
        Ok(self.reader.check_sizes(size_of)?)
    }

    /// Bytes of all tensors, once the headers are known: for progress.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        Some(self.reader.tensors()?.iter().map(setun_checkpoint::TensorInfo::bytes).sum())
    }

    /// Headers are read: checks them, and requests the tensors in the order of their use.
    fn begin(&mut self) -> Result<(), Error> {
        let (Some(config), Some(tensors)) = (self.reader.config(), self.reader.tensors()) else {
            return Ok(());
        };
        if let Some(error) = self.reader.tokenizer_error() {
            return Err(Error::Tokenizer(Arc::clone(error))); // it would be lost
        }
        let contents = Contents::new(config, tensors)?;
        let order = contents.order();
        self.reader.select(|info| contents.place(&info.name).is_some());
        self.reader.sort_by_key(|info| contents.place(&info.name).unwrap_or(usize::MAX));
        self.order = order;
        self.contents = Some(contents);
        Ok(())
    }

    fn write_those_due(&mut self, write: &mut Sink<'_>) -> Result<(), Error> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        while let Some((name, content)) = self.waiting.remove(&self.next) {
            self.next += 1;
            writer.put(&name, content, write)?;
        }
        Ok(())
    }
}

/// Lets `work` hand pieces to `write` until that fails.
fn until_failure<T, E: From<Error>>(
    mut write: impl FnMut(Piece) -> Result<(), E>,
    work: impl FnOnce(&mut Sink<'_>) -> Result<T, Error>,
) -> Result<T, E> {
    let mut failure = None;
    let done = work(&mut |piece| {
        if failure.is_none() {
            failure = write(piece).err();
        }
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(done?),
    }
}

//! The pull reader: it says what it wants, and is given it.

use std::{collections::VecDeque, ops::Range, sync::Arc};

#[cfg(feature = "onnx")]
use crate::onnx;
use setun_ops::HAS_RECURRENT;

use crate::{
    config::{ModelConfig, known_fields},
    error::CheckpointError,
    files::{self, Files},
    format,
    generation::GenerationDefaults,
    header,
    readers::{DataReader, HeaderContents, HeaderReader},
    source::{Answer, Options, ReadRequest, Source},
    tensor::{Tensor, TensorInfo},
    warning::Warning,
};

/// What is in the names of the first layer's tensors.
const FIRST_LAYER: &str = ".layers.0.";

/// Reads a checkpoint of any format from wherever its bytes come.
///
/// First the small files and headers, then the tensors' data in file order, so that one request
/// serves most of a file. Data are wanted from their start on, of which the last piece of a header
/// of unknown length may have held some; those within an ONNX graph follow a walk through all of
/// it. Where only the data show how a matrix is scaled, those of the first layer come before
/// all others (see [`TensorInfo::scale_is_in_data`]).
///
/// Whatever the format, tensors have the names of Hugging Face's folders, and
/// [`files`](Self::files) those files.
#[derive(Debug)]
pub struct Reader {
    header: Box<dyn HeaderReader>,
    found: HeaderContents,
    data: Option<Box<dyn DataReader>>, // once all before the data is read
    ready: VecDeque<Tensor>,
    failed: bool,
}

impl Reader {
    /// A reader that has read nothing yet.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self::with_options(source, Options::default())
    }

    /// A reader of files that do not say all of themselves.
    #[must_use]
    pub fn with_options(source: Source, options: Options) -> Self {
        Self::of(format::header_reader(source, options))
    }

    /// A reader of a file that is an ONNX graph, whatever its first bytes are: where nothing else is
    /// read, the other formats are no part of a program.
    #[cfg(feature = "onnx")]
    #[must_use]
    pub fn of_onnx(file: &str) -> Self {
        Self::of(Box::new(onnx::OnnxHeaderReader::new(file)))
    }

    fn of(header: Box<dyn HeaderReader>) -> Self {
        Self {
            header,
            found: HeaderContents::default(),
            data: None,
            ready: VecDeque::new(),
            failed: false,
        }
    }

    /// What to give next; none when all is read, or after an error.
    #[must_use]
    pub fn next_read(&self) -> Option<ReadRequest> {
        if self.failed {
            return None;
        }
        match &self.data {
            None => self.header.next_read(),
            Some(data) => data.next_read(),
        }
    }

    /// Takes what was wanted. Tensors that are whole then can be [taken](Self::take).
    ///
    /// # Errors
    ///
    /// If the checkpoint is bad or incomplete. The reader wants nothing after an error.
    pub fn give(&mut self, answer: Answer<'_>) -> Result<(), CheckpointError> {
        let result = self.accept(answer);
        self.failed |= result.is_err();
        result
    }

    /// A tensor that is whole, each once.
    pub fn take(&mut self) -> Option<Tensor> {
        self.ready.pop_front()
    }

    /// The configuration, before any tensor data.
    #[must_use]
    pub fn config(&self) -> Option<&ModelConfig> {
        self.found.config.as_ref()
    }

    /// All tensors, in the order in which they will come, once all headers are read and before
    /// any tensor data.
    #[must_use]
    pub fn tensors(&self) -> Option<&[TensorInfo]> {
        self.data.as_ref().map(|data| data.tensors())
    }

    /// The files beside the weights, as far as they are read. Formats that hold the same
    /// otherwise are turned into these files.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.found.files
    }

    /// Why the checkpoint's tokenizer could not be turned into `tokenizer.json`.
    #[must_use]
    pub fn tokenizer_error(&self) -> Option<&Arc<CheckpointError>> {
        self.found.tokenizer_error.as_ref()
    }

    /// What `generation_config.json` says.
    #[must_use]
    pub fn generation(&self) -> &GenerationDefaults {
        &self.found.generation
    }

    /// What was mended or guessed so far.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.found.warnings
    }

    /// Passes over the tensors of which `keep` is false. Has no effect before
    /// [`tensors`](Self::tensors) are known, nor on a tensor that has partly arrived.
    pub fn select(&mut self, mut keep: impl FnMut(&TensorInfo) -> bool) {
        if let Some(data) = &mut self.data {
            data.select(&mut keep);
        }
    }

    /// Lets the tensors come in ascending order of `key` instead, those of one key as they were.
    /// Has no effect before [`tensors`](Self::tensors) are known, nor once data have arrived.
    pub fn sort_by_key(&mut self, mut key: impl FnMut(&TensorInfo) -> usize) {
        if let Some(data) = &mut self.data {
            data.sort(&mut key);
        }
    }

    /// Refuses files that are longer than their format says: bytes follow that no hash protects and
    /// nothing reads. `size_of` is the size of a file, where it is known. Has no effect before
    /// [`tensors`](Self::tensors) are known.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::TrailingBytes`] for the first such file.
    pub fn check_sizes(
        &self,
        mut size_of: impl FnMut(&str) -> Option<u64>,
    ) -> Result<(), CheckpointError> {
        let sizes = self.data.as_ref().map(|data| data.file_sizes()).unwrap_or_default();
        for (file, expected) in sizes {
            if let Some(found) = size_of(&file).filter(|found| *found > expected) {
                return Err(CheckpointError::TrailingBytes { file, expected, found });
            }
        }
        Ok(())
    }

    /// Whether a tensor, by its place among [`tensors`](Self::tensors), has the bytes at its place in
    /// its file, unchanged.
    #[cfg(feature = "onnx")]
    pub(crate) fn is_stored(&self, tensor: usize) -> bool {
        self.data.as_ref().is_some_and(|data| data.is_stored(tensor))
    }

    /// Files whose bytes their format tells, once [`tensors`](Self::tensors) are known.
    pub fn sized_files(&self) -> impl Iterator<Item = String> {
        let sizes = self.data.as_ref().map(|data| data.file_sizes()).unwrap_or_default();
        sizes.into_iter().map(|(file, _)| file)
    }

    /// Bytes of a file by its format, where that says so and [`tensors`](Self::tensors) are known.
    #[must_use]
    pub fn file_size(&self, file: &str) -> Option<u64> {
        let sizes = self.data.as_ref()?.file_sizes();
        sizes.into_iter().find(|(name, _)| name == file).map(|(_, bytes)| bytes)
    }

    fn accept(&mut self, answer: Answer<'_>) -> Result<(), CheckpointError> {
        let want = self.next_read().ok_or(CheckpointError::NothingWanted)?;
        let bytes = match answer {
            Answer::Bytes(bytes) => Some(bytes),
            Answer::Missing if want.required => {
                return Err(CheckpointError::MissingFile { file: want.file });
            }
            Answer::Missing => None,
        };
        if let (Some(bytes), Some(range)) = (bytes, want.range) {
            let may_end = self.data.is_none() && self.header.may_end();
            check_length(want.file, &range, bytes.len() as u64, may_end)?;
        }
        if let Some(data) = &mut self.data {
            let mut ready = vec![];
            data.append(bytes.unwrap_or_default(), &mut ready)?;
            self.ready.extend(ready);
            return Ok(());
        }
        if let Some(header) = self.header.accept(bytes, &mut self.found)? {
            self.header = header;
        }
        if self.header.next_read().is_none() {
            self.begin_data()?;
        }
        Ok(())
    }

    /// All headers are read: checks what they say together.
    fn begin_data(&mut self) -> Result<(), CheckpointError> {
        header::check_unique(&self.found.tensors)?;
        if let Some(bytes) = self.found.files.get(files::CONFIG) {
            self.found.warnings.extend(known_fields::warning(bytes)?);
        }
        if let Some(config) = &self.found.config {
            config.check_sizes(&self.found.tensors)?;
        }
        let mut data = self.header.finish(&mut self.found)?;
        refuse_rotated(data.tensors())?;
        if let Some(config) = self.found.config.as_ref().filter(|_| HAS_RECURRENT) {
            config.check_rotation(data.tensors())?;
        }
        let mode = self.found.config.as_ref().map(|config| config.quantization.mode);
        let in_data = |info: &TensorInfo| mode.is_some_and(|mode| info.scale_is_in_data(mode));
        if data.tensors().iter().any(in_data) {
            data.sort(&mut |info| usize::from(!info.name.contains(FIRST_LAYER)));
        }
        self.data = Some(data);
        Ok(())
    }
}

/// Ends of the names of tensors that rotate the inputs of a layer, whose weights are stored rotated.
const ROTATIONS: [&str; 4] = [".signs", ".sign", "_signs", "hadamard"];

/// Refuses rotated weights: without the rotation of their inputs the results mean nothing.
fn refuse_rotated(tensors: &[TensorInfo]) -> Result<(), CheckpointError> {
    let is_rotation = |tensor: &&TensorInfo| {
        let name = tensor.name.strip_suffix(".weight").unwrap_or(&tensor.name);
        ROTATIONS.iter().any(|end| name.ends_with(end))
    };
    match tensors.iter().find(is_rotation) {
        None => Ok(()),
        Some(tensor) => Err(CheckpointError::UnsupportedModel {
            file: tensor.file.to_string(),
            what: "the tensor",
            found: tensor.name.clone(),
            supported: "weights that are not rotated; rotated ones are not read yet",
        }),
    }
}

/// Not more than was asked for, and no less unless the file may end there.
fn check_length(
    file: String,
    range: &Range<u64>,
    given: u64,
    may_end: bool,
) -> Result<(), CheckpointError> {
    let expected = range.end - range.start;
    if given > expected {
        return Err(CheckpointError::TooManyBytes { file, expected, found: given });
    }
    if given < expected && !may_end {
        let (expected, found) = (range.end, range.start + given);
        return Err(CheckpointError::Truncated { file, expected, found });
    }
    Ok(())
}

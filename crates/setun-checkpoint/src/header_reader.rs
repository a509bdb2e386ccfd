//! Header readers: each format's way from its first bytes to the list of its tensors.

use std::fmt::Debug;

use crate::{
    config::ModelConfig,
    container::{ContainerHeaderReader, is_container},
    error::CheckpointError,
    files::{self, Files},
    generation::GenerationDefaults,
    gguf::{self, header_reader::GgufHeaderReader},
    hf::HfHeaderReader,
    source::{Options, ReadRequest, Source},
    tensor::{Tensor, TensorInfo},
    tensor_assembler::TensorAssembler,
    warning::Warning,
};

/// Reads what stands before the data of one format.
pub(crate) trait HeaderReader: Debug + Send + Sync {
    /// What it needs next; none once it has all.
    fn next_read(&self) -> Option<ReadRequest>;

    /// Whether the file may end within the range that is wanted: a format that cannot know how
    /// long its header is asks for more than there may be.
    fn may_end(&self) -> bool {
        false
    }

    /// Takes what was wanted, none where there is no such file. Another reader takes its place
    /// where one is returned.
    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError>;

    /// All is there: checks what its parts say together, and says how the data are read.
    fn finish(
        &mut self,
        found: &mut HeaderContents,
    ) -> Result<Box<dyn DataReader>, CheckpointError> {
        Ok(Box::new(TensorAssembler::new(std::mem::take(&mut found.tensors))))
    }
}

/// Reads the data of a checkpoint, as bytes of files.
pub(crate) trait DataReader: Debug + Send + Sync {
    /// File and range of the next piece, while there is one.
    fn next_read(&self) -> Option<ReadRequest>;

    /// Takes the piece that was wanted; what is whole goes to the end of `ready`.
    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError>;

    /// All tensors, in the order in which they will come.
    fn tensors(&self) -> &[TensorInfo];

    /// Passes over the tensors of which `keep` is false, but not over one that has partly arrived.
    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool);

    /// Lets the tensors come in ascending order of `key`, those of one key as they were. Has no
    /// effect once data have arrived.
    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize);
}

/// What was found before the data.
#[derive(Debug, Default)]
pub(crate) struct HeaderContents {
    pub(crate) files: Files,
    /// Why the files have no tokenizer, though the checkpoint has one.
    pub(crate) tokenizer_error: Option<CheckpointError>,
    pub(crate) generation: GenerationDefaults,
    pub(crate) config: Option<ModelConfig>,
    pub(crate) tensors: Vec<TensorInfo>,
    pub(crate) warnings: Vec<Warning>,
}

impl HeaderContents {
    /// Reads the configurations among the files.
    pub(crate) fn parse_config(&mut self) -> Result<(), CheckpointError> {
        if let Some(bytes) = self.files.get(files::GENERATION_CONFIG) {
            self.generation = GenerationDefaults::parse(bytes)?;
        }
        let bytes = self.files.get(files::CONFIG).unwrap_or_default();
        self.config = Some(ModelConfig::parse(bytes, &self.generation)?);
        Ok(())
    }
}

/// The header reader of a source.
pub(crate) fn of(source: Source, options: Options) -> Box<dyn HeaderReader> {
    match source {
        Source::Folder => Box::new(HfHeaderReader::folder()),
        Source::File(file) => Box::new(FormatDetector { file, options }),
    }
}

/// Bytes that tell formats apart.
const MAGIC_BYTES: u64 = 8;

/// Looks at the first bytes of a file, and leaves it to the header reader of its format.
#[derive(Debug)]
struct FormatDetector {
    file: String,
    options: Options,
}

impl HeaderReader for FormatDetector {
    fn next_read(&self) -> Option<ReadRequest> {
        Some(ReadRequest { file: self.file.clone(), range: Some(0..MAGIC_BYTES), required: true })
    }

    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError> {
        let file = std::mem::take(&mut self.file);
        refuse_pickle(&file, bytes.unwrap_or_default())?;
        if let Some(bytes) = bytes.filter(|bytes| bytes.starts_with(gguf::MAGIC)) {
            return Ok(Some(Box::new(GgufHeaderReader::new(&file, bytes, self.options))));
        }
        if let Some(first) = bytes.filter(|bytes| is_container(bytes)) {
            return Ok(Some(Box::new(ContainerHeaderReader::new(file, first)?)));
        }
        #[cfg(feature = "onnx")]
        if crate::onnx::is_onnx(&file, bytes.unwrap_or_default()) {
            return Ok(Some(Box::new(crate::onnx::OnnxHeaderReader::new(&file))));
        }
        let mut header = HfHeaderReader::single_file(file);
        header.accept(bytes, found)?;
        Ok(Some(Box::new(header)))
    }
}

/// Files of `torch.save` are programs; nothing here runs them.
fn refuse_pickle(file: &str, bytes: &[u8]) -> Result<(), CheckpointError> {
    const ZIP: &[u8] = b"PK\x03\x04";
    const PICKLE: &[u8] = b"\x80\x02";
    if bytes.starts_with(ZIP) || bytes.starts_with(PICKLE) {
        return Err(CheckpointError::Pickle { file: file.to_owned() });
    }
    Ok(())
}

//! The interfaces of a format's readers: of its header, then of its tensors' data.

use std::{fmt::Debug, sync::Arc};

use crate::{
    config::ModelConfig,
    error::CheckpointError,
    files::{self, Files},
    generation::GenerationDefaults,
    source::ReadRequest,
    tensor::TensorInfo,
    tensor_assembler::TensorAssembler,
    warning::Warning,
};

pub(crate) use crate::tensor_assembler::DataReader;

/// Reads what stands before the data of one format.
pub(crate) trait HeaderReader: Debug + Send + Sync {
    /// What it needs next; none once it has all.
    fn next_read(&self) -> Option<ReadRequest>;

    /// Whether the file may end within the range that is requested: a format that cannot know how
    /// long its header is requests more than there may be.
    fn may_end(&self) -> bool {
        false
    }

    /// Takes what was requested, none where there is no such file. Another reader takes its place
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

/// What was found before the data.
#[derive(Debug, Default)]
pub(crate) struct HeaderContents {
    pub(crate) files: Files,
    /// Why the files have no tokenizer, though the checkpoint has one.
    pub(crate) tokenizer_error: Option<Arc<CheckpointError>>,
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

//! Reads what stands before a container's tensors.

use std::sync::Arc;

use super::{
    Manifest,
    data_reader::{ContainerDataReader, content, read_request},
    head::{Head, MAGIC},
};
use crate::{
    error::CheckpointError,
    files::{self, Files},
    generation::GenerationDefaults,
    readers::{DataReader, HeaderContents, HeaderReader},
    source::ReadRequest,
    tensor::TensorInfo,
};

/// Whether a file that begins so is a container.
#[must_use]
pub fn is_container(first: &[u8]) -> bool {
    first.starts_with(&MAGIC)
}

/// First the head, then the manifest, then the chunks of files.
#[derive(Debug)]
pub(crate) struct ContainerHeaderReader {
    file: String,
    step: ReadStage,
}

#[derive(Debug)]
enum ReadStage {
    /// The head, of which the first bytes are here.
    Head {
        first: Vec<u8>,
        bytes: u64,
    },
    Manifest(Head),
    /// The next chunk, while files are not complete.
    Files {
        manifest: Arc<Manifest>,
        chunk: usize,
        arrived: Vec<u8>,
    },
}

impl ContainerHeaderReader {
    /// Of a file that begins with these eight bytes.
    pub(crate) fn new(file: String, first: &[u8]) -> Result<Self, CheckpointError> {
        let mut eight = [0; 8];
        eight[..first.len().min(8)].copy_from_slice(&first[..first.len().min(8)]);
        let bytes = Head::bytes(&file, eight)?;
        Ok(Self { file, step: ReadStage::Head { first: eight.to_vec(), bytes } })
    }

    /// Takes what the manifest holds itself.
    fn accept_manifest(
        &mut self,
        manifest: Manifest,
        found: &mut HeaderContents,
    ) -> Result<(), CheckpointError> {
        found.files = Files::default();
        (found.generation, found.config) = (GenerationDefaults::default(), None);
        for file in &manifest.files {
            if let Some(text) = &file.text {
                found.files.insert(&file.name, text.clone().into_bytes());
            }
        }
        if !manifest.files.iter().any(|file| file.name == files::CONFIG) {
            return Err(CheckpointError::MissingFile { file: files::CONFIG.to_owned() });
        }
        let later =
            |name| manifest.files.iter().any(|file| file.name == name && file.text.is_none());
        if !later(files::CONFIG) && !later(files::GENERATION_CONFIG) {
            found.parse_config()?; // early, so that no tokenizer is fetched in vain
        }
        let file: Arc<str> = Arc::from(self.file.as_str());
        found.tensors = manifest.tensors.iter().map(|entry| info(entry, &file)).collect();
        let manifest = Arc::new(manifest);
        self.step = ReadStage::Files { manifest, chunk: 0, arrived: vec![] };
        Ok(())
    }
}

fn info(entry: &super::TensorEntry, file: &Arc<str>) -> TensorInfo {
    TensorInfo {
        name: entry.name.clone(),
        dtype: entry.dtype,
        shape: entry.shape.clone(),
        file: Arc::clone(file),
        range: entry.content.clone(),
        paired_heads: None,
    }
}

/// Bytes of the content that are files.
fn file_bytes(manifest: &Manifest) -> u64 {
    manifest.files.last().map_or(0, |file| file.content.end)
}

impl HeaderReader for ContainerHeaderReader {
    fn next_read(&self) -> Option<ReadRequest> {
        let range = match &self.step {
            ReadStage::Head { first, bytes } => first.len() as u64..*bytes,
            ReadStage::Manifest(head) => head.manifest(),
            ReadStage::Files { manifest, chunk, .. } => {
                let missing = |start| start < file_bytes(manifest);
                let next = manifest.chunks.get(*chunk)?;
                return missing(next.content.start)
                    .then(|| read_request(&self.file, manifest, *chunk));
            }
        };
        Some(ReadRequest { file: self.file.clone(), range: Some(range), required: true })
    }

    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError> {
        let bytes = bytes.unwrap_or_default();
        match &mut self.step {
            ReadStage::Head { first, .. } => {
                first.extend_from_slice(bytes);
                self.step = ReadStage::Manifest(Head::parse(&self.file, first)?);
            }
            ReadStage::Manifest(head) => {
                let manifest = Manifest::parse(&self.file, head, bytes)?;
                self.accept_manifest(manifest, found)?;
            }
            ReadStage::Files { manifest, chunk, arrived } => {
                let content = content(&self.file, manifest, *chunk, bytes)?;
                let start = manifest.chunks[*chunk].content.start;
                let files = file_bytes(manifest).saturating_sub(start);
                let files = usize::try_from(files).unwrap_or(usize::MAX).min(content.len());
                arrived.extend_from_slice(&content[..files]);
                *chunk += 1;
            }
        }
        Ok(None)
    }

    fn finish(
        &mut self,
        found: &mut HeaderContents,
    ) -> Result<Box<dyn DataReader>, CheckpointError> {
        let ReadStage::Files { manifest, arrived, .. } = &self.step else {
            return Err(CheckpointError::NothingWanted);
        };
        for file in manifest.files.iter().filter(|file| file.text.is_none()) {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(arrived.len());
            let bytes = &arrived[place(file.content.start)..place(file.content.end)];
            found.files.insert(&file.name, bytes.to_vec());
        }
        if found.config.is_none() {
            found.parse_config()?;
            if let Some(config) = &found.config {
                config.check_sizes(&found.tensors)?;
            }
        }
        let tensors = std::mem::take(&mut found.tensors);
        Ok(Box::new(ContainerDataReader::new(self.file.clone(), Arc::clone(manifest), tensors)))
    }
}

//! The pull reader: it says what it wants, and is given it.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::Arc,
};

use crate::{
    assembly::Assembly,
    config::ModelConfig,
    error::CheckpointError,
    files::{self, Files},
    generation::GenerationDefaults,
    header::{self, Header},
    index::Index,
    source::{Answer, Source, Want},
    tensor::{Tensor, TensorInfo},
};

/// Most bytes of tensor data that are wanted at once.
pub const PIECE_BYTES: u64 = 4 << 20;

/// Reads a checkpoint from wherever its bytes come.
///
/// First the small files, then the headers of all weight files, then the tensors' data in file
/// order, so that one request serves a file.
#[derive(Debug)]
pub struct Reader {
    folder: String, // prefix of names beside a lone file, with its slash
    ahead: VecDeque<Step>,
    files: Files,
    generation: GenerationDefaults,
    config: Option<ModelConfig>,
    index: Option<Index>,
    tensors: Vec<TensorInfo>, // of the headers read so far
    data: Option<Assembly>,   // of all tensors, once all headers are read
    failed: bool,
}

/// Something to read before the tensors' data.
#[derive(Clone, Debug)]
enum Step {
    Beside { name: &'static str, required: bool },
    HeaderLength { file: String, place: Place },
    Header { file: String, place: Place, bytes: u64 },
    Index,
}

/// What a weight file is to its checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The one file of a folder; where it is missing there is an index.
    Only,
    /// One of several.
    Shard,
    /// A file that may carry the others.
    Lone,
}

impl Reader {
    /// A reader that has read nothing yet.
    #[must_use]
    pub fn new(source: Source) -> Self {
        let (folder, ahead) = match source {
            Source::Folder => {
                let file = files::WEIGHTS.to_owned();
                let mut ahead: VecDeque<_> = beside().collect();
                ahead.push_back(Step::HeaderLength { file, place: Place::Only });
                (String::new(), ahead)
            }
            Source::File(file) => {
                let folder = file.rfind('/').map_or("", |slash| &file[..=slash]).to_owned();
                (folder, VecDeque::from([Step::HeaderLength { file, place: Place::Lone }]))
            }
        };
        Self {
            folder,
            ahead,
            files: Files::default(),
            generation: GenerationDefaults::default(),
            config: None,
            index: None,
            tensors: Vec::new(),
            data: None,
            failed: false,
        }
    }

    /// What to give next; none when all is read, or after an error.
    #[must_use]
    pub fn want(&self) -> Option<Want> {
        if self.failed {
            return None;
        }
        let (file, range, required) = match self.ahead.front() {
            Some(Step::Beside { name, required }) => {
                (format!("{}{name}", self.folder), None, *required)
            }
            Some(Step::HeaderLength { file, place }) => {
                (file.clone(), Some(0..header::LENGTH_BYTES), *place != Place::Only)
            }
            Some(Step::Header { file, bytes, .. }) => {
                let start = header::LENGTH_BYTES;
                (file.clone(), Some(start..start + bytes), true)
            }
            Some(Step::Index) => (files::INDEX.to_owned(), None, false),
            None => {
                let (file, range) = self.data.as_ref()?.want()?;
                (file, Some(range), true)
            }
        };
        Some(Want { file, range, required })
    }

    /// Takes what was wanted; returns a tensor when it is whole.
    ///
    /// # Errors
    ///
    /// If the checkpoint is bad or incomplete. The reader wants nothing after an error.
    pub fn give(&mut self, answer: Answer<'_>) -> Result<Option<Tensor>, CheckpointError> {
        let result = self.accept(answer);
        self.failed |= result.is_err();
        result
    }

    /// The configuration, before any tensor data.
    #[must_use]
    pub fn config(&self) -> Option<&ModelConfig> {
        self.config.as_ref()
    }

    /// All tensors, in the order in which they will come, once all headers are read and before
    /// any tensor data.
    #[must_use]
    pub fn tensors(&self) -> Option<&[TensorInfo]> {
        self.data.as_ref().map(Assembly::tensors)
    }

    /// The files beside the weights, as far as they are read.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// What `generation_config.json` says.
    #[must_use]
    pub fn generation(&self) -> &GenerationDefaults {
        &self.generation
    }

    /// Passes over the tensors of which `keep` is false. Has no effect before
    /// [`tensors`](Self::tensors) are known, nor on a tensor that has partly arrived.
    pub fn select(&mut self, keep: impl FnMut(&TensorInfo) -> bool) {
        if let Some(data) = &mut self.data {
            data.select(keep);
        }
    }

    fn accept(&mut self, answer: Answer<'_>) -> Result<Option<Tensor>, CheckpointError> {
        let want = self.want().ok_or(CheckpointError::NothingWanted)?;
        let bytes = match answer {
            Answer::Bytes(bytes) => Some(bytes),
            Answer::Missing if want.required => {
                return Err(CheckpointError::MissingFile { file: want.file });
            }
            Answer::Missing => None,
        };
        if let (Some(bytes), Some(range)) = (bytes, want.range) {
            check_length(want.file, &range, bytes.len() as u64)?;
        }
        let Some(step) = self.ahead.pop_front() else {
            let data = self.data.as_mut().ok_or(CheckpointError::NothingWanted)?;
            return data.append(bytes.unwrap_or_default());
        };
        self.accept_step(step, bytes)?;
        if self.ahead.is_empty() {
            self.begin_data()?;
        }
        Ok(None)
    }

    fn accept_step(&mut self, step: Step, bytes: Option<&[u8]>) -> Result<(), CheckpointError> {
        match (step, bytes) {
            (Step::Beside { name, .. }, bytes) => {
                if let Some(bytes) = bytes {
                    self.files.insert(name, bytes.to_vec());
                }
                if name == files::GENERATION_CONFIG {
                    self.parse_config()?; // early, so that no tokenizer is fetched in vain
                }
            }
            (Step::HeaderLength { .. }, None) => self.ahead.push_front(Step::Index),
            (Step::HeaderLength { file, place }, Some(bytes)) => {
                let mut length = [0; 8];
                length.copy_from_slice(bytes);
                let bytes = header::length(&file, length)?;
                self.ahead.push_front(Step::Header { file, place, bytes });
            }
            (Step::Header { file, place, .. }, bytes) => {
                let header = header::parse(&Arc::from(file), bytes.unwrap_or_default())?;
                self.accept_header(header, place)?;
            }
            (Step::Index, None) => {
                let (file, index) = (files::WEIGHTS.to_owned(), files::INDEX.to_owned());
                return Err(CheckpointError::NoWeights { file, index });
            }
            (Step::Index, Some(bytes)) => {
                let index = Index::parse(files::INDEX, bytes)?;
                let shards = index.shards().into_iter();
                let place = Place::Shard;
                self.ahead.extend(shards.map(|file| Step::HeaderLength { file, place }));
                self.index = Some(index);
            }
        }
        Ok(())
    }

    fn accept_header(&mut self, header: Header, place: Place) -> Result<(), CheckpointError> {
        self.tensors.extend(header.tensors);
        if place == Place::Lone && !self.take_embedded(header.metadata)? {
            self.ahead.extend(beside());
        }
        Ok(())
    }

    /// The files that a lone file carries; false where it carries no configuration.
    fn take_embedded(
        &mut self,
        mut metadata: BTreeMap<String, String>,
    ) -> Result<bool, CheckpointError> {
        let mut embedded =
            |name: &str| metadata.remove(&format!("{}{name}", files::EMBEDDED_PREFIX));
        let Some(config) = embedded(files::CONFIG) else {
            return Ok(false);
        };
        for (name, _) in files::BESIDE {
            if let Some(text) = embedded(name) {
                self.files.insert(name, text.into_bytes());
            }
        }
        self.files.insert(files::CONFIG, config.into_bytes());
        self.parse_config()?;
        Ok(true)
    }

    fn parse_config(&mut self) -> Result<(), CheckpointError> {
        if let Some(bytes) = self.files.get(files::GENERATION_CONFIG) {
            self.generation = GenerationDefaults::parse(bytes)?;
        }
        let bytes = self.files.get(files::CONFIG).unwrap_or_default();
        self.config = Some(ModelConfig::parse(bytes, &self.generation)?);
        Ok(())
    }

    /// All headers are read: checks what they say together.
    fn begin_data(&mut self) -> Result<(), CheckpointError> {
        header::check_unique(&self.tensors)?;
        if let Some(index) = &self.index {
            index.check(&self.tensors)?;
        }
        if let Some(config) = &self.config {
            config.check_sizes(&self.tensors)?;
        }
        self.data = Some(Assembly::new(std::mem::take(&mut self.tensors)));
        Ok(())
    }
}

fn beside() -> impl Iterator<Item = Step> {
    files::BESIDE.into_iter().map(|(name, required)| Step::Beside { name, required })
}

fn check_length(file: String, range: &Range<u64>, given: u64) -> Result<(), CheckpointError> {
    let expected = range.end - range.start;
    if given > expected {
        return Err(CheckpointError::TooManyBytes { file, expected, found: given });
    }
    if given < expected {
        let (expected, found) = (range.end, range.start + given);
        return Err(CheckpointError::Truncated { file, expected, found });
    }
    Ok(())
}

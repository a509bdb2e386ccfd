//! Hugging Face's layout: small files beside safetensors files.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::{
    container::{self, ContainerHeaderReader, is_container},
    error::CheckpointError,
    files,
    header::{self, Header},
    hybrid,
    index::Index,
    prism::{self, Pack, SignsReader},
    readers::{DataReader, HeaderContents, HeaderReader},
    source::ReadRequest,
    tensor::TensorInfo,
    tensor_assembler::TensorAssembler,
};

/// First the small files, then the headers of all weight files.
#[derive(Debug)]
pub(crate) struct HfHeaderReader {
    is_folder: bool,
    folder: String, // prefix of names beside a lone file, with its slash
    ahead: VecDeque<PendingRead>,
    index: Option<Index>,
    pack: Option<Pack>,
}

/// Something to read before the tensors' data.
#[derive(Clone, Debug)]
enum PendingRead {
    Beside {
        name: &'static str,
        required: bool,
    },
    /// The keys of the rotation of a pack of MLX.
    Rotation {
        file: String,
    },
    HeaderLength {
        file: String,
        role: WeightFileRole,
    },
    Header {
        file: String,
        role: WeightFileRole,
        bytes: u64,
    },
    Index,
    /// Instead of all files, of which this one is missing.
    Container {
        missing: Option<&'static str>,
    },
    Pickle,
}

/// What a weight file is to its checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WeightFileRole {
    /// The one file of a folder; where it is missing there is an index.
    Only,
    /// One of several.
    Shard,
    /// A file that may carry the others.
    Lone,
}

impl HfHeaderReader {
    /// Of a folder.
    pub(crate) fn folder() -> Self {
        let mut ahead: VecDeque<_> = beside().collect();
        let file = files::WEIGHTS.to_owned();
        ahead.push_back(PendingRead::HeaderLength { file, role: WeightFileRole::Only });
        Self { is_folder: true, folder: String::new(), ahead, index: None, pack: None }
    }

    /// Of one file, of which the first bytes are wanted.
    pub(crate) fn single_file(file: String) -> Self {
        let folder = file.rfind('/').map_or("", |slash| &file[..=slash]).to_owned();
        let ahead =
            VecDeque::from([PendingRead::HeaderLength { file, role: WeightFileRole::Lone }]);
        Self { is_folder: false, folder, ahead, index: None, pack: None }
    }

    fn accept_step(
        &mut self,
        step: PendingRead,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<ContainerHeaderReader>, CheckpointError> {
        match (step, bytes) {
            (PendingRead::Beside { name, required: true }, None) => {
                self.ahead.push_front(PendingRead::Container { missing: Some(name) });
            }
            (PendingRead::Beside { name, .. }, bytes) => {
                if let Some(bytes) = bytes {
                    found.files.insert(name, bytes.to_vec());
                }
                if name == files::GENERATION_CONFIG {
                    found.parse_config()?; // early, so that no tokenizer is fetched in vain
                    let config = found.files.get(files::CONFIG).unwrap_or_default();
                    let file = prism::file_of_keys(config)?;
                    self.ahead.extend(file.map(|file| PendingRead::Rotation { file }));
                }
            }
            (PendingRead::Rotation { file }, bytes) => {
                let config = found.files.get(files::CONFIG).unwrap_or_default();
                self.pack = Some(Pack::parse(config, &file, bytes.unwrap_or_default())?);
            }
            (PendingRead::HeaderLength { .. }, None) => self.ahead.push_front(PendingRead::Index),
            (PendingRead::HeaderLength { file, role }, Some(bytes)) => {
                let mut length = [0; 8];
                length.copy_from_slice(bytes);
                let bytes = header::length(&file, length)?;
                self.ahead.push_front(PendingRead::Header { file, role, bytes });
            }
            (PendingRead::Header { file, role, .. }, bytes) => {
                let header = header::parse(&Arc::from(file), bytes.unwrap_or_default())?;
                self.accept_header(header, role, found)?;
            }
            (PendingRead::Index, None) => {
                self.ahead.push_front(PendingRead::Container { missing: None });
            }
            (PendingRead::Container { .. }, Some(bytes)) if is_container(bytes) => {
                return ContainerHeaderReader::new(container::FILE.to_owned(), bytes).map(Some);
            }
            (PendingRead::Container { missing: None }, _) => {
                self.ahead.push_front(PendingRead::Pickle);
            }
            (PendingRead::Container { missing: Some(file) }, _) => {
                return Err(CheckpointError::MissingFile { file: file.to_owned() });
            }
            (PendingRead::Index, Some(bytes)) => {
                let index = Index::parse(files::INDEX, bytes)?;
                let shards = index.shards().into_iter();
                let role = WeightFileRole::Shard;
                self.ahead.extend(shards.map(|file| PendingRead::HeaderLength { file, role }));
                self.index = Some(index);
            }
            (PendingRead::Pickle, Some(_)) => {
                return Err(CheckpointError::Pickle { file: files::PICKLE.to_owned() });
            }
            (PendingRead::Pickle, None) => {
                let (file, index) = (files::WEIGHTS.to_owned(), files::INDEX.to_owned());
                return Err(CheckpointError::NoWeights { file, index });
            }
        }
        Ok(None)
    }

    fn accept_header(
        &mut self,
        header: Header,
        role: WeightFileRole,
        found: &mut HeaderContents,
    ) -> Result<(), CheckpointError> {
        found.tensors.extend(header.tensors);
        if role == WeightFileRole::Lone && !take_embedded(header.metadata, found)? {
            self.ahead.extend(beside());
        }
        Ok(())
    }
}

impl HeaderReader for HfHeaderReader {
    fn next_read(&self) -> Option<ReadRequest> {
        let (file, range, required) = match self.ahead.front()? {
            PendingRead::Beside { name, required } => {
                let required = *required && !self.is_folder; // it may hold a container instead
                (format!("{}{name}", self.folder), None, required)
            }
            PendingRead::Rotation { file } => (format!("{}{file}", self.folder), None, true),
            PendingRead::HeaderLength { file, role } => {
                (file.clone(), Some(0..header::LENGTH_BYTES), *role != WeightFileRole::Only)
            }
            PendingRead::Header { file, bytes, .. } => {
                let start = header::LENGTH_BYTES;
                (file.clone(), Some(start..start + bytes), true)
            }
            PendingRead::Index => (files::INDEX.to_owned(), None, false),
            PendingRead::Container { .. } => {
                let first = header::LENGTH_BYTES; // as many distinguish formats
                (container::FILE.to_owned(), Some(0..first), false)
            }
            PendingRead::Pickle => (files::PICKLE.to_owned(), Some(0..0), false),
        };
        Some(ReadRequest { file, range, required })
    }

    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError> {
        let step = self.ahead.pop_front().ok_or(CheckpointError::NothingWanted)?;
        let container = self.accept_step(step, bytes, found)?;
        Ok(container.map(|header| Box::new(header) as Box<dyn HeaderReader>))
    }

    fn finish(
        &mut self,
        found: &mut HeaderContents,
    ) -> Result<Box<dyn DataReader>, CheckpointError> {
        if let Some(index) = &self.index {
            index.check(&found.tensors)?;
        }
        hybrid::keep_text_model(found)?;
        if let Some(pack) = self.pack.take() {
            let hadamard = pack.apply(found)?;
            let tensors = std::mem::take(&mut found.tensors);
            return Ok(Box::new(SignsReader::new(tensors, hadamard)));
        }
        Ok(Box::new(TensorAssembler::new(std::mem::take::<Vec<TensorInfo>>(&mut found.tensors))))
    }
}

/// The files that a lone file carries; false where it carries no configuration.
fn take_embedded(
    mut metadata: BTreeMap<String, String>,
    found: &mut HeaderContents,
) -> Result<bool, CheckpointError> {
    let mut embedded = |name: &str| metadata.remove(&format!("{}{name}", files::EMBEDDED_PREFIX));
    let Some(config) = embedded(files::CONFIG) else {
        return Ok(false);
    };
    for (name, _) in files::BESIDE {
        if let Some(text) = embedded(name) {
            found.files.insert(name, text.into_bytes());
        }
    }
    if prism::file_of_keys(config.as_bytes())?.is_some() {
        return Err(CheckpointError::MissingFile {
            file: "the file of `hadamard_config`".to_owned(),
        });
    }
    found.files.insert(files::CONFIG, config.into_bytes());
    found.parse_config()?;
    Ok(true)
}

fn beside() -> impl Iterator<Item = PendingRead> {
    files::BESIDE.into_iter().map(|(name, required)| PendingRead::Beside { name, required })
}

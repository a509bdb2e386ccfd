//! Feeds a reader from the fixtures, or from files in memory.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod outline;

use std::{collections::BTreeMap, path::PathBuf};

use setun_checkpoint::{
    Answer, CheckpointError, Files, GenerationDefaults, ModelConfig, ReadRequest, Reader, Source,
    Tensor, TensorData, Warning,
    write::{self, NewTensor},
};

/// Files by name.
pub(crate) type Folder = BTreeMap<String, Vec<u8>>;

/// What reading a checkpoint gives.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub(crate) config: ModelConfig,
    pub(crate) generation: GenerationDefaults,
    pub(crate) files: Files,
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) wants: Vec<ReadRequest>,
}

impl Checkpoint {
    pub(crate) fn tensor(&self, name: &str) -> &Tensor {
        self.tensors.iter().find(|tensor| tensor.info.name == name).expect(name)
    }
}

/// The files of a folder of `tests/fixtures/golden`.
pub(crate) fn golden(folder: &str) -> Folder {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../../tests/fixtures/golden", folder].iter().collect();
    let files =
        std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    };
    files.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_file()).map(read).collect()
}

/// Tensors of a safetensors file that is no model.
pub(crate) fn tensors_of(bytes: &[u8]) -> safetensors::SafeTensors<'_> {
    safetensors::SafeTensors::deserialize(bytes).unwrap()
}

/// Reads a checkpoint to its end, or to its error.
pub(crate) fn read(source: Source, folder: &Folder) -> Result<Checkpoint, CheckpointError> {
    let mut reader = Reader::new(source);
    let (mut tensors, mut wants) = (Vec::new(), Vec::new());
    while let Some(want) = reader.next_read() {
        reader.give(answer(folder, &want))?;
        tensors.extend(std::iter::from_fn(|| reader.take()));
        wants.push(want);
    }
    let config = reader.config().expect("a reader that ends has a configuration").clone();
    let generation = reader.generation().clone();
    let files = reader.files().clone();
    let warnings = reader.warnings().to_vec();
    Ok(Checkpoint { config, generation, files, tensors, warnings, wants })
}

/// What a server would say: the part of the range that the file has.
pub(crate) fn answer<'a>(folder: &'a Folder, want: &ReadRequest) -> Answer<'a> {
    let Some(bytes) = folder.get(&want.file) else {
        return Answer::Missing;
    };
    let range = want.range.clone().unwrap_or(0..bytes.len() as u64);
    let place = |offset: u64| usize::try_from(offset).unwrap().min(bytes.len());
    Answer::Bytes(&bytes[place(range.start)..place(range.end)])
}

/// A safetensors file of these tensors.
pub(crate) fn safetensors_of(tensors: &[Tensor], metadata: &BTreeMap<String, String>) -> Vec<u8> {
    let new: Vec<_> = tensors
        .iter()
        .map(|Tensor { info, .. }| NewTensor {
            name: info.name.clone(),
            dtype: info.dtype,
            shape: info.shape.clone(),
        })
        .collect();
    let mut file = write::layout("new.safetensors", &new, metadata).unwrap().header;
    for tensor in tensors {
        file.extend(bytes_of(&tensor.data));
    }
    file
}

/// Elements as they lie in a file.
pub(crate) fn bytes_of(data: &TensorData) -> Vec<u8> {
    match data {
        TensorData::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        TensorData::F16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        TensorData::Bf16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        TensorData::Bytes(bytes) => bytes.to_vec(),
    }
}

//! Feeds a reader from the fixtures, or from files in memory.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod outline;

use std::{collections::BTreeMap, path::PathBuf};

use setun_checkpoint::{
    Answer, CheckpointError, Files, GenerationDefaults, ModelConfig, Options, ReadRequest, Reader,
    Source, Tensor, TensorData, Warning,
    write::{self, NewTensor},
};

/// Every model folder of the fixtures.
pub(crate) const MODELS: [&str; 11] = [
    "bitnet-h320-f432/packed",
    "bitnet-h64/master",
    "bitnet-h64/packed",
    "bitnet-hd128/packed",
    "bitnet-untied-dead/master",
    "bitnet-untied-dead/packed",
    "llama-bitlinear/master",
    "llama-bitlinear/packed",
    "llama-headdim-rope3/packed",
    "llama-rmsnorm-bias/packed",
    "real-tinystories-1m",
];

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
    pub(crate) fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.info.name == name)
    }

    pub(crate) fn tensor(&self, name: &str) -> &Tensor {
        self.get(name).expect(name)
    }
}

/// The files of a folder of `tests/fixtures/golden`.
pub(crate) fn golden(folder: &str) -> Folder {
    fixture(&format!("golden/{folder}"))
}

/// The files of a folder of `tests/fixtures`.
pub(crate) fn fixture(folder: &str) -> Folder {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../../tests/fixtures", folder].iter().collect();
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
    read_with(source, Options::default(), folder)
}

pub(crate) fn read_with(
    source: Source,
    options: Options,
    folder: &Folder,
) -> Result<Checkpoint, CheckpointError> {
    let mut reader = Reader::with_options(source, options);
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

/// Replaces a text in bytes by another of the same length, wherever it occurs.
pub(crate) fn replace_all(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len(), "messages have lengths");
    let places: Vec<_> =
        (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert!(!places.is_empty(), "{}", String::from_utf8_lossy(from));
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
}

/// A sequence of pseudo-random numbers, the same on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

//! Hugging Face's layout, as transformers writes packed models.

use std::collections::BTreeMap;

use half::bf16;
use setun_ops::{
    ternary::{Scales, TernaryMatrix, code_at},
    weight::ScaleKind,
};

use super::{NewTensor, Piece, Writer, config_json, layout};
use crate::{
    config::{ModelConfig, QuantizationMode},
    dtype::Dtype,
    error::CheckpointError,
    files,
    generation::GenerationDefaults,
    outline::{Content, Outline, OutlineKind, OutlineTensor},
    packed, scales,
    tensor::{TensorData, TensorInfo},
};

/// Writes a folder: the small files, and `model.safetensors`.
///
/// Linear layers are packed, with an `F32` scale beside each; those of which a row or a group has
/// a scale of its own are the products of codes and scales, in `F32`, as transformers has no other
/// form for them.
#[derive(Debug)]
pub struct HfWriter {
    config: ModelConfig,
    small: Vec<(String, Vec<u8>)>,
    header: Vec<u8>,
    tensors: BTreeMap<String, TensorInfo>,
}

/// After a linear layer's name.
const SCALE: &str = "_scale"; // of `.weight`

impl HfWriter {
    /// Plans the folder of a model.
    ///
    /// # Errors
    ///
    /// If the tensors do not fit into one file's header.
    pub fn new(outline: &Outline) -> Result<Self, CheckpointError> {
        let mut config = outline.config.clone();
        if !outline.tensors.iter().all(is_packable) {
            config.quantization.mode = QuantizationMode::FakeQuantized;
        }
        let tensors: Vec<_> =
            outline.tensors.iter().flat_map(|tensor| stored(tensor, &config)).collect();
        let layout = layout(files::WEIGHTS, &tensors, &BTreeMap::new())?;
        let mut files = outline.files.clone();
        let text = config_json(&config)?;
        check_mode(&text, &config)?;
        files.insert(files::CONFIG, text.into_bytes());
        let small = files.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
        Ok(Self {
            config,
            small: small.collect(),
            header: layout.header,
            tensors: layout.tensors.into_iter().map(|info| (info.name.clone(), info)).collect(),
        })
    }

    fn piece(&self, name: &str, bytes: Vec<u8>) -> Result<Piece, CheckpointError> {
        let missing = || CheckpointError::MissingTensor { name: name.to_owned(), similar: vec![] };
        let info = self.tensors.get(name).ok_or_else(missing)?;
        let found = bytes.len() as u64;
        if found != info.bytes() {
            let (file, expected) = (files::WEIGHTS.to_owned(), info.bytes());
            return Err(CheckpointError::TooManyBytes { file, expected, found });
        }
        Ok(Piece { file: files::WEIGHTS.to_owned(), offset: info.range.start, bytes })
    }
}

impl Writer for HfWriter {
    fn begin(&mut self) -> Result<Vec<Piece>, CheckpointError> {
        let small = std::mem::take(&mut self.small).into_iter();
        let mut pieces: Vec<_> =
            small.map(|(file, bytes)| Piece { file, offset: 0, bytes }).collect();
        let bytes = std::mem::take(&mut self.header);
        pieces.push(Piece { file: files::WEIGHTS.to_owned(), offset: 0, bytes });
        Ok(pieces)
    }

    fn put(&mut self, name: &str, content: Content) -> Result<Vec<Piece>, CheckpointError> {
        let matrix = match content {
            Content::Floats(tensor) => return Ok(vec![self.piece(name, bytes_of(&tensor.data))?]),
            Content::Ternary(matrix) => matrix,
        };
        let scale_name = format!("{name}{SCALE}");
        let Scales::Tensor(scale) = *matrix.scales() else {
            return Ok(vec![self.piece(name, products(&matrix))?]);
        };
        let Some(info) = self.tensors.get(&scale_name) else {
            return Ok(vec![self.piece(name, products(&matrix))?]);
        };
        let class = self.config.quantization.linear_class;
        let stored = scales::stored(scale, class)
            .ok_or_else(|| CheckpointError::Scale { tensor: info.name.clone(), found: scale })?;
        let codes = match self.tensors.get(name).map(|info| info.dtype) {
            Some(Dtype::U8) => packed::pack(name, &matrix)?,
            _ => exact(&matrix),
        };
        let scale = self.piece(&scale_name, stored.to_le_bytes().to_vec())?;
        Ok(vec![self.piece(name, codes)?, scale])
    }

    fn end(&mut self) -> Result<Vec<Piece>, CheckpointError> {
        Ok(vec![])
    }
}

/// A family may have no way to say how its layers are stored.
fn check_mode(text: &str, config: &ModelConfig) -> Result<(), CheckpointError> {
    let read = ModelConfig::parse(text.as_bytes(), &GenerationDefaults::default())?;
    if read.quantization.mode == config.quantization.mode {
        return Ok(());
    }
    Err(CheckpointError::UnsupportedModel {
        file: files::CONFIG.to_owned(),
        what: "scales by row or by group of columns for",
        found: config.architecture.clone(),
        supported: "LlamaForCausalLM, Qwen3ForCausalLM; convert to setun instead",
    })
}

/// Whether a tensor is no matrix with several scales.
fn is_packable(tensor: &OutlineTensor) -> bool {
    matches!(tensor.kind, OutlineKind::Floats(_) | OutlineKind::Ternary(ScaleKind::Tensor))
}

/// What a tensor is in the file.
fn stored(tensor: &OutlineTensor, config: &ModelConfig) -> Vec<NewTensor> {
    let new = |name: String, dtype, shape: &[usize]| {
        let shape = shape.to_vec();
        NewTensor { name, dtype, shape }
    };
    let name = tensor.name.clone();
    match (tensor.kind, &tensor.shape[..]) {
        (OutlineKind::Floats(dtype), shape) => vec![new(name, dtype, shape)],
        (_, shape) if config.quantization.mode == QuantizationMode::FakeQuantized => {
            vec![new(name, Dtype::F32, shape)]
        }
        (_, shape) => {
            let scale = new(format!("{name}{SCALE}"), Dtype::F32, &[1]);
            let codes = match *shape {
                [rows, columns] if rows.is_multiple_of(4) => {
                    new(name, Dtype::U8, &[rows / 4, columns])
                }
                _ => new(name, Dtype::Bf16, shape),
            };
            vec![codes, scale]
        }
    }
}

/// The elements as they are in a file.
pub(crate) fn bytes_of(data: &TensorData) -> Vec<u8> {
    match data {
        TensorData::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        TensorData::F16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        TensorData::Bf16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        TensorData::Bytes(bytes) => bytes.to_vec(),
    }
}

/// −1, 0 and +1 as `BF16`.
fn exact(matrix: &TernaryMatrix) -> Vec<u8> {
    let one = |row, column| f32::from(code_at(matrix.row(row), column)) - 1.0;
    let places = (0..matrix.rows()).flat_map(|row| (0..matrix.columns()).map(move |at| (row, at)));
    places.flat_map(|(row, column)| bf16::from_f32(one(row, column)).to_le_bytes()).collect()
}

/// Codes times scales as `F32`.
fn products(matrix: &TernaryMatrix) -> Vec<u8> {
    let columns = matrix.columns();
    let scale = |row: usize, column: usize| match matrix.scales() {
        Scales::Tensor(scale) => *scale,
        Scales::Rows(values) => values[row],
        Scales::ColumnGroups { columns: width, values } => {
            values[row * columns.div_ceil(*width) + column / width]
        }
    };
    let product =
        |row, column| (f32::from(code_at(matrix.row(row), column)) - 1.0) * scale(row, column);
    let places = (0..matrix.rows()).flat_map(|row| (0..columns).map(move |at| (row, at)));
    places.flat_map(|(row, column)| product(row, column).to_le_bytes()).collect()
}

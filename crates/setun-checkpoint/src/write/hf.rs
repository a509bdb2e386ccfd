//! Hugging Face's layout, as transformers writes packed models.

use std::collections::BTreeMap;

use half::bf16;
use setun_ops::{
    delta_net::HeadOrder,
    ternary::{Scales, TernaryMatrix, code_at},
    weight::ScaleKind,
};

use super::{NewTensor, Piece, Sink, Writer, config_json, layout};
use crate::{
    config::{ModelConfig, QuantizationMode},
    dense,
    dtype::Dtype,
    error::CheckpointError,
    files,
    generation::GenerationDefaults,
    outline::{Content, Outline, OutlineKind, OutlineTensor},
    packed, scales,
    tensor::{Tensor, TensorInfo},
    warning::Warning,
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

/// Ends of names of delta nets' tensors.
const CONVOLUTION: &str = ".linear_attn.conv1d.weight";
const DECAY: &str = ".linear_attn.decay";

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

    /// Where a tensor of this many bytes begins.
    fn place(&self, name: &str, found: u64) -> Result<u64, CheckpointError> {
        let missing = || CheckpointError::MissingTensor { name: name.to_owned(), similar: vec![] };
        let info = self.tensors.get(name).ok_or_else(missing)?;
        if found != info.bytes() {
            let (file, expected) = (files::WEIGHTS.to_owned(), info.bytes());
            return Err(CheckpointError::TooManyBytes { file, expected, found });
        }
        Ok(info.range.start)
    }

    fn put_floats(
        &self,
        tensor: &Tensor,
        name: &str,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let offset = self.place(name, tensor.data.byte_len() as u64)?;
        tensor.data.in_pieces(&mut |start, bytes| {
            let offset = offset + start;
            write(Piece { file: files::WEIGHTS.to_owned(), offset, bytes });
        });
        Ok(())
    }

    fn put_bytes(
        &self,
        name: &str,
        bytes: Vec<u8>,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let offset = self.place(name, bytes.len() as u64)?;
        write(Piece { file: files::WEIGHTS.to_owned(), offset, bytes });
        Ok(())
    }

    /// A matrix of elements of this many bytes, of which `row` appends a row.
    fn put_rows(
        &self,
        name: &str,
        matrix: &TernaryMatrix,
        element: usize,
        row: impl Fn(usize, &mut Vec<u8>),
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        const ROWS: usize = 64; // of a piece
        let width = element * matrix.columns();
        let offset = self.place(name, (width * matrix.rows()) as u64)?;
        for first in (0..matrix.rows()).step_by(ROWS) {
            let rows = first..matrix.rows().min(first + ROWS);
            let mut bytes = Vec::with_capacity(rows.len() * width);
            rows.for_each(|at| row(at, &mut bytes));
            let offset = offset + (first * width) as u64;
            write(Piece { file: files::WEIGHTS.to_owned(), offset, bytes });
        }
        Ok(())
    }
}

impl Writer for HfWriter {
    fn begin(&mut self, write: &mut Sink<'_>) -> Result<(), CheckpointError> {
        let small = std::mem::take(&mut self.small).into_iter();
        small.for_each(|(file, bytes)| write(Piece { file, offset: 0, bytes }));
        let bytes = std::mem::take(&mut self.header);
        write(Piece { file: files::WEIGHTS.to_owned(), offset: 0, bytes });
        Ok(())
    }

    fn put(
        &mut self,
        name: &str,
        content: Content,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let scale_name = format!("{name}{SCALE}");
        let dtype = self.tensors.get(name).map(|info| info.dtype);
        let matrix = match (content, dtype) {
            (Content::Floats(tensor), _) => return self.put_floats(&tensor, name, write),
            (Content::Ternary(matrix), Some(dtype @ (Dtype::F16 | Dtype::Bf16)))
                if !self.tensors.contains_key(&scale_name) =>
            {
                return self.put_floats(&dense::in_floats(name, matrix, dtype)?, name, write);
            }
            (Content::Ternary(matrix), _) => matrix,
        };
        let (Scales::Tensor(scale), Some(info)) = (matrix.scales(), self.tensors.get(&scale_name))
        else {
            return self.put_rows(name, &matrix, 4, |row, out| products(&matrix, row, out), write);
        };
        let class = self.config.quantization.linear_class;
        let stored = scales::stored(*scale, class)
            .ok_or_else(|| CheckpointError::Scale { tensor: info.name.clone(), found: *scale })?;
        match dtype {
            Some(Dtype::U8) => self.put_bytes(name, packed::pack(name, &matrix)?, write)?,
            _ => self.put_rows(name, &matrix, 2, |row, out| exact(&matrix, row, out), write)?,
        }
        self.put_bytes(&scale_name, stored.to_le_bytes().to_vec(), write)
    }

    fn end(&mut self, _: &mut Sink<'_>) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut own = own_fields(&self.config);
        if self.tensors.keys().any(|name| name.ends_with(DECAY)) {
            own.push("decays in place of their logarithms (`linear_attn.decay`)");
        }
        if own.is_empty() {
            return vec![];
        }
        let what =
            format!("transformers would compute something else: the folder has {}", own.join(", "));
        vec![Warning { file: files::CONFIG.to_owned(), what }]
    }
}

/// What only setun reads of a configuration.
fn own_fields(config: &ModelConfig) -> Vec<&'static str> {
    let nets = || config.layers.iter().filter_map(|layer| layer.delta_net());
    let is_tiled = nets().any(|net| [net.order, net.output_order].contains(&HeadOrder::Tiled));
    let fields = [
        (config.attention_gate && !config.unit_norms, "norms with their 1 (`norms_include_one`)"),
        (is_tiled, "value heads in the order of GGUF (`delta_net_order`)"),
        (config.hadamard.is_some(), "rotated weights (`hadamard_config`)"),
    ];
    fields.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
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
    !matches!(tensor.kind, OutlineKind::Ternary(ScaleKind::Rows | ScaleKind::ColumnGroups(_)))
}

/// What a tensor is in the file.
fn stored(tensor: &OutlineTensor, config: &ModelConfig) -> Vec<NewTensor> {
    let new = |name: String, dtype, shape: &[usize]| {
        let shape = shape.to_vec();
        NewTensor { name, dtype, shape }
    };
    let name = tensor.name.clone();
    match (tensor.kind, &tensor.shape[..]) {
        // transformers' shape of a convolution of channels by themselves.
        (OutlineKind::Floats(dtype), &[channels, taps]) if name.ends_with(CONVOLUTION) => {
            vec![new(name, dtype, &[channels, 1, taps])]
        }
        (OutlineKind::Floats(dtype) | OutlineKind::Table { floats: dtype, .. }, shape) => {
            vec![new(name, dtype, shape)]
        }
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

/// −1, 0 and +1 of a row, as `BF16`.
fn exact(matrix: &TernaryMatrix, row: usize, out: &mut Vec<u8>) {
    let codes = (0..matrix.columns()).map(|column| code_at(matrix.row(row), column));
    out.extend(codes.flat_map(|code| bf16::from_f32(f32::from(code) - 1.0).to_le_bytes()));
}

/// Codes times scales of a row, as `F32`.
fn products(matrix: &TernaryMatrix, row: usize, out: &mut Vec<u8>) {
    let product = |column| {
        let weight = f32::from(code_at(matrix.row(row), column)) - 1.0;
        (weight * matrix.scale(row, column)).to_le_bytes()
    };
    out.extend((0..matrix.columns()).flat_map(product));
}

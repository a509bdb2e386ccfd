//! A checkpoint of the fixtures as writers are given it.

use std::collections::BTreeMap;

use setun_checkpoint::{
    CheckpointError, Dtype, Files, ModelConfig, Tensor,
    container::write::{self, Options},
    dense, master,
    outline::{Content, Outline, OutlineKind, OutlineTensor},
    packed,
    write::{Piece, Writer as _},
};
use setun_ops::{TernaryMatrix, ternary::Scales, weight::ScaleKind};

/// The files of a container, by name.
pub(crate) type Parts = BTreeMap<String, Vec<u8>>;

/// An outline, and the content of its tensors in the same order.
pub(crate) fn outline(
    config: &ModelConfig,
    files: &Files,
    tensors: &[Tensor],
) -> (Outline, Vec<Content>) {
    let mut found = vec![];
    for tensor in tensors {
        let name = &tensor.info.name;
        if name.ends_with("weight_scale") {
            continue;
        }
        let beside = tensors.iter().find(|scale| scale.info.name == format!("{name}_scale"));
        let is_linear = name.ends_with("_proj.weight");
        let (kind, shape, content) = if is_linear {
            let matrix = matrix(config, tensor, beside);
            let shape = vec![matrix.rows(), matrix.columns()];
            let kind = OutlineKind::Ternary(ScaleKind::of(matrix.scales()));
            (kind, shape, Content::Ternary(matrix))
        } else {
            let kind = OutlineKind::Floats(tensor.info.dtype);
            (kind, tensor.info.shape.clone(), Content::Floats(tensor.clone()))
        };
        found.push((OutlineTensor { name: name.clone(), shape, kind }, content));
    }
    found.sort_by_cached_key(|(tensor, _)| place(&tensor.name));
    let (tensors, contents) = found.into_iter().unzip();
    (Outline { config: config.clone(), files: files.clone(), tensors }, contents)
}

fn matrix(config: &ModelConfig, tensor: &Tensor, beside: Option<&Tensor>) -> TernaryMatrix {
    let (rows, columns) = tensor.info.expect_matrix().unwrap();
    let class = config.quantization.linear_class;
    let (rows, codes, scales) = if tensor.info.dtype == Dtype::U8 {
        let scale = dense::weight_factor(beside.unwrap(), class).unwrap();
        let codes = packed::unpack(tensor, rows * 4, columns).unwrap();
        (rows * 4, codes, Scales::Tensor(scale))
    } else if tensor.info.dtype == Dtype::Base3 {
        let (codes, _) = setun_checkpoint::blocks::unpack(tensor).unwrap();
        (rows, codes, dense::weight_factors(beside.unwrap(), class, columns).unwrap())
    } else {
        let (codes, scale) = master::quantize(tensor).unwrap();
        (rows, codes, Scales::Tensor(scale))
    };
    TernaryMatrix::new(rows, columns, codes, scales).unwrap()
}

/// The order of a forward pass: embedding, layers, final norm, head.
fn place(name: &str) -> (usize, usize) {
    let layer = name.split_once(".layers.").and_then(|(_, rest)| rest.split('.').next());
    match (layer.and_then(|layer| layer.parse().ok()), name) {
        (Some(layer), _) => (1, layer),
        (None, "model.embed_tokens.weight") => (0, 0),
        (None, "model.norm.weight") => (2, 0),
        (None, _) => (3, 0),
    }
}

/// Writes a container into memory. `order` says in which the tensors come.
pub(crate) fn write(
    outline: &Outline,
    contents: Vec<Content>,
    options: &Options,
    order: impl Fn(usize) -> usize,
) -> Result<Parts, CheckpointError> {
    let mut writer = write::plan("model.setun", outline, options)?;
    let mut files = Parts::new();
    let mut take = |piece: Piece| {
        let file = files.entry(piece.file).or_default();
        let start = usize::try_from(piece.offset).unwrap();
        let end = start + piece.bytes.len();
        file.resize(file.len().max(end), 0xEE);
        file[start..end].copy_from_slice(&piece.bytes);
    };
    writer.begin(&mut take)?;
    let mut tensors: Vec<_> = outline.tensors.iter().zip(contents).enumerate().collect();
    tensors.sort_by_key(|(index, _)| order(*index));
    for (_, (tensor, content)) in tensors {
        writer.put(&tensor.name, content, &mut take)?;
    }
    writer.end(&mut take)?;
    Ok(files)
}

//! Which tensors a container has, and how they are cut into chunks.
//!
//! A layer's small tensors stand behind its large ones and share chunks: they are many, and a
//! chunk of a few bytes would cost more in the manifest than it holds.

use std::collections::HashMap;

use setun_ops::weight::ScaleKind;

use super::{
    NewChunk, Options, TableType,
    content::{Encoded, SCALE},
    linear::Target,
    misplaced, unwritable,
};
use crate::{
    container::Encoding,
    dtype::Dtype,
    error::CheckpointError,
    outline::{Outline, OutlineKind, OutlineTensor},
};

/// A file or tensor to be written.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) tensor: Option<(Dtype, Vec<usize>)>,
}

/// Chunks of one item, or one chunk of several.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) items: Vec<usize>,
    pub(super) chunks: Vec<NewChunk>,
    pub(super) is_small: bool, // one chunk at most, that may wait for its turn
    starts: Vec<usize>,        // of each item, where there are several
    filled: Vec<u8>,
    missing: usize,
}

/// Longest file that stands in the manifest, if it is text.
const MAX_TEXT: usize = 64 << 10;

/// A tensor of at most this part of a chunk shares it.
const SHARED: u64 = 16;

impl Item {
    pub(super) fn file(name: &str, bytes: u64) -> Self {
        Self { name: name.to_owned(), bytes, tensor: None }
    }

    fn tensor(name: String, dtype: Dtype, shape: Vec<usize>) -> Result<Self, CheckpointError> {
        if let Some(bytes) = dtype.bytes(&shape) {
            return Ok(Self { name, bytes, tensor: Some((dtype, shape)) });
        }
        let what = format!("`{name}`, {dtype} {shape:?}, which has no size");
        Err(unwritable(what, "leave it out"))
    }

    /// The layer that a tensor belongs to.
    fn layer(&self) -> Option<&str> {
        let (_, rest) = self.name.split_once(".layers.")?;
        rest.split('.').next()
    }
}

/// A short file that is text, or else its bytes.
pub(super) fn as_text(
    (name, bytes): (String, Vec<u8>),
) -> Result<(String, String), (String, Vec<u8>)> {
    if bytes.len() > MAX_TEXT {
        return Err((name, bytes));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((name, text)),
        Err(error) => Err((name, error.into_bytes())),
    }
}

type Planned = HashMap<String, (OutlineTensor, Target)>;

/// The tensors of a container in their order, and what is planned for those of the outline.
pub(super) fn items(
    outline: &Outline,
    options: &Options,
    target: Target,
) -> Result<(Vec<Item>, Planned), CheckpointError> {
    let mut planned = HashMap::new();
    let mut items = vec![];
    for tensor in &outline.tensors {
        items.extend(items_of(tensor, options.table(tensor, target))?);
        if planned.insert(tensor.name.clone(), (tensor.clone(), target)).is_some() {
            return Err(misplaced(&tensor.name, "it occurs twice"));
        }
    }
    let mut ordered = vec![];
    for run in items.chunk_by(|a, b| a.layer() == b.layer()) {
        let (small, large): (Vec<_>, Vec<_>) =
            run.iter().cloned().partition(|item| is_small(item, options));
        ordered.extend(large.into_iter().chain(small));
    }
    Ok((ordered, planned))
}

fn items_of(tensor: &OutlineTensor, table: TableType) -> Result<Vec<Item>, CheckpointError> {
    let OutlineTensor { name, shape, kind } = tensor;
    let item = |dtype| Item::tensor(name.clone(), dtype, shape.clone());
    let scales = |shape| Item::tensor(format!("{name}{SCALE}"), Dtype::F32, shape);
    Ok(match (kind, table, &shape[..]) {
        (OutlineKind::Ternary(kind), _, &[rows, columns])
        | (OutlineKind::Table { scales: kind, .. }, TableType::Stored, &[rows, columns]) => {
            let shape = match kind {
                ScaleKind::Tensor => vec![1],
                ScaleKind::Rows => vec![rows, 1],
                ScaleKind::ColumnGroups(width) if columns.is_multiple_of(*width) => {
                    vec![rows, columns / width]
                }
                ScaleKind::ColumnGroups(width) => {
                    let what = format!(
                        "`{name}`, whose {columns} columns are no multiple of groups of {width}"
                    );
                    return Err(unwritable(what, "write safetensors"));
                }
            };
            vec![item(Dtype::Base3)?, scales(shape)?]
        }
        (OutlineKind::Ternary(_), ..) => {
            return Err(misplaced(name, "it is planned as ternary, and is no matrix"));
        }
        (_, TableType::Int8, &[rows, _]) => {
            vec![item(Dtype::I8)?, scales(vec![rows])?]
        }
        (_, TableType::F16 | TableType::RoundedF16, _) => vec![item(Dtype::F16)?],
        (OutlineKind::Floats(dtype) | OutlineKind::Table { floats: dtype, .. }, ..) => {
            vec![item(*dtype)?]
        }
    })
}

fn is_small(item: &Item, options: &Options) -> bool {
    item.bytes <= options.chunk_bytes / SHARED
}

/// All units in order, and the unit of each item. The first `files` items are files.
pub(super) fn plan_units(
    items: &[Item],
    files: usize,
    options: &Options,
) -> (Vec<Unit>, Vec<usize>) {
    let mut units: Vec<Unit> = vec![];
    let mut unit_of = Vec::with_capacity(items.len());
    let mut open: Option<u64> = None; // bytes of the last unit, if it takes more
    for (index, item) in items.iter().enumerate() {
        let shares = index >= files && is_small(item, options);
        let same_layer = index > 0 && items[index - 1].layer() == item.layer();
        match (open, units.last_mut()) {
            (Some(bytes), Some(unit))
                if shares && same_layer && bytes + item.bytes <= options.chunk_bytes =>
            {
                unit.items.push(index);
                open = Some(bytes + item.bytes);
            }
            _ => {
                units.push(Unit::new(index, shares));
                open = shares.then_some(item.bytes);
            }
        }
        unit_of.push(units.len() - 1);
    }
    for unit in &mut units {
        unit.cut(items, options.chunk_bytes);
    }
    (units, unit_of)
}

impl Unit {
    fn new(item: usize, is_small: bool) -> Self {
        let (chunks, starts, filled) = (vec![], vec![], vec![]);
        Self { items: vec![item], chunks, is_small, starts, filled, missing: 0 }
    }

    /// Where items lie in the one chunk, or how one is cut.
    fn cut(&mut self, items: &[Item], chunk_bytes: u64) {
        let mut all = 0;
        for &item in &self.items {
            self.starts.push(usize::try_from(all).unwrap_or(usize::MAX));
            all += items[item].bytes;
        }
        self.missing = self.items.len();
        let mut start = 0;
        while start < all {
            let bytes = chunk_bytes.min(all - start);
            let (encoding, sha256) = (Encoding::Plain, [0; 32]);
            self.chunks.push(NewChunk {
                part: 0,
                offset: 0,
                stored: bytes,
                bytes,
                encoding,
                sha256,
            });
            start += bytes;
        }
    }

    /// Takes one of several items; the whole chunk, once all are there.
    pub(super) fn fill(&mut self, item: usize, encoded: &Encoded) -> Option<Vec<u8>> {
        let bytes: u64 = self.chunks.iter().map(|chunk| chunk.bytes).sum();
        self.filled.resize(usize::try_from(bytes).ok()?, 0);
        let place = self.items.iter().position(|&found| found == item)?;
        let bytes = encoded.bytes(0..encoded.len());
        self.filled[self.starts[place]..][..bytes.len()].copy_from_slice(&bytes);
        self.missing = self.missing.saturating_sub(1);
        (self.missing == 0).then(|| std::mem::take(&mut self.filled))
    }
}

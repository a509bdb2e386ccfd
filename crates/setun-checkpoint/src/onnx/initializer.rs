//! Locations of the elements of a graph's tensors.

use std::{ops::Range, sync::Arc};

use super::{
    graph::{self, Initializer},
    messages::TensorProto,
    wire::{Field, Wire},
};
use crate::{dtype::Dtype, error::CheckpointError};

/// Most dimensions of a tensor.
const MAX_RANK: usize = 8;

/// A run of elements in the file of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) kind: Kind,
    pub(super) range: Range<u64>,
}

/// How the elements of a [`Payload`] are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `raw_data`: as in memory, little-endian.
    Raw,
    /// `float_data`: likewise, of type `F32`.
    Floats,
    /// `int32_data`: varints; those of floats are their bits.
    Varints,
    /// Types that no weight has.
    Other,
}

impl Payload {
    /// The elements in a field of a tensor whose payload starts there, if it has any.
    pub(super) fn of(field: Field, start: u64) -> Result<Option<Self>, &'static str> {
        let kind = match field.number {
            9 => Kind::Raw,
            4 => Kind::Floats,
            5 => Kind::Varints,
            6 | 7 | 10 | 11 => Kind::Other,
            _ => return Ok(None),
        };
        if field.wire != Wire::Length && kind != Kind::Other {
            return Err("a tensor's elements are not packed");
        }
        Ok(Some(Self { kind, range: start..start + field.payload }))
    }
}

/// Checks shape, type and place of a tensor.
pub(super) fn check(
    file: &Arc<str>,
    folder: &str,
    tensor: TensorProto,
    payloads: &[Payload],
) -> Result<Initializer, CheckpointError> {
    const EXTERNAL: i32 = 1;
    let refuse = |what: String| {
        let (file, tensor) = (file.to_string(), tensor.name.clone());
        CheckpointError::OnnxTensor { file, tensor, what }
    };
    let shape = shape(&tensor.dims).ok_or_else(|| refuse("its shape is out of range".into()))?;
    if tensor.segment.is_some() {
        return Err(refuse("it is in segments, which are not supported".into()));
    }
    let dtype = graph::dtype(tensor.data_type);
    let bytes = dtype.and_then(|dtype| dtype.bytes(&shape));
    let kinds = payloads.iter().filter(|payload| dtype.is_some() || payload.kind == Kind::Raw);
    let (place, range, varints) = if tensor.data_location == EXTERNAL {
        let (name, range) = external(&tensor, bytes).map_err(refuse)?;
        (format!("{folder}{name}").into(), range, false)
    } else {
        match kinds.collect::<Vec<_>>()[..] {
            [] => (Arc::clone(file), 0..0, false),
            [one] if dtype.is_none() || fits(one.kind, dtype) => {
                (Arc::clone(file), one.range.clone(), one.kind == Kind::Varints)
            }
            _ => return Err(refuse("its elements are of several types, or of another".into())),
        }
    };
    let found = range.end - range.start;
    // An element takes a byte or more as a varint.
    let fits = |bytes: u64| if varints { found >= elements(&shape) } else { found == bytes };
    if bytes.is_some_and(|bytes| !fits(bytes)) {
        let bytes = bytes.unwrap_or(0);
        return Err(refuse(format!("{shape:?} takes {bytes} bytes, {found} are there")));
    }
    let (name, data_type) = (tensor.name, tensor.data_type);
    Ok(Initializer { name, shape, data_type, file: place, range, varints })
}

fn fits(kind: Kind, dtype: Option<Dtype>) -> bool {
    match kind {
        Kind::Raw => true,
        Kind::Floats => dtype == Some(Dtype::F32),
        Kind::Varints => dtype != Some(Dtype::F32),
        Kind::Other => false,
    }
}

fn elements(shape: &[usize]) -> u64 {
    shape.iter().map(|&size| size as u64).product()
}

/// The shape, if its elements can be counted on this machine.
fn shape(dims: &[i64]) -> Option<Vec<usize>> {
    let shape: Vec<_> =
        dims.iter().take(MAX_RANK + 1).map(|&size| usize::try_from(size).ok()).collect();
    let shape: Vec<_> = shape.into_iter().collect::<Option<_>>()?;
    let elements = shape.iter().try_fold(8_usize, |all, &size| all.checked_mul(size));
    (elements.is_some() && shape.len() <= MAX_RANK).then_some(shape)
}

/// File and place of elements outside of the graph's file.
fn external(tensor: &TensorProto, bytes: Option<u64>) -> Result<(&str, Range<u64>), String> {
    let entry = |key: &str| {
        let mut found = tensor.external_data.iter().filter(|entry| entry.key == key);
        found.next().map(|entry| entry.value.as_str())
    };
    let number = |key: &str| {
        let text = entry(key);
        text.map(str::parse).transpose().map_err(|_| format!("`{key}` is no number"))
    };
    let name = entry("location").unwrap_or_default();
    if name.is_empty() || name.starts_with('.') || name.contains([':', '/', '\\', '\0']) {
        return Err(format!("its data are in `{name}`, expected the plain name of a file"));
    }
    let start: u64 = number("offset")?.unwrap_or(0);
    let length = number("length")?.or(bytes).unwrap_or(0);
    let end = start.checked_add(length).ok_or("its place is out of range")?;
    Ok((name, start..end))
}

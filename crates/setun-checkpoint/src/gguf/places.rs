//! Offsets of tensors: their sizes follow from types and shapes, and must agree with them.

use std::sync::Arc;

use super::{
    header::{Header, RawTensor},
    names, types,
};
use crate::{dtype::Dtype, error::CheckpointError, source::I2sBlocks, tensor::TensorInfo};

/// A tensor whose size is not known for certain yet.
struct Placed {
    raw: RawTensor,
    shape: Vec<usize>,
    dtype: Dtype,
    next: Option<u64>, // where the next one starts, from the start of the data
}

/// The tensors of a file, in file order, with our names.
pub(super) fn tensors(
    header: &mut Header,
    i2s: I2sBlocks,
) -> Result<Vec<TensorInfo>, CheckpointError> {
    let file: Arc<str> = Arc::from(header.metadata.file.as_str());
    let mut raw = std::mem::take(&mut header.tensors);
    raw.sort_by_key(|tensor| tensor.offset);
    let starts: Vec<_> = raw.iter().map(|tensor| tensor.offset).collect();
    let nexts = starts.iter().skip(1).copied().map(Some).chain([None]);
    let mut placed = Vec::with_capacity(raw.len());
    for (raw, next) in raw.into_iter().zip(nexts) {
        placed.push(Placed::new(&file, raw, next, i2s)?);
    }
    settle_groups(&file, &mut placed, header.alignment)?;
    let mut expected = 0;
    let mut infos = Vec::with_capacity(placed.len());
    for tensor in placed {
        let info = tensor.check(&file, header, expected)?;
        expected = aligned(info.range.end - header.data_start, header.alignment).unwrap_or(0);
        infos.push(info);
    }
    Ok(infos)
}

impl Placed {
    fn new(
        file: &str,
        raw: RawTensor,
        next: Option<u64>,
        i2s: I2sBlocks,
    ) -> Result<Self, CheckpointError> {
        let Some(dtype) = types::dtype(raw.type_id, i2s) else {
            let (found, way_out) = types::refusal(raw.type_id);
            let (file, tensor) = (file.to_owned(), raw.name);
            return Err(CheckpointError::GgufType { file, tensor, found, way_out });
        };
        let shape = raw.shape.iter().map(|&size| usize::try_from(size).ok());
        match shape.collect::<Option<Vec<_>>>() {
            Some(shape) => Ok(Self { raw, shape, dtype, next }),
            None => Err(size_error(file, &raw, dtype, next)),
        }
    }

    /// Whether the next tensor starts where this one ends, were it of a type.
    fn fits(&self, dtype: Dtype, alignment: u64) -> bool {
        let bytes = dtype.bytes(&self.shape);
        let end = bytes.and_then(|bytes| self.raw.offset.checked_add(bytes));
        let end = end.and_then(|end| aligned(end, alignment));
        end.is_some() && self.next.is_none_or(|next| Some(next) == end)
    }

    fn check(
        self,
        file: &Arc<str>,
        header: &Header,
        expected: u64,
    ) -> Result<TensorInfo, CheckpointError> {
        let Self { raw, shape, dtype, next } = self;
        if raw.offset != expected {
            let (file, found) = (file.to_string(), raw.offset);
            return Err(CheckpointError::Offset { file, tensor: raw.name, expected, found });
        }
        let start = header.data_start.checked_add(raw.offset);
        let end = start.zip(dtype.bytes(&shape)).and_then(|(start, size)| start.checked_add(size));
        let after = end.and_then(|end| aligned(end - header.data_start, header.alignment));
        match (start, end) {
            (Some(start), Some(end))
                if after.is_some() && next.is_none_or(|next| Some(next) == after) =>
            {
                let (name, file) = (names::ours(&raw.name), Arc::clone(file));
                Ok(TensorInfo { name, dtype, shape, file, range: start..end, paired_heads: None })
            }
            _ => Err(size_error(file, &raw, dtype, next)),
        }
    }
}

/// `Q2_0` has groups of 64 or of 128: of a file's tensors all have one, and some show which.
fn settle_groups(file: &str, placed: &mut [Placed], alignment: u64) -> Result<(), CheckpointError> {
    let both = [Dtype::Q2_0, Dtype::Q2_0Wide];
    let of_type = || placed.iter().filter(|tensor| tensor.dtype == Dtype::Q2_0);
    let possible = both.map(|dtype| of_type().all(|tensor| tensor.fits(dtype, alignment)));
    let dtype = match (of_type().next(), possible) {
        (None, _) | (_, [true, false]) => return Ok(()),
        (_, [false, true]) => Dtype::Q2_0Wide,
        (Some(tensor), [false, false]) => {
            return Err(size_error(file, &tensor.raw, tensor.dtype, tensor.next));
        }
        (Some(tensor), [true, true]) => {
            return Err(CheckpointError::GgufType {
                file: file.to_owned(),
                tensor: tensor.raw.name.clone(),
                found: "Q2_0 (42) in groups of 64 or of 128".to_owned(),
                way_out: "nothing in the file says which: convert the original model again",
            });
        }
    };
    for tensor in placed.iter_mut().filter(|tensor| tensor.dtype == Dtype::Q2_0) {
        tensor.dtype = dtype;
    }
    Ok(())
}

/// The next place at which a tensor may start.
pub(super) fn aligned(end: u64, alignment: u64) -> Option<u64> {
    end.checked_next_multiple_of(alignment)
}

fn size_error(file: &str, raw: &RawTensor, dtype: Dtype, next: Option<u64>) -> CheckpointError {
    CheckpointError::TensorSize {
        file: file.to_owned(),
        tensor: raw.name.clone(),
        dtype,
        shape: raw.shape.clone(),
        found: [raw.offset, next.unwrap_or(raw.offset)],
    }
}

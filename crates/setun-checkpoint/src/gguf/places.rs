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
    is_hybrid: bool,
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
        let mut info = tensor.check(&file, header, expected)?;
        info.name = names::ours(&info.name, is_hybrid);
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

    /// Whether the next tensor starts where this one ends, were it of a meaning of its type.
    fn fits(&self, meaning: Meaning, alignment: u64) -> bool {
        let end = meaning.bytes(&self.shape);
        let end = end.and_then(|bytes| self.raw.offset.checked_add(bytes));
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
                let (name, file) = (raw.name, Arc::clone(file));
                Ok(TensorInfo { name, dtype, shape, file, range: start..end, paired_heads: None })
            }
            _ => Err(size_error(file, &raw, dtype, next)),
        }
    }
}

/// What writers mean by type 42.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Groups64,
    Groups128,
    /// Codes of four weights with one zero each, of Tencent.
    Stq1_0,
}

const MEANINGS: [Meaning; 3] = [Meaning::Groups64, Meaning::Groups128, Meaning::Stq1_0];

impl Meaning {
    fn name(self) -> &'static str {
        match self {
            Self::Groups64 => "Q2_0 in groups of 64",
            Self::Groups128 => "Q2_0 in groups of 128",
            Self::Stq1_0 => "STQ1_0",
        }
    }

    fn bytes(self, shape: &[usize]) -> Option<u64> {
        const STQ1_0_COLUMNS: usize = 256;
        const STQ1_0_BYTES: u64 = 42;
        match self {
            Self::Groups64 => Dtype::Q2_0.bytes(shape),
            Self::Groups128 => Dtype::Q2_0Wide.bytes(shape),
            Self::Stq1_0 => {
                let columns = shape.last()?;
                let elements = shape
                    .iter()
                    .try_fold(1_u64, |all, &size| all.checked_mul(u64::try_from(size).ok()?))?;
                let blocks = elements / STQ1_0_COLUMNS as u64;
                columns.is_multiple_of(STQ1_0_COLUMNS).then_some(blocks)?.checked_mul(STQ1_0_BYTES)
            }
        }
    }
}

/// Type 42 has three meanings: all of a file's tensors have one, and some show which. A small one may fit
/// several, as its end is padded.
fn settle_groups(file: &str, placed: &mut [Placed], alignment: u64) -> Result<(), CheckpointError> {
    let of_type = || placed.iter().filter(|tensor| tensor.dtype == Dtype::Q2_0);
    let Some(first) = of_type().next() else {
        return Ok(());
    };
    let fits_all = |meaning: &Meaning| of_type().all(|tensor| tensor.fits(*meaning, alignment));
    let possible: Vec<_> = MEANINGS.into_iter().filter(fits_all).collect();
    let dtype = match possible[..] {
        [Meaning::Groups64] => return Ok(()),
        [Meaning::Groups128] => Dtype::Q2_0Wide,
        [Meaning::Stq1_0] => {
            let way_out = "convert the original model to TQ1_0, TQ2_0 or Q2_0";
            return Err(type_error(file, first, "STQ1_0 (42)".to_owned(), way_out));
        }
        [] => return Err(contradiction(file, placed, first, alignment)),
        _ => {
            let names: Vec<_> = possible.into_iter().map(Meaning::name).collect();
            let way_out = "nothing in the file says which: convert the original model again";
            return Err(type_error(file, first, format!("42, {}", names.join(" or ")), way_out));
        }
    };
    for tensor in placed.iter_mut().filter(|tensor| tensor.dtype == Dtype::Q2_0) {
        tensor.dtype = dtype;
    }
    Ok(())
}

/// The error where no meaning fits all: for the first tensor that is not as most are.
fn contradiction(file: &str, placed: &[Placed], first: &Placed, alignment: u64) -> CheckpointError {
    let of_type = || placed.iter().filter(|tensor| tensor.dtype == Dtype::Q2_0);
    let count = |meaning| of_type().filter(|tensor| tensor.fits(meaning, alignment)).count();
    let most = MEANINGS.into_iter().max_by_key(|meaning| count(*meaning));
    let Some(most) = most.filter(|meaning| count(*meaning) > of_type().count() / 2) else {
        return size_error(file, &first.raw, first.dtype, first.next);
    };
    let other = of_type().find(|tensor| !tensor.fits(most, alignment)).unwrap_or(first);
    let found = format!("42 in another size than most, which are {}", most.name());
    type_error(file, other, found, "all tensors of this type must agree: convert the model again")
}

fn type_error(
    file: &str,
    tensor: &Placed,
    found: String,
    way_out: &'static str,
) -> CheckpointError {
    let (file, tensor) = (file.to_owned(), tensor.raw.name.clone());
    CheckpointError::GgufType { file, tensor, found, way_out }
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

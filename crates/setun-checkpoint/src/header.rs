//! The header of a safetensors file: eight bytes of length, then JSON.
//!
//! Only the header is read here, and with 64-bit offsets: a checkpoint of master weights may be
//! larger than the address space of the page that quantizes it.

use std::collections::{BTreeMap, HashSet};
use std::{fmt, sync::Arc};

use crate::dtype::Dtype;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

use crate::{error::CheckpointError, json, tensor::TensorInfo};

/// Bytes that say how long the header is.
pub(crate) const LENGTH_BYTES: u64 = 8;

/// Longest header that is read, as in the `safetensors` crate.
pub(crate) const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The member of the header that is no tensor.
pub(crate) const METADATA: &str = "__metadata__";

/// Most dimensions of a tensor.
pub(crate) const MAX_RANK: usize = 8;

/// What a file says about itself.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    /// Its strings.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Its tensors, in file order, without gaps.
    pub(crate) tensors: Vec<TensorInfo>,
}

impl CheckpointError {
    /// The error for a header of this many bytes, more than are read.
    pub(crate) fn header_too_large(file: &str, found: u64) -> Self {
        Self::HeaderTooLarge { file: file.to_owned(), found, limit: MAX_HEADER_BYTES }
    }
}

/// Length of the header that follows these first bytes.
pub(crate) fn length(file: &str, bytes: [u8; 8]) -> Result<u64, CheckpointError> {
    let found = u64::from_le_bytes(bytes);
    if found > MAX_HEADER_BYTES {
        return Err(CheckpointError::header_too_large(file, found));
    }
    if found == 0 {
        let (file, what) = (file.to_owned(), "the header is empty".to_owned());
        return Err(CheckpointError::Json { file, line: 0, column: 0, what });
    }
    Ok(found)
}

/// Reads the JSON of a header.
pub(crate) fn parse(file: &Arc<str>, bytes: &[u8]) -> Result<Header, CheckpointError> {
    let RawHeader { metadata, mut tensors } = json::read(file, bytes)?;
    tensors.sort_by_key(|(_, tensor)| tensor.data_offsets);
    let data_start = LENGTH_BYTES + bytes.len() as u64;
    let mut offset = 0;
    let mut checked = Vec::with_capacity(tensors.len());
    for (name, raw) in tensors {
        let [start, end] = raw.data_offsets;
        if start != offset {
            return Err(CheckpointError::Offset {
                file: file.to_string(),
                tensor: name,
                expected: offset,
                found: start,
            });
        }
        offset = end;
        checked.push(raw.check(file, name, data_start)?);
    }
    check_unique(&checked)?;
    Ok(Header { metadata, tensors: checked })
}

/// No name may occur twice.
pub(crate) fn check_unique(tensors: &[TensorInfo]) -> Result<(), CheckpointError> {
    let mut names = HashSet::with_capacity(tensors.len());
    match tensors.iter().find(|tensor| !names.insert(tensor.name.as_str())) {
        None => Ok(()),
        Some(twice) => {
            let (file, tensor) = (twice.file.to_string(), twice.name.clone());
            Err(CheckpointError::DuplicateTensor { file, tensor })
        }
    }
}

struct RawHeader {
    metadata: BTreeMap<String, String>,
    tensors: Vec<(String, RawTensor)>,
}

/// A tensor as the JSON has it.
#[derive(Deserialize)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl RawTensor {
    fn check(
        self,
        file: &Arc<str>,
        name: String,
        data_start: u64,
    ) -> Result<TensorInfo, CheckpointError> {
        let Some(dtype) = Dtype::from_safetensors(&self.dtype) else {
            let (file, tensor) = (file.to_string(), name);
            return Err(CheckpointError::UnknownDtype { file, tensor, found: self.dtype });
        };
        let [start, end] = self.data_offsets;
        let range = data_start.checked_add(start).zip(data_start.checked_add(end));
        match (range, self.addressable_shape()) {
            (Some((first, last)), Some(shape)) if self.fits(dtype, &shape) => {
                let file = Arc::clone(file);
                Ok(TensorInfo { name, dtype, shape, file, range: first..last, paired_heads: None })
            }
            _ => Err(CheckpointError::TensorSize {
                file: file.to_string(),
                tensor: name,
                dtype,
                shape: self.shape.into_iter().take(MAX_RANK).collect(),
                found: self.data_offsets,
            }),
        }
    }

    /// The shape, if its elements can be counted on this machine.
    fn addressable_shape(&self) -> Option<Vec<usize>> {
        let shape = self.shape.iter().map(|&size| usize::try_from(size).ok());
        let shape: Vec<_> = shape.collect::<Option<_>>()?;
        let elements = shape.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
        (elements.is_some() && shape.len() <= MAX_RANK).then_some(shape)
    }

    /// Whether the offsets span as many bytes as shape and type need.
    fn fits(&self, dtype: Dtype, shape: &[usize]) -> bool {
        let [start, end] = self.data_offsets;
        let bytes = dtype.bytes(shape);
        bytes.is_some() && end.checked_sub(start) == bytes
    }
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawHeaderVisitor)
    }
}

struct RawHeaderVisitor;

impl<'de> Visitor<'de> for RawHeaderVisitor {
    type Value = RawHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
        let (mut metadata, mut tensors) = (None, Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            if name != METADATA {
                tensors.push((name, map.next_value()?));
            } else if metadata.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(METADATA));
            }
        }
        Ok(RawHeader { metadata: metadata.unwrap_or_default(), tensors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, CheckpointError> {
        super::parse(&"m.safetensors".into(), text.as_bytes())
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn tensors_come_in_file_order() {
        let text = r#"{"__metadata__": {"format": "pt"},
            "b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [4, 16]},
            "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}  "#;
        let header = parse(text).unwrap();
        let start = 8 + text.len() as u64;
        assert_eq!(header.metadata["format"], "pt");
        assert_eq!(
            (&*header.tensors[0].name, &header.tensors[0].range),
            ("a", &(start..start + 4))
        );
        assert_eq!((&*header.tensors[1].name, &*header.tensors[1].shape), ("b", &[2, 3][..]));
    }

    #[test]
    fn gaps_overlaps_and_sizes_are_refused() {
        let two = |first: &str, second: &str| {
            message(&format!(
                r#"{{"a": {{"dtype": "U8", "shape": [4], "data_offsets": {first}}},
                     "b": {{"dtype": "U8", "shape": [4], "data_offsets": {second}}}}}"#
            ))
        };
        let starts = |tensor: &str, found: u64, expected: u64| {
            format!(
                "m.safetensors: tensor `{tensor}` starts at byte {found} of the data, \
                 expected {expected}"
            )
        };
        assert_eq!(two("[1, 5]", "[5, 9]"), starts("a", 1, 0));
        assert_eq!(two("[0, 4]", "[5, 9]"), starts("b", 5, 4));
        assert_eq!(two("[0, 4]", "[3, 7]"), starts("b", 3, 4));
        assert_eq!(two("[0, 4]", "[0, 4]"), starts("b", 0, 4));
        assert!(two("[0, 5]", "[5, 9]").contains("`a`, U8 [4], lies in [0, 5]"));
        assert!(two("[0, 4]", "[4, 3]").contains("`b`, U8 [4], lies in [4, 3]"));
    }

    #[test]
    fn overflowing_sizes_are_refused() {
        let one = |dtype: &str, shape: &str, end: u64| {
            parse(&format!(
                r#"{{"a": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": [0, {end}]}}}}"#
            ))
        };
        assert!(one("F4", "[2]", 1).is_ok());
        for (dtype, shape, end) in [
            ("F4", "[1]", 1),
            ("U8", "[4294967296, 4294967296]", 0),
            ("F32", "[4611686018427387904]", 0),
            ("U8", "[1,1,1,1,1,1,1,1,1]", 1),
            ("U8", "[18446744073709551615]", u64::MAX),
        ] {
            let error = one(dtype, shape, end).unwrap_err();
            assert!(matches!(error, CheckpointError::TensorSize { .. }), "{error}");
        }
    }

    #[test]
    fn unknown_types_and_repeated_names_are_refused() {
        assert_eq!(
            message(r#"{"a": {"dtype": "F31", "shape": [], "data_offsets": [0, 4]}}"#),
            "m.safetensors: tensor `a` has the unknown element type `F31`"
        );
        assert_eq!(
            message(
                r#"{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                    "a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}"#
            ),
            "m.safetensors: tensor `a` occurs twice"
        );
        assert!(message(r#"{"__metadata__": {}, "__metadata__": {}}"#).contains("duplicate"));
        assert!(message("[]").contains("line 1"));
    }

    #[test]
    fn headers_are_measured_before_they_are_read() {
        let error = length("m", [0; 8]).unwrap_err();
        assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
        assert_eq!(length("m", 100_000_000_u64.to_le_bytes()), Ok(100_000_000));
        let error = length("m", 100_000_001_u64.to_le_bytes()).unwrap_err();
        assert!(matches!(error, CheckpointError::HeaderTooLarge { found: 100_000_001, .. }));
    }
}

//! Reads the headers of a file, or of all its parts.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::{
    config::{self, Keys},
    cursor::Stop,
    hadamard::{self, Rotation},
    header::{self, Header},
    hybrid, known_keys,
    metadata::Metadata,
    names, places, rope,
    split::{self, Parts},
    vocabulary,
};
use crate::{
    config::{HADAMARD, QuantizationMode},
    dtype::FLOATS,
    error::CheckpointError,
    files,
    readers::{HeaderContents, HeaderReader},
    source::{Options, ReadRequest},
    tensor::TensorInfo,
};

/// Bytes of the first piece of a header; each further one is twice as long, up to the most.
const FIRST_PIECE: u64 = 64 << 10;
const MAX_PIECE: u64 = 16 << 20;

/// First the headers of all parts, then the divisors of the rotary frequencies if there are any.
#[derive(Debug)]
pub(crate) struct GgufHeaderReader {
    options: Options,
    ahead: VecDeque<String>, // the first is being read
    parts: usize,
    bytes: Vec<u8>, // of its header
    piece: u64,
    headers: Vec<Header>,
    tensors: Vec<TensorInfo>,
    divisors: Option<TensorInfo>,
}

impl GgufHeaderReader {
    /// Of a file that begins with these bytes, or of all the parts of which it is one.
    pub(crate) fn new(file: &str, bytes: &[u8], options: Options) -> Self {
        let ahead: VecDeque<_> = match Parts::of(file) {
            Some(parts) => (0..parts.count).map(|part| parts.name(part)).collect(),
            None => VecDeque::from([file.to_owned()]),
        };
        let is_first = ahead.front().is_some_and(|first| first == file);
        Self {
            options,
            parts: ahead.len(),
            ahead,
            bytes: if is_first { bytes.to_vec() } else { vec![] },
            piece: FIRST_PIECE,
            headers: vec![],
            tensors: vec![],
            divisors: None,
        }
    }

    fn accept_piece(
        &mut self,
        piece: &[u8],
        found: &mut HeaderContents,
    ) -> Result<(), CheckpointError> {
        let file = self.ahead.front().ok_or(CheckpointError::NothingWanted)?;
        let is_end = (piece.len() as u64) < self.piece;
        self.bytes.extend_from_slice(piece);
        match header::parse(file, &self.bytes) {
            Ok(header) => self.accept_header(header, found),
            Err(Stop::Bad(error)) => Err(error),
            Err(Stop::More(expected)) if is_end => {
                let (file, found) = (file.clone(), self.bytes.len() as u64);
                Err(CheckpointError::Truncated { file, expected, found })
            }
            Err(Stop::More(_)) => {
                self.piece = MAX_PIECE.min(2 * self.piece);
                Ok(())
            }
        }
    }

    fn accept_header(
        &mut self,
        header: Header,
        found: &mut HeaderContents,
    ) -> Result<(), CheckpointError> {
        split::check(&header.metadata, self.headers.len(), self.parts)?;
        self.headers.push(header);
        self.ahead.pop_front();
        (self.bytes, self.piece) = (vec![], FIRST_PIECE);
        if !self.ahead.is_empty() {
            return Ok(());
        }
        split::check_tensors(&self.headers)?;
        let is_hybrid = hybrid::is_hybrid(&self.headers[0].metadata);
        for header in &mut self.headers {
            self.tensors.extend(places::tensors(header, self.options.i2s, is_hybrid)?);
        }
        match self.tensors.iter().position(|tensor| tensor.name == rope::TENSOR) {
            Some(place) => self.divisors = Some(checked_divisors(self.tensors.remove(place))?),
            None => self.describe(None, found)?,
        }
        Ok(())
    }

    /// All is read: says it as a Hugging Face folder would.
    fn describe(
        &mut self,
        divisors: Option<&[f32]>,
        found: &mut HeaderContents,
    ) -> Result<(), CheckpointError> {
        self.headers[1..].iter().try_for_each(|header| refuse_rotated(&header.metadata))?;
        let metadata = &mut self.headers[0].metadata;
        let mut vocabulary = vocabulary::take(metadata)?;
        if let Some(name) = self.options.pretokenizer {
            vocabulary.pre = Some(name.to_string());
        }
        let architecture = config::architecture(metadata)?;
        let hybrids = if architecture.is_hybrid { &hybrid::KEYS[..] } else { &[] };
        let checked = config::checked_keys().chain(hybrids.iter().copied());
        found.warnings.extend(known_keys::warning(metadata, architecture.name, checked));
        if architecture.is_hybrid {
            let layers = hybrid::layers(&Keys::new(metadata, &[], architecture))?;
            found.warnings.extend(hybrid::drop_mtp(&mut self.tensors, layers));
        }
        let keys = Keys::new(metadata, &self.tensors, architecture);
        let rotation = hadamard::read(metadata, &self.tensors)?;
        let more = more_fields(&keys, architecture.is_hybrid, rotation.as_ref())?;
        refuse_exact_with_biases(metadata, &self.tensors)?;
        let (heads, kv_heads) = (keys.heads()?, keys.kv_heads()?);
        let tokens = vocabulary::write(&vocabulary, metadata, keys.vocab_size()?, found)?;
        found.files.insert(files::CONFIG, keys.config_json(divisors, &tokens, more)?);
        found.parse_config()?;
        if let Some(config) = &mut found.config
            && self.tensors.iter().any(is_float_linear)
        {
            config.quantization.mode = QuantizationMode::FakeQuantized;
        }
        for tensor in &mut self.tensors {
            if architecture.is_paired
                && let Some(is_queries) = names::is_queries(&tensor.name)
            {
                tensor.paired_heads = Some(if is_queries { heads } else { kv_heads });
            }
        }
        found.tensors = std::mem::take(&mut self.tensors);
        Ok(())
    }
}

impl HeaderReader for GgufHeaderReader {
    fn next_read(&self) -> Option<ReadRequest> {
        if let Some(file) = self.ahead.front() {
            let start = self.bytes.len() as u64;
            let range = Some(start..start + self.piece);
            return Some(ReadRequest { file: file.clone(), range, required: true });
        }
        let info = self.divisors.as_ref()?;
        let range = Some(info.range.clone());
        Some(ReadRequest { file: info.file.to_string(), range, required: true })
    }

    fn may_end(&self) -> bool {
        !self.ahead.is_empty()
    }

    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError> {
        let bytes = bytes.unwrap_or_default();
        if self.divisors.take().is_some() {
            let divisors: Vec<_> =
                bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            self.describe(Some(&divisors), found)?;
        } else {
            self.accept_piece(bytes, found)?;
        }
        Ok(None)
    }
}

/// Fields of `config.json` that hybrid models or rotated weights need.
fn more_fields(
    keys: &Keys<'_>,
    is_hybrid: bool,
    rotation: Option<&Rotation>,
) -> Result<Map<String, Value>, CheckpointError> {
    let mut more = if is_hybrid { hybrid::fields(keys, rotation)? } else { Map::new() };
    if let Some(rotation) = rotation {
        more.insert(HADAMARD.to_owned(), rotation.hadamard.to_json());
    }
    Ok(more)
}

/// A ternary matrix that is stored as floats holds −s, 0 and +s: converters quantize masters.
fn is_float_linear(tensor: &TensorInfo) -> bool {
    tensor.name.contains("_proj.weight")
        && tensor.shape.len() == 2
        && FLOATS.contains(&tensor.dtype)
}

/// Floats with a scale beside them say nothing of where a bias enters.
fn refuse_exact_with_biases(
    metadata: &Metadata,
    tensors: &[TensorInfo],
) -> Result<(), CheckpointError> {
    let has = |end: &str| tensors.iter().any(|tensor| tensor.name.ends_with(end));
    if tensors.iter().any(is_float_linear) && has("_proj.weight_scale") && has("_proj.bias") {
        return Err(CheckpointError::UnsupportedModel {
            file: metadata.file.clone(),
            what: "linear layers of",
            found: "floats with scales and biases".to_owned(),
            supported: "ternary types with scales and biases, floats with either",
        });
    }
    Ok(())
}

/// The first of several files says whether weights are rotated.
fn refuse_rotated(metadata: &Metadata) -> Result<(), CheckpointError> {
    match metadata.values.keys().find(|key| key.starts_with(hadamard::PREFIX)) {
        None => Ok(()),
        Some(key) => Err(metadata.error(key, "this key in the first file only", "in another")),
    }
}

/// One `f32` for each pair of a head.
fn checked_divisors(info: TensorInfo) -> Result<TensorInfo, CheckpointError> {
    const MOST: u64 = 64 << 10;
    info.expect_dtype(&[crate::Dtype::F32])?;
    if info.shape.len() != 1 || info.bytes() > MOST {
        return Err(info.rank("a vector of at most 16384 numbers"));
    }
    Ok(info)
}

//! The header of a GGUF file: metadata and tensor infos.

use super::{
    ALIGNMENT, MAGIC,
    cursor::{Cursor, Stop},
    metadata::{self, Metadata},
};
use crate::error::CheckpointError;

/// A file's metadata and tensors.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<RawTensor>,
    pub(super) alignment: u64,
    pub(super) data_start: u64,
}

/// A tensor as the header has it.
#[derive(Debug)]
pub(super) struct RawTensor {
    pub(super) name: String,
    /// The last dimension is contiguous: the file's order is the other.
    pub(super) shape: Vec<u64>,
    pub(super) type_id: u32,
    /// From the start of the data.
    pub(super) offset: u64,
}

const MAX_NAME: usize = 64;
const MAX_RANK: u32 = 4;

/// Reads the header of a file from its first bytes.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Header, Stop> {
    let mut cursor = Cursor::new(file, bytes);
    if cursor.take(MAGIC.len() as u64)? != MAGIC {
        return Err(cursor.bad("this is no GGUF file: it does not begin with `GGUF`"));
    }
    check_version(file, cursor.u32()?)?;
    let (tensor_count, value_count) = (cursor.u64()?, cursor.u64()?);
    let mut metadata = Metadata { file: file.to_owned(), ..Metadata::default() };
    for _ in 0..value_count {
        let key = cursor.text()?.to_owned();
        let value = metadata::read(&mut cursor)?;
        if metadata.values.insert(key.clone(), value).is_some() {
            return Err(cursor.bad(format!("the key `{key}` occurs twice")));
        }
    }
    let mut tensors = Vec::new(); // grows as they arrive
    for _ in 0..tensor_count {
        tensors.push(read_tensor(&mut cursor)?);
    }
    let alignment = alignment(&metadata)?;
    let data_start = cursor.at().next_multiple_of(alignment);
    Ok(Header { metadata, tensors, alignment, data_start })
}

fn check_version(file: &str, version: u32) -> Result<(), CheckpointError> {
    let found = match version {
        2 | 3 => return Ok(()),
        _ if (2..=3).contains(&version.swap_bytes()) => {
            format!("{}, big-endian", version.swap_bytes())
        }
        _ => version.to_string(),
    };
    Err(CheckpointError::UnsupportedModel {
        file: file.to_owned(),
        what: "GGUF version",
        found,
        supported: "2 and 3, little-endian",
    })
}

fn read_tensor(cursor: &mut Cursor<'_>) -> Result<RawTensor, Stop> {
    let name = cursor.text()?.to_owned();
    if name.is_empty() || name.len() > MAX_NAME {
        let length = name.len();
        return Err(cursor.bad(format!("a tensor's name has {length} bytes, at most {MAX_NAME}")));
    }
    let rank = cursor.u32()?;
    if rank == 0 || rank > MAX_RANK {
        let what = format!("tensor `{name}` has {rank} dimensions, expected 1 to {MAX_RANK}");
        return Err(cursor.bad(what));
    }
    let mut shape = Vec::with_capacity(MAX_RANK as usize);
    for _ in 0..rank {
        shape.push(cursor.u64()?);
    }
    shape.reverse();
    let (type_id, offset) = (cursor.u32()?, cursor.u64()?);
    Ok(RawTensor { name, shape, type_id, offset })
}

fn alignment(metadata: &Metadata) -> Result<u64, CheckpointError> {
    const KEY: &str = "general.alignment";
    const LIMIT: usize = 1 << 20;
    let Some(found) = metadata.size(KEY, LIMIT)? else {
        return Ok(ALIGNMENT);
    };
    if found == 0 || !found.is_multiple_of(8) {
        return Err(metadata.error(KEY, "a multiple of 8", &found.to_string()));
    }
    Ok(found as u64)
}

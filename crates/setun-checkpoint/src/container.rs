//! setun's own container, `.setun`: one file, or several, that hold all of a model.
//!
//! A file begins with a [`Head`] and a JSON [`Manifest`], which the head's SHA-256 protects. The
//! rest are chunks, each with its SHA-256 in the manifest. Joined, their contents are the files
//! and tensors that the manifest lists, in its order and without gaps. So a model is read while
//! it arrives, and any chunk can be fetched and [verified](Manifest::content) for itself.
//!
//! `docs/formats.md` defines the format; [`write`](mod@write) writes it.

mod data_reader;
mod head;
mod header_reader;
mod manifest;
mod migrate;
mod raw;
pub mod write;

pub use head::Head;
pub use header_reader::is_container;
#[cfg(not(target_family = "wasm"))]
pub use manifest::ImageEntry;
pub use manifest::{Chunk, Encoding, FileEntry, Manifest, TensorEntry};
pub use raw::{ContainerFile, Provenance};

pub(crate) use header_reader::ContainerHeaderReader;

use sha2::{Digest, Sha256};

/// Version of the format that is written, and the newest that is read.
pub const VERSION: u16 = 1;

/// Ending of a container's name.
pub const EXTENSION: &str = ".setun";

/// Name of a container in a folder that holds one.
pub const FILE: &str = "model.setun";

/// Most bytes of a chunk's content.
pub const MAX_CHUNK_BYTES: u64 = 16 << 20;

/// Most bytes of content for each byte of a compressed chunk: what does better is stored plain, so
/// that memory is bounded by the bytes that arrive.
pub const MAX_RATIO: u64 = 64;

/// Where a tensor is cut into chunks, each piece but its last is a multiple of this many bytes.
pub const CUT_BYTES: u64 = 8;

/// An image of weights begins at a multiple of this many bytes, as a page of memory does.
pub const IMAGE_ALIGNMENT: u64 = 4096;

type Hash = [u8; 32];

fn sha256(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

fn hex(hash: &Hash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The hash of 64 hexadecimal digits, lower case.
fn from_hex(text: &str) -> Option<Hash> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?));
    bytes.collect::<Option<Vec<_>>>()?.try_into().ok()
}

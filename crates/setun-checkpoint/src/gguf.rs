//! GGUF, the format of llama.cpp and its relatives: versions 2 and 3, one file or several parts.
//!
//! A file is a header (metadata, then names, types and places of tensors) and the tensors. It is
//! read into the same names, configuration and files that a Hugging Face folder has, so that
//! nothing beyond this module knows where a model came from; [`write`](mod@write) is the way back.

mod config;
mod cursor;
pub(crate) mod hadamard;
mod header;
pub(crate) mod header_reader;
mod hybrid;
mod known_keys;
pub(crate) mod metadata;
mod names;
mod places;
mod rope;
mod split;
mod tokenizer;
mod types;
mod vocabulary;
pub mod write;

/// The first bytes of a file.
pub(crate) const MAGIC: &[u8] = b"GGUF";

/// Where tensors start, unless the metadata say otherwise: at multiples of this many bytes.
const ALIGNMENT: u64 = 32;

//! Reads ternary checkpoints: bytes in, named tensors and one configuration out.
//!
//! - Never does any IO. A [`Reader`] says which bytes it [wants](Reader::next_read) next and is
//!   [given](Reader::give) them, so that a file, a download and a test feed it alike.
//! - Everything is checked once, here: sizes, shapes, element types, offsets, scales, codes. A
//!   bad file is one [`CheckpointError`]; it never panics, and memory grows only as bytes arrive.
//! - Conversions turn a [`Tensor`] into what [`setun_ops`] computes with, and back: [`packed`],
//!   [`master`], [`base3`], [`dense`]; [`write`](mod@write) and [`container::write`] make
//!   checkpoints.
//! - This crate knows no model family: which tensors there must be is for its caller to say.

pub mod affine;
pub mod base3;
pub mod blocks;
pub mod config;
pub mod container;
pub mod dense;
pub mod dtype;
pub mod error;
pub mod fake_quantized;
pub mod files;
pub mod generation;
pub mod gguf;
pub mod master;
pub mod outline;
pub mod packed;
pub mod reader;
pub mod scales;
pub mod source;
pub mod tensor;
pub mod tensor_list;
#[cfg(feature = "onnx")]
pub mod tensor_list_writer;
pub mod warning;
pub mod write;

mod format;
mod header;
mod hf;
mod hybrid;
mod index;
mod json;
#[cfg(feature = "onnx")]
mod onnx;
mod paired_rows;
mod pretokenizer;
mod prism;
mod readers;
mod scaled_codes;
mod side_by_side;
mod tensor_assembler;

pub use config::ModelConfig;
pub use dense::{scale, vector};
pub use dtype::Dtype;
pub use error::{CheckpointError, ErrorKind};
pub use files::Files;
pub use generation::GenerationDefaults;
pub use pretokenizer::Pretokenizer;
pub use reader::Reader;
pub use source::{Answer, I2sBlocks, Options, ReadRequest, Source};
pub use tensor::{Tensor, TensorData, TensorInfo};
pub use warning::Warning;

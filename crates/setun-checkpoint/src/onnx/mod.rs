//! Decoders in ONNX files.
//!
//! A graph is not computed as it is: its weights are found by the names that exporters give to
//! operations and initialisers ([`names`]), and are computed by the model that `config.json`
//! beside it says. So each operation that multiplies by a matrix of weights, and each matrix, must
//! be one whose place in the model is known ([`plan`]); anything else is refused by name.

use std::path::Path;

mod data_range;
mod graph;
mod header_reader;
mod initializer;
mod integers;
mod item;
mod messages;
mod names;
mod nbits;
mod plan;
mod scan;
mod wire;

pub(crate) use header_reader::{OnnxHeaderReader, described_config};

/// Whether a file is of this format, from its name or its first bytes: the version of the format,
/// then a text or the graph. A safetensors file begins with a length below 2³² instead.
pub(crate) fn is_onnx(file: &str, bytes: &[u8]) -> bool {
    const LAST_VERSION: u8 = 64;
    const TEXT: u8 = 0x12;
    const GRAPH: u8 = 0x3a;
    let magic = match bytes {
        [8, 1..=LAST_VERSION, TEXT | GRAPH, _, rest @ ..] => rest.iter().any(|&byte| byte != 0),
        _ => false,
    };
    magic || Path::new(file).extension().is_some_and(|extension| extension == "onnx")
}

//! The CUDA C++ of a kernel: constants, parts and its file, one after the other.

use std::fmt::Write as _;

use setun_ops::{CacheElement, op::Activation};
use setun_shaders::cuda_parts as parts;

use super::{ChunkLaunches, Input, Kernel, PeakProducts, Product, SLICE_TOKENS, Table, Tiles};

/// What blocks of the CUDA kernels take together.
pub const CUDA_TILES: Tiles = Tiles {
    outputs: PRODUCT_LANES / LANES_EACH,
    many: Some([64, TILE_ROWS]),
    tokens: HEAD_LANES / HEAD_LANES_EACH,
    heads: 1,
    queries: QUERIES,
    chunks: ChunkLaunches::Always { positions: CHUNK_LANES },
};

/// Rows of a tile (`parts/products_tiles.cuh`).
const TILE_ROWS: u32 = 64;

/// Threads of a block of a product, and of one of its outputs (`parts/products_each.cuh`).
const PRODUCT_LANES: u32 = 128;
const LANES_EACH: u32 = 8;

/// Rows of attention of a block (`parts/attention_whole.cuh`).
const QUERIES: u32 = 4;

/// Threads of a block of attention to a chunk of positions (`parts/attention_chunks.cuh`).
const CHUNK_LANES: u32 = 128;

/// Threads of a block of a head, and of one of its tokens (`head.cu`).
const HEAD_LANES: u32 = 128;
const HEAD_LANES_EACH: u32 = 4;

/// Vectors of packed rows that a lane requests before it has activations: registers hold them,
/// beside those of a wide row.
const MAX_AHEAD: u32 = 10;
const MAX_AHEAD_WIDE: u32 = 6;
const WIDE_WORDS: u32 = 1024;

/// A kernel as CUDA C++.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaSource {
    /// Name of its entry point.
    pub name: &'static str,
    /// The source.
    pub text: String,
    /// Threads of a block.
    pub threads: u32,
}

impl Kernel {
    /// The CUDA C++ of this variant, and how it is launched.
    #[must_use]
    pub fn cuda(self) -> CudaSource {
        let (name, threads) = (self.shader().name, self.threads());
        let mut text = format!("const unsigned LANES = {threads};\n");
        for (name, value) in self.constants() {
            // Writing to a string never fails.
            let _ = writeln!(text, "const unsigned {name} = {value};");
        }
        for part in [parts::DEVICE, parts::STEP].into_iter().chain(self.cuda_parts()) {
            text += part;
        }
        text += self.shader().cuda;
        CudaSource { name, text, threads }
    }

    /// Never chosen by the number of rows, so that results do not depend on it.
    fn threads(self) -> u32 {
        match self {
            Self::Embed(_) | Self::HeadNorm => 64,
            Self::TernaryMatmul(_) | Self::Gate(..) => PRODUCT_LANES,
            Self::Head { .. } => HEAD_LANES,
            Self::RopeAppend(_) => 128,
            Self::RmsNorm | Self::Quantize { .. } | Self::Argmax | Self::Peak(_) => 256,
            Self::Attention { chunks, .. } => {
                if chunks {
                    CHUNK_LANES
                } else {
                    256
                }
            }
            Self::TopLogits => 1024,
            // It has none of these.
            Self::SigmoidGate
            | Self::DenseMatmul(_)
            | Self::Hadamard { .. }
            | Self::DeltaNet(_) => 0,
        }
    }

    fn constants(self) -> Vec<(&'static str, u32)> {
        match self {
            Self::Head { columns, .. } => vec![("COLUMNS", columns)],
            Self::TernaryMatmul(product) => product.cuda_constants(1),
            Self::Gate(_, product) => product.cuda_constants(2),
            // How much a thread requests before it adds: memory answers late.
            Self::Attention { chunks: true, .. } => {
                vec![("QUERIES", 1), ("SIXTEENS_AHEAD", 8), ("VALUES_AHEAD", 32)]
            }
            Self::Attention { chunks: false, .. } => {
                vec![("QUERIES", QUERIES), ("SIXTEENS_AHEAD", 1), ("VALUES_AHEAD", 16)]
            }
            Self::Argmax => vec![("SLICE", SLICE_TOKENS)],
            _ => vec![],
        }
    }

    fn cuda_parts(self) -> Vec<&'static str> {
        match self {
            Self::Embed(table) => vec![table.cuda_part()],
            Self::Head { table, .. } => vec![parts::FOLD, table.cuda_part()],
            Self::RmsNorm | Self::HeadNorm => vec![parts::FOLD, parts::SQUARES, parts::INVERSE_RMS],
            Self::Quantize { grouped } => vec![
                parts::FOLD,
                parts::LANES,
                parts::SQUARES,
                parts::INVERSE_RMS,
                parts::QUANTIZATION,
                if grouped { parts::QUANTIZE_GROUPS } else { parts::QUANTIZE_ROW },
            ],
            Self::TernaryMatmul(product) => product.cuda_parts(),
            Self::RopeAppend(CacheElement::F32) => vec![parts::STORE_F32],
            Self::RopeAppend(CacheElement::F16) => vec![parts::STORE_F16],
            Self::RopeAppend(CacheElement::Int8) => vec![parts::LANES, parts::STORE_INT8],
            Self::Attention { element, chunks } => {
                let cache = match element {
                    CacheElement::F32 => parts::CACHE_F32,
                    CacheElement::F16 => parts::CACHE_F16,
                    CacheElement::Int8 => parts::CACHE_INT8,
                };
                let positions =
                    if chunks { parts::ATTENTION_CHUNKS } else { parts::ATTENTION_WHOLE };
                vec![parts::FOLD, parts::EXP, cache, parts::ATTENTION_SPANS, positions]
            }
            Self::Gate(activation, product) => {
                let mut all = product.cuda_parts();
                match activation {
                    Activation::ReluSquared => all.push(parts::RELU_SQUARED),
                    Activation::Silu => all.extend([parts::EXP, parts::SILU]),
                }
                all
            }
            Self::TopLogits | Self::Argmax => vec![parts::LANES],
            Self::SigmoidGate
            | Self::DenseMatmul(_)
            | Self::Hadamard { .. }
            | Self::DeltaNet(_) => vec![],
            Self::Peak(PeakProducts::Dots) => vec![parts::PEAK_DOTS],
            Self::Peak(PeakProducts::Tiles) => vec![parts::MMA, parts::PEAK_TILES],
        }
    }
}

impl Product {
    fn cuda_constants(self, matrices: u32) -> Vec<(&'static str, u32)> {
        match self.input {
            Input::Tiles => vec![("COLUMNS", TILE_ROWS)],
            // Registers hold sums of several rows instead.
            Input::Codes { columns } => {
                vec![("COLUMNS", columns), ("AHEAD", if columns > 2 { 1 } else { 4 })]
            }
            Input::Floats { words } => {
                // A packed row has a vector for 16 words of codes.
                let max_ahead = if words >= WIDE_WORDS { MAX_AHEAD_WIDE } else { MAX_AHEAD };
                let ahead = (words / 16).div_ceil(LANES_EACH).min(max_ahead / matrices);
                vec![("COLUMNS", 1), ("WORDS", words), ("AHEAD", ahead)]
            }
        }
    }

    fn cuda_parts(self) -> Vec<&'static str> {
        let input = match self.input {
            Input::Tiles | Input::Codes { .. } => vec![parts::INPUT_CODES],
            Input::Floats { .. } => vec![
                parts::FOLD,
                parts::LANES,
                parts::SQUARES,
                parts::QUANTIZATION,
                parts::INPUT_FLOATS,
            ],
        };
        let products = match (self.input, self.grouped) {
            (Input::Tiles, _) => [parts::MMA, parts::PRODUCTS_TILES],
            (_, true) => [parts::PRODUCTS_EACH, parts::PRODUCTS_GROUPED],
            (_, false) => [parts::PRODUCTS_EACH, parts::PRODUCTS_WHOLE],
        };
        [parts::LINEAR].into_iter().chain(input).chain(products).collect()
    }
}

impl Table {
    fn cuda_part(self) -> &'static str {
        match self {
            Self::F32 => parts::TABLE_F32,
            Self::F16 => parts::TABLE_F16,
            Self::Bf16 => parts::TABLE_BF16,
            Self::Int8 => parts::TABLE_INT8,
        }
    }
}

//! Kernels: a shader, the parts of one variant of it, and how it uses its arguments.

mod cuda;
mod wgsl;

pub use cuda::{CUDA_TILES, CudaSource};
use setun_ops::{CacheElement, HAS_RECURRENT, op::Activation};
use setun_shaders::{self as shaders, Shader};
pub use wgsl::{Dot, Language, MIN_SUBGROUP, Reduction};

/// A compiled thing of its own: one variant of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// See [`setun_ops::embed`].
    Embed(Table),
    /// See [`setun_ops::rms_norm`].
    RmsNorm,
    /// See [`setun_ops::quantize`].
    Quantize {
        /// Whether a row has a scale for each group of columns.
        grouped: bool,
    },
    /// See [`setun_ops::ternary_matmul`].
    TernaryMatmul(Product),
    /// See [`setun_ops::head_norm`].
    HeadNorm,
    /// See [`setun_ops::rope_append`].
    RopeAppend(CacheElement),
    /// See [`setun_ops::attention`].
    Attention {
        /// Element type of the cache.
        element: CacheElement,
        /// Whether the positions of a row are shared out in [chunks](ChunkLaunches::Always).
        chunks: bool,
    },
    /// See [`setun_ops::gate`].
    Gate(Activation, Product),
    /// See [`setun_ops::head`].
    Head {
        /// Its table.
        table: Table,
        /// Rows that a workgroup takes together.
        columns: u32,
    },
    /// See [`setun_ops::top_logits`].
    TopLogits,
    /// See [`setun_ops::argmax`].
    Argmax,
    /// See [`setun_ops::sigmoid_gate`].
    SigmoidGate,
    /// See [`setun_ops::dense_matmul`].
    DenseMatmul(Table),
    /// See [`setun_ops::hadamard`].
    Hadamard {
        /// Columns of a block.
        block: u32,
    },
    /// See [`setun_ops::delta_net`].
    DeltaNet(DeltaNetPart),
    /// Products alone, of which a device's peak is measured: `src/peak.rs`.
    Peak(PeakProducts),
}

/// A launch of a delta net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaNetPart {
    /// The recurrence, whose states are written.
    Rule {
        /// Width of a head of keys.
        key_dim: u32,
    },
    /// Norm and gate of its result, and the history of the states.
    Output,
}

/// The products that a device's peak is measured of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeakProducts {
    /// Of four bytes each.
    Dots,
    /// Of tiles, in CUDA; in WGSL of four bytes each.
    Tiles,
}

/// How products with a packed matrix are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Whether scales, of weights or of activations, are by column group.
    pub grouped: bool,
    /// What comes in.
    pub input: Input,
}

/// What a product takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Codes of many rows: a workgroup takes [`TILE_ROWS`] of them through its own memory.
    Tiles,
    /// Codes of some rows, which a workgroup takes together.
    Codes {
        /// How many: one of [`COLUMNS`].
        columns: u32,
    },
    /// Floats of one row, which each workgroup quantizes for itself.
    Floats {
        /// Words of its codes.
        words: u32,
    },
}

/// Element type of a table in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// `f32`
    F32,
    /// IEEE binary16
    F16,
    /// bfloat16
    Bf16,
    /// int8 codes and one scale a row
    Int8,
}

/// What a kernel does with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it, and may read it.
    Write,
}

/// Row counts that products have a variant for.
pub const COLUMNS: [u32; 4] = [1, 2, 4, 8];

/// Rows of a tile.
pub const TILE_ROWS: u32 = 32;

/// Tokens of a slice, of which a workgroup of `argmax` takes the best.
pub const SLICE_TOKENS: u32 = 2048;

/// Words of the codes of a narrow row.
const MIN_WORDS: u32 = 32;

/// Widest head of keys of a delta net.
pub const MAX_KEY_DIM: u32 = 512;

/// Heads of keys and blocks of rotations that kernels are tested with.
const KEY_DIMS: [u32; 3] = [5, 128, MAX_KEY_DIM];
const BLOCKS: [u32; 3] = [64, 1024, 4096];

const CACHES: [CacheElement; 3] = [CacheElement::F32, CacheElement::F16, CacheElement::Int8];
const TABLES: [Table; 4] = [Table::F32, Table::F16, Table::Bf16, Table::Int8];

impl Kernel {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let inputs = COLUMNS.map(|columns| Input::Codes { columns });
        let inputs = inputs.into_iter().chain([Input::Floats { words: MIN_WORDS }]);
        let products = inputs
            .flat_map(|input| [false, true].map(|grouped| Product { grouped, input }))
            .chain([Product { grouped: false, input: Input::Tiles }])
            .flat_map(|product| {
                let gates = [Activation::ReluSquared, Activation::Silu];
                let gates = gates.map(|activation| Self::Gate(activation, product));
                gates.into_iter().chain([Self::TernaryMatmul(product)])
            });
        let heads = TABLES
            .into_iter()
            .flat_map(|table| COLUMNS.map(|columns| Self::Head { table, columns }));
        let attention = CACHES
            .into_iter()
            .flat_map(|element| [false, true].map(|chunks| Self::Attention { element, chunks }));
        [Self::RmsNorm, Self::HeadNorm, Self::TopLogits, Self::Argmax]
            .into_iter()
            .chain([false, true].map(|grouped| Self::Quantize { grouped }))
            .chain(TABLES.map(Self::Embed))
            .chain(CACHES.map(Self::RopeAppend))
            .chain(attention)
            .chain(products)
            .chain(heads)
            .chain([PeakProducts::Dots, PeakProducts::Tiles].map(Self::Peak))
            .chain(Self::hybrid())
    }

    /// Those of hybrid models; none where a build does not run these.
    fn hybrid() -> impl Iterator<Item = Self> {
        let rules = KEY_DIMS.map(|key_dim| DeltaNetPart::Rule { key_dim });
        let all = [Self::SigmoidGate, Self::DeltaNet(DeltaNetPart::Output)]
            .into_iter()
            .chain(TABLES.map(Self::DenseMatmul))
            .chain(BLOCKS.map(|block| Self::Hadamard { block }))
            .chain(rules.map(Self::DeltaNet));
        all.filter(|_| HAS_RECURRENT)
    }

    /// Whether CUDA has it.
    #[must_use]
    pub fn has_cuda(self) -> bool {
        !self.shader().cuda.is_empty()
    }

    /// The operation's shader.
    #[must_use]
    pub fn shader(self) -> Shader {
        match self {
            Self::Embed(_) => shaders::EMBED,
            Self::RmsNorm => shaders::RMS_NORM,
            Self::Quantize { .. } => shaders::QUANTIZE,
            Self::TernaryMatmul(_) => shaders::TERNARY_MATMUL,
            Self::HeadNorm => shaders::HEAD_NORM,
            Self::RopeAppend(_) => shaders::ROPE_APPEND,
            Self::Attention { .. } => shaders::ATTENTION,
            Self::Gate(..) => shaders::GATE,
            Self::Head { .. } => shaders::HEAD,
            Self::TopLogits => shaders::TOP_LOGITS,
            Self::Argmax => shaders::ARGMAX,
            Self::SigmoidGate => shaders::SIGMOID_GATE,
            Self::DenseMatmul(_) => shaders::DENSE_MATMUL,
            Self::Hadamard { .. } => shaders::HADAMARD,
            Self::DeltaNet(_) => shaders::DELTA_NET,
            Self::Peak(_) => shaders::PEAK,
        }
    }

    /// What it does with each argument that follows its shape and the step's inputs.
    #[must_use]
    pub fn accesses(self) -> &'static [Access] {
        use Access::{Read, Write};
        match self {
            Self::Embed(_) | Self::HeadNorm | Self::SigmoidGate | Self::Hadamard { .. } => {
                &[Read, Write]
            }
            Self::RmsNorm | Self::Quantize { .. } | Self::Head { .. } | Self::DenseMatmul(_) => {
                &[Read, Read, Write]
            }
            Self::DeltaNet(_) => &[Read, Read, Read, Read, Write, Write, Write],
            Self::TernaryMatmul(_) => &[Read, Read, Read, Read, Read, Write],
            Self::Gate(..) => &[Read, Read, Read, Read, Read, Read, Write],
            Self::RopeAppend(_) => &[Read, Write, Write, Write],
            Self::Attention { .. } => &[Read, Read, Read, Write, Write],
            Self::TopLogits | Self::Argmax => &[Write, Write, Write],
            Self::Peak(_) => &[Write],
        }
    }

    /// What it does with the step's inputs: one kernel makes those of the step that follows.
    #[must_use]
    pub fn step_access(self) -> Access {
        if self == Self::Argmax { Access::Write } else { Access::Read }
    }
}

/// What a workgroup of a device's kernels takes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Outputs of a product.
    pub outputs: u32,
    /// Outputs and rows of a product of many rows, where it has a kernel for that.
    pub many: Option<[u32; 2]>,
    /// Tokens of a head.
    pub tokens: u32,
    /// Heads of attention that share keys and values.
    pub heads: usize,
    /// Rows of attention that do, in steps of many rows.
    pub queries: u32,
    /// How attention of few rows is shared out in chunks of positions.
    pub chunks: ChunkLaunches,
}

/// Launches of attention of few rows, whose positions are shared out in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkLaunches {
    /// One, or two in steps of several [chunks](crate::launch::CHUNK_POSITIONS).
    ByStep,
    /// Three in every step: scores, sums of spans, and the sums of these in their one order.
    Always {
        /// Least positions of a chunk.
        positions: u32,
    },
}

impl Default for Tiles {
    /// Those of the WGSL kernels.
    fn default() -> Self {
        Self {
            outputs: 32,
            many: Some([32, TILE_ROWS]),
            tokens: 32,
            heads: 4,
            queries: 1,
            chunks: ChunkLaunches::ByStep,
        }
    }
}

#[cfg(test)]
mod tests;

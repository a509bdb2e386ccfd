//! Kernels: a shader, the parts of one variant of it, and how it uses its arguments.

use setun_ops::{CacheElement, op::Activation};
use setun_shaders::{self as shaders, Shader, parts};

/// A compiled thing of its own: one variant of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// See [`setun_ops::embed`].
    Embed(Table),
    /// See [`setun_ops::rms_norm`].
    RmsNorm,
    /// See [`setun_ops::quantize`].
    Quantize,
    /// See [`setun_ops::ternary_matmul`].
    TernaryMatmul(Product),
    /// See [`setun_ops::head_norm`].
    HeadNorm,
    /// See [`setun_ops::rope_append`].
    RopeAppend(CacheElement),
    /// See [`setun_ops::attention`].
    Attention(CacheElement),
    /// See [`setun_ops::gate`].
    Gate(Activation, Product),
    /// See [`setun_ops::head`].
    Head {
        /// Its table.
        table: Table,
        /// Rows that a workgroup takes together.
        columns: u32,
    },
    /// See [`setun_ops::best`].
    Best,
}

/// How products with a packed matrix are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Whether scales are by column group.
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

/// How a kernel forms products of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dot {
    /// By the language feature `packed_4x8_integer_dot_product`.
    Packed,
    /// By shifts, where it is missing.
    Shifts,
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

/// Words of the codes of a narrow row.
const LEAST_WORDS: u32 = 32;

const CACHES: [CacheElement; 3] = [CacheElement::F32, CacheElement::F16, CacheElement::Int8];
const TABLES: [Table; 4] = [Table::F32, Table::F16, Table::Bf16, Table::Int8];

impl Kernel {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let inputs = COLUMNS.map(|columns| Input::Codes { columns });
        let inputs = inputs.into_iter().chain([Input::Floats { words: LEAST_WORDS }]);
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
        [Self::RmsNorm, Self::Quantize, Self::HeadNorm, Self::Best]
            .into_iter()
            .chain(TABLES.map(Self::Embed))
            .chain(CACHES.map(Self::RopeAppend))
            .chain(CACHES.map(Self::Attention))
            .chain(products)
            .chain(heads)
    }

    /// The operation's shader.
    #[must_use]
    pub fn shader(self) -> Shader {
        match self {
            Self::Embed(_) => shaders::EMBED,
            Self::RmsNorm => shaders::RMS_NORM,
            Self::Quantize => shaders::QUANTIZE,
            Self::TernaryMatmul(_) => shaders::TERNARY_MATMUL,
            Self::HeadNorm => shaders::HEAD_NORM,
            Self::RopeAppend(_) => shaders::ROPE_APPEND,
            Self::Attention(_) => shaders::ATTENTION,
            Self::Gate(..) => shaders::GATE,
            Self::Head { .. } => shaders::HEAD,
            Self::Best => shaders::BEST,
        }
    }

    /// What it does with each argument that follows its shape and the step's inputs.
    #[must_use]
    pub fn accesses(self) -> &'static [Access] {
        use Access::{Read, Write};
        match self {
            Self::Embed(_) | Self::HeadNorm => &[Read, Write],
            Self::RmsNorm | Self::Quantize | Self::Head { .. } => &[Read, Read, Write],
            Self::TernaryMatmul(_) => &[Read, Read, Read, Read, Read, Write],
            Self::Gate(..) => &[Read, Read, Read, Read, Read, Read, Write],
            Self::RopeAppend(_) => &[Read, Write, Write, Write],
            Self::Attention(_) => &[Read, Read, Read, Write, Write],
            Self::Best => &[Write, Write, Write],
        }
    }

    /// The WGSL of this variant.
    #[must_use]
    pub fn source(self, dot: Dot) -> String {
        let constants = match self {
            Self::Head { columns, .. } => format!("const COLUMNS: u32 = {columns}u;\n"),
            Self::TernaryMatmul(product) | Self::Gate(_, product) => match product.input {
                Input::Tiles => format!("const COLUMNS: u32 = {TILE_ROWS}u;\n"),
                Input::Codes { columns } => format!("const COLUMNS: u32 = {columns}u;\n"),
                Input::Floats { words } => {
                    format!("const COLUMNS: u32 = 1u;\nconst WORDS: u32 = {words}u;\n")
                }
            },
            _ => String::new(),
        };
        let parts = [parts::STEP].into_iter().chain(self.parts(dot)).chain([self.shader().wgsl]);
        parts.fold(constants, |source, part| source + part)
    }

    fn parts(self, dot: Dot) -> Vec<&'static str> {
        match self {
            Self::Embed(table) | Self::Head { table, .. } => table.parts(),
            Self::RmsNorm => vec![parts::LANES, parts::INVERSE_RMS],
            Self::Quantize => vec![parts::LANES, parts::INVERSE_RMS, parts::QUANTIZE_ROW],
            Self::TernaryMatmul(product) => product.parts(dot),
            Self::HeadNorm | Self::Best => vec![parts::LANES],
            Self::RopeAppend(CacheElement::F32) => vec![parts::STORE_F32],
            Self::RopeAppend(CacheElement::F16) => vec![parts::STORE_F16],
            Self::RopeAppend(CacheElement::Int8) => vec![parts::LANES, parts::STORE_INT8],
            Self::Attention(element) => {
                let mut all = vec![parts::LANES_FOUR, parts::EXP];
                all.extend(match element {
                    CacheElement::F32 => [parts::CACHE_F32, ""],
                    CacheElement::F16 => [parts::CACHE_F16, parts::WIDEN_F16],
                    CacheElement::Int8 => [parts::CACHE_INT8, ""],
                });
                all
            }
            Self::Gate(activation, product) => {
                let mut all = product.parts(dot);
                match activation {
                    Activation::ReluSquared => all.push(parts::RELU_SQUARED),
                    Activation::Silu => all.extend([parts::EXP, parts::SILU]),
                }
                all
            }
        }
    }
}

impl Product {
    fn parts(self, dot: Dot) -> Vec<&'static str> {
        let dot = match dot {
            Dot::Packed => parts::DOT_PACKED,
            Dot::Shifts => parts::DOT_SHIFTS,
        };
        let mut all = vec![parts::LINEAR, dot];
        match (self.input, self.grouped) {
            (Input::Tiles, _) => all.push(parts::PRODUCTS_TILES),
            (_, true) => all.extend([parts::PRODUCTS_EACH, parts::PRODUCTS_GROUPED]),
            (_, false) => all.extend([parts::PRODUCTS_EACH, parts::PRODUCTS_WHOLE]),
        }
        match self.input {
            Input::Tiles | Input::Codes { .. } => all.push(parts::INPUT_CODES),
            Input::Floats { .. } => all.extend([
                parts::LANES,
                parts::INVERSE_RMS,
                parts::QUANTIZE_ROW,
                parts::INPUT_FLOATS,
            ]),
        }
        all
    }
}

impl Table {
    fn parts(self) -> Vec<&'static str> {
        match self {
            Self::F32 => vec![parts::TABLE_F32],
            Self::F16 => vec![parts::WIDEN_F16, parts::TABLE_F16],
            Self::Bf16 => vec![parts::TABLE_BF16],
            Self::Int8 => vec![parts::TABLE_INT8],
        }
    }
}

#[cfg(test)]
mod tests;

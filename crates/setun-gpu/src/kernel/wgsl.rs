//! The WGSL of a kernel: constants, parts and its shader, one after the other.

use setun_ops::{CacheElement, op::Activation};
use setun_shaders::parts;

use super::{Access, DeltaNetPart, Input, Kernel, Product, SLICE_TOKENS, TILE_ROWS, Table};

/// How a kernel forms products of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dot {
    /// By the language feature `packed_4x8_integer_dot_product`.
    Packed,
    /// By shifts, where it is missing.
    Shifts,
}

/// How lanes agree on totals and on what is greatest, whose order changes no bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Through the workgroup's memory.
    Shared,
    /// By subgroups of at least [`MIN_SUBGROUP`] lanes.
    Subgroup,
}

/// The WGSL that a device takes, beyond what all do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Language {
    /// How products of four are formed.
    pub dot: Dot,
    /// How lanes agree.
    pub reduction: Reduction,
}

impl Language {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        [Reduction::Shared, Reduction::Subgroup]
            .into_iter()
            .flat_map(|reduction| [Dot::Packed, Dot::Shifts].map(|dot| Self { dot, reduction }))
    }
}

/// Least lanes of a subgroup that kernels are built on: `wgsl/parts/subgroup.wgsl` says how.
pub const MIN_SUBGROUP: u32 = 8;

impl Kernel {
    /// The WGSL of this variant, as `naga` takes it.
    #[must_use]
    pub fn source(self, language: Language) -> String {
        let constants = match self {
            Self::Head { columns, .. } => format!("const COLUMNS: u32 = {columns}u;\n"),
            Self::TernaryMatmul(product) | Self::Gate(_, product) => match product.input {
                Input::Tiles => format!("const COLUMNS: u32 = {TILE_ROWS}u;\n"),
                Input::Codes { columns } => format!("const COLUMNS: u32 = {columns}u;\n"),
                Input::Floats { words } => {
                    format!("const COLUMNS: u32 = 1u;\nconst WORDS: u32 = {words}u;\n")
                }
            },
            Self::Argmax => format!("const SLICE: u32 = {SLICE_TOKENS}u;\n"),
            Self::Hadamard { block } => format!("const BLOCK: u32 = {block}u;\n"),
            Self::DeltaNet(DeltaNetPart::Rule { key_dim }) => {
                format!("const KEY_DIM: u32 = {key_dim}u;\n")
            }
            _ => String::new(),
        };
        let access = match self.step_access() {
            Access::Read => "read",
            Access::Write => "read_write",
        };
        let step = format!("@group(0) @binding(1) var<storage, {access}> step: array<u32>;\n");
        let constants = constants + &step;
        let own = self.parts(language).into_iter();
        let parts = [parts::STEP].into_iter().chain(own).chain([self.shader().wgsl]);
        parts.fold(constants, |source, part| source + part)
    }

    /// The WGSL of this variant, as the standard has it: what is beyond its core is requested.
    #[must_use]
    pub fn standard_source(self, language: Language) -> String {
        let source = self.source(language);
        match language.reduction {
            Reduction::Subgroup => "enable subgroups;\n".to_owned() + &source,
            Reduction::Shared => source,
        }
    }

    fn parts(self, language: Language) -> Vec<&'static str> {
        let reduction = language.reduction;
        match self {
            Self::Embed(table) | Self::Head { table, .. } => table.parts(),
            Self::RmsNorm => vec![parts::LANES, parts::INVERSE_RMS],
            Self::SigmoidGate => vec![parts::EXP, parts::SIGMOID],
            Self::Hadamard { .. } => vec![],
            Self::DenseMatmul(table) => {
                let mut all = table.parts();
                all.push(parts::LANES_FOUR);
                all
            }
            Self::DeltaNet(part) => part.parts(),
            Self::Quantize { grouped: false } => {
                let mut all = quantizing(reduction);
                all.push(parts::QUANTIZE_WHOLE);
                all
            }
            Self::Quantize { grouped: true } => {
                vec![parts::LANES, parts::INVERSE_RMS, parts::QUANTIZATION, parts::QUANTIZE_GROUPS]
            }
            Self::TernaryMatmul(product) => product.parts(language),
            Self::HeadNorm => vec![parts::LANES],
            Self::Peak(_) => vec![language.dot.part()],
            Self::TopLogits => reduction.over_lanes(),
            // Lanes agree several times, with nothing to wait for between two.
            Self::Argmax => vec![parts::LANES_WORDS_SHARED],
            Self::RopeAppend(CacheElement::F32) => vec![parts::STORE_F32],
            Self::RopeAppend(CacheElement::F16) => vec![parts::STORE_F16],
            // Each head reduces again, with nothing to wait for between two.
            Self::RopeAppend(CacheElement::Int8) => {
                vec![parts::LANES_WORDS_SHARED, parts::STORE_INT8]
            }
            Self::Attention { element, .. } => {
                let mut all = vec![parts::LANES_FOUR, parts::EXP];
                all.extend(match reduction {
                    Reduction::Shared => vec![parts::GREATEST_FOUR_SHARED],
                    Reduction::Subgroup => vec![parts::SUBGROUP, parts::GREATEST_FOUR_SUBGROUP],
                });
                all.extend(match element {
                    CacheElement::F32 => [parts::CACHE_F32, ""],
                    CacheElement::F16 => [parts::CACHE_F16, parts::WIDEN_F16],
                    CacheElement::Int8 => [parts::CACHE_INT8, ""],
                });
                all
            }
            Self::Gate(activation, product) => {
                let mut all = product.parts(language);
                match activation {
                    Activation::ReluSquared => all.push(parts::RELU_SQUARED),
                    Activation::Silu => all.extend([parts::EXP, parts::SILU]),
                }
                all
            }
        }
    }
}

impl DeltaNetPart {
    fn parts(self) -> Vec<&'static str> {
        let mut all = vec![parts::STEP_STATES, parts::EXP, parts::SILU];
        all.extend(match self {
            Self::Rule { .. } => {
                vec![parts::LANES_FOUR, parts::SIGMOID, parts::SOFTPLUS, parts::DELTA_NET_RULE]
            }
            Self::Output => vec![parts::LANES, parts::DELTA_NET_OUTPUT],
        });
        all
    }
}

impl Dot {
    fn part(self) -> &'static str {
        match self {
            Self::Packed => parts::DOT_PACKED,
            Self::Shifts => parts::DOT_SHIFTS,
        }
    }
}

impl Reduction {
    fn over_lanes(self) -> Vec<&'static str> {
        match self {
            Self::Shared => vec![parts::LANES_WORDS_SHARED],
            Self::Subgroup => vec![parts::SUBGROUP, parts::LANES_WORDS_SUBGROUP],
        }
    }
}

/// Parts of a kernel that quantize a row with one scale.
fn quantizing(reduction: Reduction) -> Vec<&'static str> {
    let mut all = reduction.over_lanes();
    all.extend([parts::LANES, parts::INVERSE_RMS, parts::QUANTIZATION, parts::QUANTIZE_ROW]);
    all
}

impl Product {
    fn parts(self, language: Language) -> Vec<&'static str> {
        let mut all = vec![parts::LINEAR, language.dot.part()];
        all.extend(match (self.input, self.grouped, language.reduction) {
            (Input::Tiles, ..) => vec![parts::PRODUCTS_TILES],
            // A group's scale is a float: products of groups are added up in one order.
            (_, true, _) => {
                vec![parts::PRODUCTS_EACH, parts::TOTALS_SHARED, parts::PRODUCTS_GROUPED]
            }
            (_, false, Reduction::Shared) => {
                vec![parts::PRODUCTS_EACH, parts::TOTALS_SHARED, parts::PRODUCTS_WHOLE]
            }
            (Input::Codes { .. }, false, Reduction::Subgroup) => vec![
                parts::SUBGROUP,
                parts::PRODUCTS_EACH,
                parts::TOTALS_SUBGROUP,
                parts::PRODUCTS_WHOLE,
            ],
            // Its activations bring the part of subgroups.
            (Input::Floats { .. }, false, Reduction::Subgroup) => {
                vec![parts::PRODUCTS_EACH, parts::TOTALS_SUBGROUP, parts::PRODUCTS_WHOLE]
            }
        });
        match self.input {
            Input::Tiles | Input::Codes { .. } => all.push(parts::INPUT_CODES),
            Input::Floats { .. } => {
                all.extend(quantizing(language.reduction));
                all.push(parts::INPUT_FLOATS);
            }
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

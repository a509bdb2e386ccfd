//! GPU sources of setun, one file an operation, as constants.
//!
//! A shader has the name of its operation and names its counterpart, the scalar definition in
//! `setun-ops`. What differs between variants of one shader, and what several share, are parts:
//! a kernel's source is its constants, its parts and its shader, one after the other. This crate
//! calls no GPU: it carries the sources.

/// The sources of an operation: WGSL with an entry point `main`, CUDA C++ with one of the operation's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shader {
    /// Name of the operation.
    pub name: &'static str,
    /// The WGSL source.
    pub wgsl: &'static str,
    /// The CUDA source.
    pub cuda: &'static str,
}

macro_rules! shaders {
    ($($constant:ident = $name:literal;)+) => {
        $(
            #[doc = concat!("The operation `", $name, "`.")]
            pub const $constant: Shader = Shader {
                name: $name,
                wgsl: include_str!(concat!("../wgsl/", $name, ".wgsl")),
                cuda: include_str!(concat!("../cuda/", $name, ".cu")),
            };
        )+

        /// All shaders.
        pub const ALL: &[Shader] = &[$($constant),+];
    };
}

shaders! {
    EMBED = "embed";
    RMS_NORM = "rms_norm";
    QUANTIZE = "quantize";
    TERNARY_MATMUL = "ternary_matmul";
    HEAD_NORM = "head_norm";
    ROPE_APPEND = "rope_append";
    ATTENTION = "attention";
    GATE = "gate";
    HEAD = "head";
    TOP_LOGITS = "top_logits";
    ARGMAX = "argmax";
    PEAK = "peak";
}

macro_rules! parts {
    ($folder:literal, $end:literal; $($constant:ident = $name:literal;)+) => {
        $(
            #[doc = concat!("`", $folder, $name, $end, "`")]
            pub const $constant: &str = include_str!(concat!("../", $folder, $name, $end));
        )+
    };
}

/// WGSL functions that shaders are put together with.
pub mod parts {
    parts! {
        "wgsl/parts/", ".wgsl";
        STEP = "step";
        SUBGROUP = "subgroup";
        LANES = "lanes";
        LANES_WORDS_SHARED = "lanes_words_shared";
        LANES_WORDS_SUBGROUP = "lanes_words_subgroup";
        LANES_FOUR = "lanes_four";
        GREATEST_FOUR_SHARED = "greatest_four_shared";
        GREATEST_FOUR_SUBGROUP = "greatest_four_subgroup";
        EXP = "exp";
        WIDEN_F16 = "widen_f16";
        INVERSE_RMS = "inverse_rms";
        DOT_PACKED = "dot_packed";
        DOT_SHIFTS = "dot_shifts";
        LINEAR = "linear";
        QUANTIZATION = "quantization";
        QUANTIZE_ROW = "quantize_row";
        QUANTIZE_WHOLE = "quantize_whole";
        QUANTIZE_GROUPS = "quantize_groups";
        INPUT_CODES = "input_codes";
        INPUT_FLOATS = "input_floats";
        PRODUCTS_EACH = "products_each";
        TOTALS_SHARED = "totals_shared";
        TOTALS_SUBGROUP = "totals_subgroup";
        PRODUCTS_WHOLE = "products_whole";
        PRODUCTS_GROUPED = "products_grouped";
        PRODUCTS_TILES = "products_tiles";
        RELU_SQUARED = "relu_squared";
        SILU = "silu";
        TABLE_F32 = "table_f32";
        TABLE_F16 = "table_f16";
        TABLE_BF16 = "table_bf16";
        TABLE_INT8 = "table_int8";
        CACHE_F32 = "cache_f32";
        CACHE_F16 = "cache_f16";
        CACHE_INT8 = "cache_int8";
        STORE_F32 = "store_f32";
        STORE_F16 = "store_f16";
        STORE_INT8 = "store_int8";
    }
}

/// CUDA functions that kernels are put together with.
pub mod cuda_parts {
    parts! {
        "cuda/parts/", ".cuh";
        DEVICE = "device";
        STEP = "step";
        ATTENTION_SPANS = "attention_spans";
        ATTENTION_WHOLE = "attention_whole";
        ATTENTION_CHUNKS = "attention_chunks";
        PEAK_DOTS = "peak_dots";
        PEAK_TILES = "peak_tiles";
        FOLD = "fold";
        LANES = "lanes";
        EXP = "exp";
        SQUARES = "squares";
        INVERSE_RMS = "inverse_rms";
        LINEAR = "linear";
        QUANTIZATION = "quantization";
        QUANTIZE_ROW = "quantize_row";
        QUANTIZE_GROUPS = "quantize_groups";
        INPUT_CODES = "input_codes";
        INPUT_FLOATS = "input_floats";
        MMA = "mma";
        PRODUCTS_EACH = "products_each";
        PRODUCTS_WHOLE = "products_whole";
        PRODUCTS_GROUPED = "products_grouped";
        PRODUCTS_TILES = "products_tiles";
        RELU_SQUARED = "relu_squared";
        SILU = "silu";
        TABLE_F32 = "table_f32";
        TABLE_F16 = "table_f16";
        TABLE_BF16 = "table_bf16";
        TABLE_INT8 = "table_int8";
        CACHE_F32 = "cache_f32";
        CACHE_F16 = "cache_f16";
        CACHE_INT8 = "cache_int8";
        STORE_F32 = "store_f32";
        STORE_F16 = "store_f16";
        STORE_INT8 = "store_int8";
    }
}

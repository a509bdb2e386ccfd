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
    /// The CUDA source; empty of an operation that CUDA does not have.
    pub cuda: &'static str,
}

macro_rules! shaders {
    ($($constant:ident = $name:literal, $wgsl:ident, $cuda:ident;)+) => {
        $(
            #[doc = concat!("The operation `", $name, "`.")]
            pub const $constant: Shader = Shader {
                name: $name,
                wgsl: $wgsl!("../wgsl/", $name, ".wgsl"),
                cuda: $cuda!("../cuda/", $name, ".cu"),
            };
        )+

        /// All shaders.
        pub const ALL: &[Shader] = &[$($constant),+];
    };
}

/// A source that each build has.
macro_rules! source {
    ($($path:literal),+) => {
        include_str!(concat!($($path),+))
    };
}

/// A source of hybrid models, which builds for pages do not run.
macro_rules! hybrid_source {
    ($($path:literal),+) => {
        if cfg!(target_family = "wasm") { "" } else { source!($($path),+) }
    };
}

/// A source that is not there.
macro_rules! no_source {
    ($($path:literal),+) => {
        ""
    };
}

shaders! {
    EMBED = "embed", source, source;
    RMS_NORM = "rms_norm", source, source;
    QUANTIZE = "quantize", source, source;
    TERNARY_MATMUL = "ternary_matmul", source, source;
    HEAD_NORM = "head_norm", source, source;
    ROPE_APPEND = "rope_append", source, source;
    ATTENTION = "attention", source, source;
    GATE = "gate", source, source;
    HEAD = "head", source, source;
    TOP_LOGITS = "top_logits", source, source;
    ARGMAX = "argmax", source, source;
    PEAK = "peak", source, source;
    SIGMOID_GATE = "sigmoid_gate", hybrid_source, no_source;
    DELTA_NET = "delta_net", hybrid_source, no_source;
    DENSE_MATMUL = "dense_matmul", hybrid_source, no_source;
    HADAMARD = "hadamard", hybrid_source, no_source;
}

macro_rules! parts {
    ($source:ident, $folder:literal, $end:literal; $($constant:ident = $name:literal;)+) => {
        $(
            #[doc = concat!("`", $folder, $name, $end, "`")]
            pub const $constant: &str = $source!("../", $folder, $name, $end);
        )+
    };
}

/// WGSL functions that shaders are put together with.
pub mod parts {
    parts! {
        hybrid_source, "wgsl/parts/", ".wgsl";
        STEP_STATES = "step_states";
        SIGMOID = "sigmoid";
        SOFTPLUS = "softplus";
        DELTA_NET_RULE = "delta_net_rule";
        DELTA_NET_OUTPUT = "delta_net_output";
    }

    parts! {
        source, "wgsl/parts/", ".wgsl";
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
        source, "cuda/parts/", ".cuh";
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

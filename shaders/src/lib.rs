//! GPU sources of setun, one file an operation, as constants.
//!
//! A shader has the name of its operation and names its twin, the scalar definition in
//! `setun-ops`. This crate calls no GPU: it carries the sources. `tests/tests/shaders.rs`
//! parses and validates them and compares their constants with those of the packed layout.

/// A WGSL source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shader {
    /// Name of the operation.
    pub name: &'static str,
    /// The source.
    pub wgsl: &'static str,
}

/// `ternary_matmul`: one linear layer over quantized rows.
pub const TERNARY_MATMUL: Shader =
    Shader { name: "ternary_matmul", wgsl: include_str!("../wgsl/ternary_matmul.wgsl") };

/// `rms_norm`: root-mean-square norm of each row.
pub const RMS_NORM: Shader =
    Shader { name: "rms_norm", wgsl: include_str!("../wgsl/rms_norm.wgsl") };

/// All shaders.
pub const ALL: [Shader; 2] = [TERNARY_MATMUL, RMS_NORM];

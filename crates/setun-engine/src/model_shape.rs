//! Architecture and sizes of a model.

/// Architecture and sizes of a model that was loaded from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelShape {
    /// Architecture, for example `bitnet` or `qwen3`.
    pub architecture: String,
    /// Number of parameters. A tied head counts once.
    pub parameters: u64,
    /// Number of layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width between gate and down.
    pub ffn_size: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
}

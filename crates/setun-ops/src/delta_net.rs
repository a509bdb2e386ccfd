//! `delta_net`: a gated delta net over the recurrent state of each sequence.
//!
//! A row of the input has the columns `[q, k, v, z, b, a]`: queries and keys of `key_heads`, values and
//! `z` of `value_heads`, and two numbers for each value head. For each row of a sequence, in order:
//!
//! ```text
//! c        = silu(causal_conv(q, k, v))                           each channel by itself
//! q        = l2_norm(c's q) × (1 / sqrt(key_dim)),  k = l2_norm(c's k),  v = c's v
//! β        = sigmoid(b),  λ = exp(decay × softplus(a + dt_bias))  each value head
//! S, o     = delta_rule(S, q, k, v, λ, β)                         each value head
//! out      = (rms_norm(o) × gain) × silu(z)                       each value head
//! ```
//!
//! `S` is `[key_dim, value_dim]`, all zero before the first row. The recurrence is that of Yang et al., Gated Delta
//! Networks (2024); layout and epsilons are those of transformers' Qwen3.5.

/// Shape of a delta net's heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetShape {
    /// Heads of queries and keys.
    pub key_heads: usize,
    /// Heads of values; a multiple of `key_heads`.
    pub value_heads: usize,
    /// Width of a head of queries or keys.
    pub key_dim: usize,
    /// Width of a head of values.
    pub value_dim: usize,
    /// Rows that a channel's convolution sees, the current one among them.
    pub kernel: usize,
    /// Order of the value heads in all weights but the output matrix.
    pub order: HeadOrder,
    /// Order of the value heads in the columns of the output matrix.
    pub output_order: HeadOrder,
}

/// Which value heads share a key head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadOrder {
    /// Value heads of a key head are neighbours: head `h` has key head `h / (value_heads / key_heads)`.
    Grouped,
    /// Key heads alternate: head `h` has key head `h mod key_heads`.
    Tiled,
}

impl DeltaNetShape {
    /// Columns of queries, and of keys: `key_heads × key_dim`.
    #[must_use]
    pub fn key_width(&self) -> usize {
        self.key_heads * self.key_dim
    }

    /// Columns of values, of `z` and of the result: `value_heads × value_dim`.
    #[must_use]
    pub fn value_width(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// Channels of the convolution: the columns of queries, keys and values.
    #[must_use]
    pub fn channels(&self) -> usize {
        2 * self.key_width() + self.value_width()
    }

    /// Columns of a row of the input.
    #[must_use]
    pub fn input_width(&self) -> usize {
        self.channels() + self.value_width() + 2 * self.value_heads
    }
}

//! The operations as data: one variant each, named like its file.

use crate::delta_net_shape::DeltaNetShape;

/// A numbered buffer of a [`Plan`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// A numbered weight of a [`Plan`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId(pub u32);

/// Most of what a plan's [`ArgmaxRequest`](crate::argmax::ArgmaxRequest)s may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArgmaxCapacity {
    /// Touched tokens, those that later steps add included.
    pub touched: usize,
    /// Biases.
    pub biases: usize,
}

/// How far two implementations of an operation may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Not at all, on any device: integer or copied values.
    Exact,
    /// Not at all on CPUs and in WebAssembly; by some units in the last place on a GPU.
    ExactOnCpu {
        /// Bound on a GPU, in units of the last place of the row's largest magnitude.
        gpu_ulp: u32,
    },
}

/// A gain `[width]` and the epsilon of a root-mean-square norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// Gain, a [`WeightSpec::Vector`](crate::WeightSpec::Vector).
    pub gain: WeightId,
    /// Added to the mean of squares.
    pub eps: f32,
}

/// A bias `[rows of the matrix]` and where it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bias {
    /// The bias, a [`WeightSpec::Vector`](crate::WeightSpec::Vector).
    pub weight: WeightId,
    /// True where the bias is scaled together with the product (`autobitlinear`).
    pub before_scale: bool,
}

/// A linear layer over quantized activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Quantized activations `[rows, columns]`.
    pub x: BufferId,
    /// Ternary matrix `[outputs, columns]`.
    pub weight: WeightId,
    /// Bias `[outputs]`.
    pub bias: Option<Bias>,
}

/// The activation of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `relu(g)²`, and the product is +0 wherever the gate is not positive.
    ReluSquared,
    /// `g / (1 + exp(−g))`
    Silu,
}

/// Shape of the attention heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadShape {
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads. KV head `j` serves query heads `j·g .. (j+1)·g`, `g = heads / kv_heads`.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
}

impl HeadShape {
    /// Columns of the queries in a row of Q, K, V: `heads × head_dim`.
    #[must_use]
    pub fn query_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Columns of the keys, and of the values, in a row of Q, K, V: `kv_heads × head_dim`.
    #[must_use]
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Columns of a row of queries, then keys, then values.
    #[must_use]
    pub fn qkv_width(&self) -> usize {
        self.query_width() + 2 * self.kv_width()
    }
}

/// The weights of a [`delta_net`](crate::delta_net) but for its matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeltaNetWeights {
    /// Taps `[kernel × channels]`, those of the current row last.
    pub conv: WeightId,
    /// Factors of the decay `[value_heads]`.
    pub decay: WeightId,
    /// Added before the decay `[value_heads]`.
    pub dt_bias: WeightId,
    /// Norm of a head's result: gain `[value_dim]`.
    pub norm: Norm,
}

/// One operation of a [`Plan`](crate::Plan). `rows` is the step's number of rows, or, for
/// buffers of [`RowSet::Wanted`](crate::plan::RowSet::Wanted), the number of rows whose logits
/// are requested.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// [`embed`](crate::embed): `out[rows, hidden]` = the table's rows of the tokens.
    Embed {
        /// Table `[vocab, hidden]`.
        table: WeightId,
        /// Residual stream.
        out: BufferId,
    },
    /// [`rms_norm`](crate::rms_norm): `out = norm(x)`. Where `out` holds the requested rows only
    /// and `x` holds all, these rows are gathered.
    RmsNorm {
        /// `[rows, width]`
        x: BufferId,
        /// Gain `[width]`.
        norm: Norm,
        /// `[rows, width]`, not `x`.
        out: BufferId,
    },
    /// [`quantize`](crate::quantize): int8 codes of `x`, or of `norm(x)`.
    Quantize {
        /// `[rows, width]`
        x: BufferId,
        /// Applied first, if any.
        norm: Option<Norm>,
        /// Quantized, `[rows, width]`.
        out: BufferId,
    },
    /// [`ternary_matmul`](crate::ternary_matmul): columns `out_column..` of `out` become
    /// `linear(x) + residual`.
    TernaryMatmul {
        /// The layer.
        linear: Linear,
        /// Added last, `[rows, outputs]`; may be `out` itself.
        residual: Option<BufferId>,
        /// `[rows, ≥ out_column + outputs]`
        out: BufferId,
        /// First column written.
        out_column: usize,
    },
    /// [`head_norm`](crate::head_norm): a norm over each head's columns, in place (qk-norm).
    HeadNorm {
        /// `[rows, ≥ column + heads × head_dim]`
        x: BufferId,
        /// First column of the first head.
        column: usize,
        /// Number of heads.
        heads: usize,
        /// Gain `[head_dim]`.
        norm: Norm,
    },
    /// [`rope_append`](crate::rope_append): rotates queries and keys in place by their
    /// positions, and writes keys and values to the cache.
    RopeAppend {
        /// Queries, keys, values in the first columns: `[rows, ≥ shape.qkv_width()]`.
        qkv: BufferId,
        /// Shape of the heads.
        shape: HeadShape,
        /// Table of cosines and sines, for the leading columns of a head.
        rope: WeightId,
        /// Layer of the cache.
        layer: usize,
    },
    /// [`attention`](crate::attention): causal attention of each row over its sequence's cache.
    Attention {
        /// Rotated queries in the first columns, `[rows, ≥ shape.qkv_width()]`.
        qkv: BufferId,
        /// Shape of the heads.
        shape: HeadShape,
        /// Layer of the cache.
        layer: usize,
        /// `[rows, shape.query_width()]`
        out: BufferId,
    },
    /// [`sigmoid_gate`](crate::sigmoid_gate): `x = x × sigmoid(gate)`, in place.
    SigmoidGate {
        /// `[rows, width]`
        x: BufferId,
        /// `[rows, ≥ column + width]`
        gate: BufferId,
        /// First column of the gates.
        column: usize,
    },
    /// [`delta_net`](crate::delta_net): the gated delta rule of each row on its sequence's recurrent state.
    DeltaNet {
        /// `[rows, shape.input_width()]`
        x: BufferId,
        /// Shape of the heads.
        shape: DeltaNetShape,
        /// The weights.
        weights: DeltaNetWeights,
        /// Layer of the recurrent states.
        layer: usize,
        /// `[rows, shape.value_width()]`
        out: BufferId,
    },
    /// [`dense_matmul`](crate::dense_matmul): columns `out_column..` of `out` become `weight × x`.
    DenseMatmul {
        /// `[rows, columns]`
        x: BufferId,
        /// Floats `[outputs, columns]`.
        weight: WeightId,
        /// `[rows, ≥ out_column + outputs]`
        out: BufferId,
        /// First column written.
        out_column: usize,
    },
    /// [`hadamard`](crate::hadamard): rotates each block of columns, in place.
    Hadamard {
        /// `[rows, width]`
        x: BufferId,
        /// Signs `[width]`, if not all are +1.
        signs: Option<WeightId>,
        /// Columns of a block.
        block: usize,
        /// Whether signs follow the rotation.
        is_inverse: bool,
    },
    /// [`gate`](crate::gate): `out[rows, ffn] = activation(gate(x)) × up(x)`.
    Gate {
        /// Gate.
        gate: Linear,
        /// Up.
        up: Linear,
        /// Activation of the gate.
        activation: Activation,
        /// `[rows, ffn]`
        out: BufferId,
    },
    /// [`head`](crate::head): logits.
    Head {
        /// Normed hidden rows, `[rows, hidden]`.
        x: BufferId,
        /// Table `[vocab, hidden]`.
        table: WeightId,
        /// `[rows, vocab]`
        out: BufferId,
    },
    /// [`top_logits`](crate::top_logits): the exact logits of the best tokens, and of those that the step's
    /// [`TopLogitsRequest`](crate::top_logits::TopLogitsRequest)s name.
    TopLogits {
        /// Normed hidden rows, `[rows, hidden]`, of the requested rows.
        x: BufferId,
        /// Table `[vocab, hidden]`.
        table: WeightId,
        /// Tokens with their logits, `[rows, capacity]`.
        out: BufferId,
    },
    /// [`argmax`](crate::argmax): the greedy tokens, as the step's
    /// [`ArgmaxRequest`](crate::argmax::ArgmaxRequest)s say. The last of its plan.
    Argmax {
        /// Normed hidden rows, `[rows, hidden]`, of the requested rows.
        x: BufferId,
        /// Table `[vocab, hidden]`.
        table: WeightId,
        /// What requests may hold.
        room: ArgmaxCapacity,
        /// Tokens, `[rows, 1]`.
        out: BufferId,
    },
}

impl Op {
    /// The operation's one name: that of its file in every crate and shader folder.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embed { .. } => "embed",
            Self::RmsNorm { .. } => "rms_norm",
            Self::Quantize { .. } => "quantize",
            Self::TernaryMatmul { .. } => "ternary_matmul",
            Self::HeadNorm { .. } => "head_norm",
            Self::RopeAppend { .. } => "rope_append",
            Self::Attention { .. } => "attention",
            Self::SigmoidGate { .. } => "sigmoid_gate",
            Self::DeltaNet { .. } => "delta_net",
            Self::DenseMatmul { .. } => "dense_matmul",
            Self::Hadamard { .. } => "hadamard",
            Self::Gate { .. } => "gate",
            Self::Head { .. } => "head",
            Self::TopLogits { .. } => "top_logits",
            Self::Argmax { .. } => "argmax",
        }
    }

    /// Whether it is one of those of hybrid models, with recurrent layers, gates or rotations.
    #[must_use]
    pub fn is_hybrid(&self) -> bool {
        matches!(
            self,
            Self::SigmoidGate { .. }
                | Self::DeltaNet { .. }
                | Self::DenseMatmul { .. }
                | Self::Hadamard { .. }
        )
    }

    /// The linear layers of the operation.
    pub fn linears(&self) -> impl Iterator<Item = &Linear> {
        let (first, second) = match self {
            Self::TernaryMatmul { linear, .. } => (Some(linear), None),
            Self::Gate { gate, up, .. } => (Some(gate), Some(up)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The buffers that the operation reads, and the one that it writes. What works in place
    /// reads and writes the same one.
    #[must_use]
    pub fn accesses(&self) -> ([Option<BufferId>; 2], Option<BufferId>) {
        match self {
            Self::Embed { out, .. } => ([None, None], Some(*out)),
            Self::RmsNorm { x, out, .. }
            | Self::Quantize { x, out, .. }
            | Self::Head { x, out, .. }
            | Self::TopLogits { x, out, .. }
            | Self::Argmax { x, out, .. }
            | Self::DeltaNet { x, out, .. }
            | Self::DenseMatmul { x, out, .. } => ([Some(*x), None], Some(*out)),
            Self::TernaryMatmul { linear, residual, out, .. } => {
                ([Some(linear.x), *residual], Some(*out))
            }
            Self::SigmoidGate { x, gate, .. } => ([Some(*x), Some(*gate)], Some(*x)),
            Self::HeadNorm { x, .. } | Self::Hadamard { x, .. } => ([Some(*x), None], Some(*x)),
            Self::RopeAppend { qkv, .. } => ([Some(*qkv), None], Some(*qkv)),
            Self::Attention { qkv, out, .. } => ([Some(*qkv), None], Some(*out)),
            Self::Gate { gate, up, out, .. } => ([Some(gate.x), Some(up.x)], Some(*out)),
        }
    }
}

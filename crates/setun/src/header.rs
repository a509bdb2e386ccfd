//! Header of a model: all that is known of it before its weights are read.

use std::sync::Arc;

use setun_checkpoint::{CheckpointError, ModelConfig};
use setun_model::{Layout, layout::LayerLayout};
use setun_ops::{
    op::Activation,
    weight::{DenseKind, WeightKind},
};
use setun_text::{ChatTemplate, SamplerOptions, Tokenizer};

use setun_engine::{HeadType, ModelShape};

use crate::error::Error;

/// The tokenizer of a checkpoint, or why it cannot be used: token ids do without it.
pub(crate) type HeaderTokenizer = Result<Option<Arc<dyn Tokenizer>>, Arc<CheckpointError>>;

/// A model but for its weights: configuration, layout, tokenizer and defaults.
#[derive(Clone)]
pub struct ModelHeader {
    pub(crate) name: String,
    pub(crate) config: ModelConfig,
    /// Shapes of all weights, and where each belongs.
    pub(crate) layout: Layout,
    /// Element type and scales of each weight.
    pub(crate) kinds: Vec<WeightKind>,
    pub(crate) total_bytes: u64,
    pub(crate) tokenizer: HeaderTokenizer,
    pub(crate) template: Option<Arc<ChatTemplate>>,
    pub(crate) sampling: SamplerOptions,
}

impl ModelHeader {
    /// The name that the model is reported by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The weights, numbered, and where each is used.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How each weight is stored, in the order of the layout.
    #[must_use]
    pub fn kinds(&self) -> &[WeightKind] {
        &self.kinds
    }

    /// Bytes of all tensors in the files.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The tokenizer, if the model has one.
    ///
    /// # Errors
    ///
    /// If it has one that cannot be used here.
    pub fn tokenizer(&self) -> Result<Option<&Arc<dyn Tokenizer>>, Error> {
        self.tokenizer
            .as_ref()
            .map(Option::as_ref)
            .map_err(|error| Error::Tokenizer(Arc::clone(error)))
    }

    /// The chat template, if the model has one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_deref()
    }

    /// The model's own defaults of sampling.
    #[must_use]
    pub fn sampling_defaults(&self) -> &SamplerOptions {
        &self.sampling
    }

    /// Architecture and sizes.
    #[must_use]
    pub fn shape(&self) -> ModelShape {
        let config = &self.config;
        let architecture = config.architecture.trim_end_matches("ForCausalLM");
        ModelShape {
            architecture: architecture.to_ascii_lowercase(),
            parameters: self.layout.parameters(),
            layers: config.layers.len(),
            hidden_size: config.hidden_size,
            ffn_size: config.ffn_size,
            heads: config.heads,
            kv_heads: config.kv_heads,
        }
    }

    /// Tokens of the tokenizer and end tokens that the vocabulary does not have, in words.
    ///
    /// # Errors
    ///
    /// As [`tokenizer`](Self::tokenizer).
    pub fn vocabulary_warnings(&self) -> Result<Vec<String>, Error> {
        let (mut warnings, vocab) = (vec![], self.config.vocab_size);
        let tokens = self.tokenizer()?.map_or(0, |tokenizer| tokenizer.vocab_size());
        if tokens > vocab {
            warnings.push(format!("the tokenizer has {tokens} tokens, the model only {vocab}"));
        }
        let outside = |token: &&u32| **token as usize >= vocab;
        if let Some(token) = self.config.eos_tokens.iter().find(outside) {
            warnings.push(format!("token {token} ends a text, but the model has only {vocab}"));
        }
        Ok(warnings)
    }

    /// Sets the kind of the head's table to that which is kept: int8 where it is rounded at load.
    pub(crate) fn apply_head(&mut self, head: HeadType) {
        let kind = &mut self.kinds[self.layout.head.0 as usize];
        if head == HeadType::Int8 && matches!(kind, WeightKind::Dense(_)) {
            *kind = WeightKind::Dense(DenseKind::Int8Rows);
        }
    }

    /// Whether a bias is added to a sum that has one scale.
    pub(crate) fn has_bias_before_scale(&self) -> bool {
        let mut linears = self.layout.layers.iter().flat_map(LayerLayout::linears);
        linears.any(|linear| linear.bias.is_some_and(|bias| bias.before_scale))
    }

    /// Whether `down` is kept by columns, so that zeros of its input are passed over. Columns add up
    /// with one scale a row.
    pub(crate) fn has_sparse_inputs(&self) -> bool {
        self.config.activation == Activation::ReluSquared && self.layout.activation_group.is_none()
    }
}

//! A transformer whose weights come one by one, so that no more than one of them is held twice.

use std::collections::BTreeMap;

use setun_checkpoint::ModelConfig;
use setun_ops::{
    Backend, CacheSpec, OpsError, Usage, WeightData, WeightId, WeightSpec, op::Activation,
};

use super::{LEAST_CAPACITY, Transformer, TransformerOptions};
use crate::{error::ModelError, layout::Layout, plan::HeadOutput, step_inputs::StepInputs};

/// Moves weights into a backend as they come, in any order, and makes a [`Transformer`] of them.
pub struct TransformerBuilder<B: Backend> {
    backend: B,
    config: ModelConfig,
    layout: Layout,
    options: TransformerOptions,
    usages: Vec<Usage>,
    weights: Vec<Option<B::Weight>>,
    weight_bytes: Vec<usize>,
}

impl<B: Backend> TransformerBuilder<B> {
    /// Takes weights of this layout from now on.
    ///
    /// # Errors
    ///
    /// If the options ask for a cache that no backend has.
    pub fn new(
        backend: B,
        config: ModelConfig,
        layout: Layout,
        options: TransformerOptions,
    ) -> Result<Self, ModelError> {
        cache_spec(&config, &options).check()?;
        let count = layout.specs.len();
        let mut usages = vec![Usage::General; count];
        if config.activation == Activation::ReluSquared {
            for layer in &layout.layers {
                usages[layer.down.weight.0 as usize] = Usage::SparseInput;
            }
        }
        let (weights, weight_bytes) = (vec![None; count], vec![0; count]);
        Ok(Self { backend, config, layout, options, usages, weights, weight_bytes })
    }

    /// Moves one weight into the backend; one that is there already is replaced.
    ///
    /// # Errors
    ///
    /// If the layout has no such weight or one of another kind or shape, or if the backend
    /// refuses it or has no memory for it.
    pub fn add(&mut self, id: WeightId, weight: WeightData) -> Result<(), ModelError> {
        let index = id.0 as usize;
        let expected = self.layout.specs.get(index).copied();
        let found = weight.spec();
        if expected != Some(found) {
            return Err(wrong_weight(id, expected, found.to_string()).into());
        }
        self.weight_bytes[index] = weight.bytes();
        self.weights[index] = Some(self.backend.upload(weight, self.usages[index])?);
        Ok(())
    }

    /// The transformer, once all weights were added.
    ///
    /// # Errors
    ///
    /// If a weight is missing, or the backend has no memory for the cache or a first step.
    pub fn finish(self) -> Result<Transformer<B>, ModelError> {
        let Self { mut backend, config, layout, options, weights, weight_bytes, .. } = self;
        if let Some(index) = weights.iter().position(Option::is_none) {
            let id = WeightId(u32::try_from(index).unwrap_or(u32::MAX));
            return Err(wrong_weight(id, Some(layout.specs[index]), "none".to_owned()).into());
        }
        let weights = weights.into_iter().flatten().collect();
        let positions = match layout.specs[layout.rope.0 as usize] {
            WeightSpec::Rope { positions, .. } => positions,
            _ => config.context_length,
        };
        let spec = cache_spec(&config, &options);
        let cache = backend.create_cache(&spec, 0)?;
        let mut transformer = Transformer {
            backend,
            config,
            layout,
            weights,
            weight_bytes,
            positions,
            spec,
            cache,
            cache_blocks: 0,
            ranked: options.ranked,
            steps: BTreeMap::new(),
            inputs: StepInputs::default(),
            clock: 0,
            profile: None,
        };
        if options.ranked {
            // What a backend makes of the head's table is part of loading, not of the first step.
            let key = (1, 1, HeadOutput::Best { capacity: LEAST_CAPACITY });
            let step = transformer.prepare(key)?;
            transformer.steps.insert(key, step);
        }
        Ok(transformer)
    }
}

fn cache_spec(config: &ModelConfig, options: &TransformerOptions) -> CacheSpec {
    CacheSpec {
        layers: config.layers,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        block_positions: options.block_positions,
        element: options.cache_element,
    }
}

fn wrong_weight(id: WeightId, expected: Option<WeightSpec>, found: String) -> OpsError {
    let expected = expected.map_or_else(|| "no such weight".to_owned(), |spec| spec.to_string());
    OpsError::Weight { id, expected, found }
}

//! A transformer whose weights come one by one, so that no more than one of them is held twice.

use setun_checkpoint::ModelConfig;
use setun_ops::{Backend, WeightData, WeightId};

use super::Transformer;
use crate::{
    error::ModelError, layer_range::LayerRange, layout::Layout, options::TransformerOptions,
    stage::StageBuilder, step_inputs::StepInputs,
};

/// Moves weights into a backend as they come, in any order, and makes a [`Transformer`] of them.
pub struct TransformerBuilder<B: Backend> {
    stage: StageBuilder<B>,
}

impl<B: Backend> TransformerBuilder<B> {
    /// Takes weights of this layout from now on.
    ///
    /// # Errors
    ///
    /// If the options ask for a cache that no backend has.
    #[expect(clippy::needless_pass_by_value, reason = "a stage keeps what its part needs of it")]
    pub fn new(
        backend: B,
        config: ModelConfig,
        layout: Layout,
        options: TransformerOptions,
    ) -> Result<Self, ModelError> {
        let whole = LayerRange::whole(layout.layers.len());
        Ok(Self { stage: StageBuilder::new(backend, config, &layout, whole, options)? })
    }

    /// Moves one weight into the backend; one that is there already is replaced.
    ///
    /// # Errors
    ///
    /// If the layout has no such weight or one of another kind or shape, or if the backend
    /// refuses it or has no memory for it.
    pub fn add(&mut self, id: WeightId, weight: WeightData) -> Result<(), ModelError> {
        self.stage.add(id, weight)
    }

    /// The transformer, once all weights were added.
    ///
    /// # Errors
    ///
    /// If a weight is missing, or the backend has no memory for the cache or a first step.
    pub fn finish(self) -> Result<Transformer<B>, ModelError> {
        Ok(Transformer { stage: self.stage.finish()?, inputs: StepInputs::default() })
    }
}

//! Stages whose weights come one by one.

use setun_ops::{WeightData, WeightId};

use super::{AnyStage, AnyStageBuilder, Split};
use crate::{error::ModelError, layer_range::LayerRange, stage::wrong_weight};

/// Moves each weight as it comes, in any order, into the backends that need it, and makes a
/// [`Split`] of their stages.
pub struct SplitBuilder {
    stages: Vec<AnyStageBuilder>,
}

impl SplitBuilder {
    /// Takes the weights of these stages, in order, from now on.
    ///
    /// # Errors
    ///
    /// If they are not the parts of one model, all of them and in order.
    pub fn new(stages: Vec<AnyStageBuilder>) -> Result<Self, ModelError> {
        let parts: Vec<LayerRange> = stages.iter().map(|stage| stage.0.part()).collect();
        LayerRange::check(&parts)?;
        Ok(Self { stages })
    }

    /// Moves one weight into each backend that needs it: a tied table into the first and the
    /// last, the angles of positions into all.
    ///
    /// # Errors
    ///
    /// If no stage has such a weight or it is of another kind or shape, or if a backend refuses
    /// it or has no memory for it.
    pub fn add(&mut self, id: WeightId, weight: WeightData) -> Result<(), ModelError> {
        let mut stages = self.stages.iter_mut().filter(|stage| stage.0.needs(id)).peekable();
        if stages.peek().is_none() {
            return Err(wrong_weight(id, None, weight.spec().to_string()).into());
        }
        while let Some(stage) = stages.next() {
            if stages.peek().is_none() {
                return stage.0.add(id, weight);
            }
            stage.0.add(id, weight.clone())?;
        }
        Ok(())
    }

    /// The stages, once all weights were added.
    ///
    /// # Errors
    ///
    /// If a weight is missing, or a backend has no memory for the cache or a first step.
    pub fn finish_stages(self) -> Result<Vec<AnyStage>, ModelError> {
        self.stages.into_iter().map(|stage| stage.0.finish()).collect()
    }

    /// The model, once all weights were added.
    ///
    /// # Errors
    ///
    /// As [`finish_stages`](Self::finish_stages) and [`Split::new`].
    pub fn finish(self) -> Result<Split, ModelError> {
        Split::new(self.finish_stages()?)
    }
}

//! Steps in which the backend chooses greedy tokens.

use setun_ops::{Backend, OpsError, argmax::NONE, op::ArgmaxCapacity};

use super::Transformer;
use crate::{batch::Batch, cache::PagedCache, error::ModelError, plan::HeadOutput, stage::room};

impl<B: Backend> Transformer<B> {
    /// See [`Model::run_multi_step`](crate::Model::run_multi_step).
    pub(super) async fn multi_step(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        steps: usize,
        tokens: &mut Vec<u32>,
    ) -> Result<(), ModelError> {
        self.start(batch, cache, steps)?;
        let inputs = &mut self.inputs.inputs;
        inputs.top_logits.clear();
        let (expected, found) = (inputs.wanted.len(), inputs.argmax.len());
        if found != expected {
            return Err(OpsError::Inputs { what: "rows that choose", expected, found }.into());
        }
        let rooms = inputs.argmax.iter().map(|request| request.room(steps));
        let touched = rooms.clone().map(|room| room.touched).max().unwrap_or(0);
        let biases = rooms.map(|room| room.biases).max().unwrap_or(0);
        let biases = if biases == 0 { 0 } else { room(biases) };
        let room = ArgmaxCapacity { touched: room(touched), biases };
        let inputs = &self.inputs.inputs;
        let step = self.stage.run(inputs, HeadOutput::Argmax { room }, &[], steps)?;
        self.stage.finish(step, inputs).await?;
        tokens.clear();
        tokens.resize(steps * expected, NONE);
        self.stage.read(step, steps * expected, bytemuck::cast_slice_mut(tokens)).await
    }
}

//! Steps in which the backend chooses greedy tokens.

use setun_ops::{
    Backend, OpsError,
    choose::{ChooseRoom, NONE},
};

use super::Transformer;
use crate::{batch::Batch, cache::PagedCache, error::ModelError, plan::HeadOutput, stage::room};

impl<B: Backend> Transformer<B> {
    /// See [`Model::choose`](crate::Model::choose).
    pub(super) async fn choose_following(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        steps: usize,
        tokens: &mut Vec<u32>,
    ) -> Result<(), ModelError> {
        self.start(batch, cache, steps)?;
        let inputs = &mut self.inputs.inputs;
        inputs.top_logits.clear();
        let (expected, found) = (inputs.wanted.len(), inputs.choose.len());
        if found != expected {
            return Err(OpsError::Inputs { what: "rows that choose", expected, found }.into());
        }
        let rooms = inputs.choose.iter().map(|request| request.room(steps));
        let touched = rooms.clone().map(|room| room.touched).max().unwrap_or(0);
        let biases = rooms.map(|room| room.biases).max().unwrap_or(0);
        let biases = if biases == 0 { 0 } else { room(biases) };
        let room = ChooseRoom { touched: room(touched), biases };
        let inputs = &self.inputs.inputs;
        let step = self.stage.run(inputs, HeadOutput::Choose { room }, &[], steps)?;
        tokens.clear();
        tokens.resize(steps * expected, NONE);
        self.stage.read(step, steps * expected, bytemuck::cast_slice_mut(tokens)).await
    }
}

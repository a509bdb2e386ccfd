//! Steps that follow each other on a device against the same steps one by one.

use super::{
    Case, Random,
    compare::{Disagreement, Running, compare_cache, words},
    model, to_u32,
};
use crate::{Backend, BufferId, OpsError, op::Op};

impl Case {
    /// A small model and the first of `steps` steps that follow each other, of some sequences
    /// at different positions.
    ///
    /// # Panics
    ///
    /// Never: the model's plan ends in a choice.
    #[must_use]
    pub fn multi_step(seed: u64, steps: usize) -> Self {
        let mut random = Random::new(seed);
        let mut case = model::model(&mut random);
        let (vocab, mut room) = case.plan.argmax_limits().expect("a choice");
        room.touched = room.touched.saturating_sub(steps - 1);
        let mut inputs = std::mem::take(&mut case.steps[0]);
        let rows = inputs.block_tables.len().min(case.plan.rows()).min(case.plan.wanted());
        inputs.tokens = (0..rows).map(|_| to_u32(random.below(vocab))).collect();
        inputs.positions = (0..rows).map(|_| to_u32(random.below(150))).collect();
        inputs.slots = (0..rows).map(to_u32).collect();
        inputs.wanted = (0..rows).map(to_u32).collect();
        inputs
            .top_logits
            .resize_with(rows, || crate::top_logits::TopLogitsRequest { k: 1, ..<_>::default() });
        inputs.argmax = super::argmax::choices(&mut random, rows, vocab, room);
        for request in &mut inputs.argmax {
            if room.touched == 0 {
                request.penalty = 1.0;
            }
        }
        case.steps = vec![inputs];
        case
    }

    /// Runs `steps` steps, the first being the case's last, without the host between, and one by
    /// one; both must give the same tokens and leave the same cache.
    ///
    /// # Errors
    ///
    /// The first difference, or the first call that failed.
    pub async fn compare_multi_step<B: Backend>(
        &self,
        backend: &mut B,
        steps: usize,
    ) -> Result<(), Disagreement> {
        let (Some(Op::Argmax { out, .. }), Some(inputs)) =
            (self.plan.ops().last(), self.steps.last())
        else {
            return Ok(());
        };
        let (mut inputs, rows) = (inputs.clone(), inputs.rows());
        let mut apart = Running::start(self, backend)?;
        let mut expected = vec![];
        for _ in 0..steps {
            apart.run(&inputs)?;
            let chosen = apart.tokens(*out, rows).await?;
            inputs.advance(&chosen);
            expected.extend(chosen);
        }
        let expected_cache = apart.cache(self).await?;
        drop(apart);

        let first = &self.steps[self.steps.len() - 1];
        let mut together = Running::start(self, backend)?;
        let Running { backend, step, cache } = &mut together;
        backend.run_multi_step(step, cache, first, steps)?;
        let found = together.tokens(*out, steps * rows).await?;
        for (index, (&expected, &found)) in expected.iter().zip(&found).enumerate() {
            if expected != found {
                let (step, row, buffer) = (index / rows, index % rows, *out);
                return Err(Disagreement::Token { step, buffer, row, expected, found });
            }
        }
        let found = together.cache(self).await?;
        compare_cache(steps, self.plan.cache(), &expected_cache, &found)
    }
}

impl<B: Backend> Running<'_, B> {
    async fn tokens(&mut self, id: BufferId, rows: usize) -> Result<Vec<u32>, OpsError> {
        let mut bytes = vec![0; rows * size_of::<u32>()];
        self.backend.read(&self.step, id, 0..rows, &mut bytes).await?;
        Ok(words(&bytes).collect())
    }
}

//! Multi-step decoding on a device against the same steps one by one.

use super::{
    Case,
    compare::{Disagreement, Place, Running, compare_cache, words},
};
use crate::{Backend, BufferId, OpsError, op::Op};

impl Case {
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
        if !inputs.states.is_empty() {
            return Ok(()); // which states a step reads and writes comes from the host
        }
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
                let place = Place { step: index / rows, buffer: *out, width: 1 };
                return Err(place.differs(index % rows, expected, found));
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

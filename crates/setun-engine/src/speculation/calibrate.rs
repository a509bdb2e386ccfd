//! Measurement of a row's cost on this device.

use web_time::Instant;

use super::SpeculativeInferencer;
use crate::{
    error::Error,
    inferencer::{Inferencer, Run, Steps, max_wanted_rows},
};

/// Steps of each kind. The shortest counts: others were kept waiting.
const ROUNDS: usize = 5;

impl SpeculativeInferencer {
    /// Measures [`row_cost`](super::SpeculationOptions::row_cost) on this device, and has it
    /// used from now on: some steps over one row, and over as many as proposals may take. Where
    /// weights are small what rows cost is no small part of a step.
    ///
    /// # Errors
    ///
    /// If a step fails, or the cache has no room for a proposal.
    pub async fn calibrate(&mut self) -> Result<f64, Error> {
        let model = self.inferencer.model();
        let most = max_wanted_rows(model).min(model.context_length());
        let rows = (self.options.max_proposed + 1).min(most);
        let extra = u32::try_from(rows.saturating_sub(1)).unwrap_or(u32::MAX);
        if extra > 0 {
            let sequence = self.inferencer.pool.create();
            let times = self.inferencer.min_times(&[1, rows], sequence).await;
            self.inferencer.pool.remove(sequence);
            if let [one, all] = times?[..] {
                let cost = (all - one) / f64::from(extra) / one;
                self.options.row_cost = if cost.is_finite() { cost.max(0.0) } else { 0.0 };
            }
        }
        Ok(self.options.row_cost)
    }

    /// [`calibrate`](Self::calibrate), waiting for its end. Not for use inside an async task.
    ///
    /// # Errors
    ///
    /// As there.
    #[cfg(not(target_family = "wasm"))]
    pub fn calibrate_blocking(&mut self) -> Result<f64, Error> {
        pollster::block_on(self.calibrate())
    }
}

impl Inferencer {
    /// The least seconds that steps over so many rows take.
    async fn min_times(
        &mut self,
        sizes: &[usize],
        sequence: setun_model::SequenceId,
    ) -> Result<Vec<f64>, Error> {
        let mut least = vec![f64::INFINITY; sizes.len()];
        for round in 0..=ROUNDS {
            for (least, &rows) in least.iter_mut().zip(sizes) {
                let tokens = vec![0; rows];
                let run = Run { sequence, position: 0, tokens: &tokens, wanted_from: 0 };
                let begun = Instant::now();
                let steps = Steps::new(&mut *self.model, &mut self.pool, &mut self.outputs);
                steps.run(&[run], |_, _, _| Ok(())).await?;
                if round > 0 {
                    // In the first one the device makes ready what it needs.
                    *least = least.min(begun.elapsed().as_secs_f64());
                }
                self.pool.truncate(sequence, 0)?;
            }
        }
        Ok(least)
    }
}

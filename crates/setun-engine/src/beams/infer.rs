//! Beam search over batches of token ids.

use setun_model::PagedCache;
use setun_text::Sampler;

use super::{Beam, BeamOptions, BeamSearch, kv_slots};
use crate::{
    error::Error,
    event::FinishReason,
    inferencer::{CacheRow, Inferencer, InferencerCache, OpenRow, Ragged, Run, Steps},
};

/// The search after a row of a batch.
struct Searched {
    search: BeamSearch,
    /// A row for each of the search's; what it holds is freed however the call ends.
    held: InferencerCache,
    cached: usize, // tokens of each that have been run
}

impl Inferencer {
    /// The likeliest texts of up to `max_new_tokens` tokens after each row of a query, `[B, Q]`: the
    /// best first, [`BeamOptions::best`] of them or fewer if the vocabulary gives no more. All
    /// beams of all rows run in one batch, and share what they have in common in memory; the cache
    /// stays as it is. A row without tokens has none.
    ///
    /// Of the sampler's options those count that act on single tokens, as penalties and bans do.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode), but for the query's length; if an option is out of its range,
    /// or no token may come.
    pub async fn beams(
        &mut self,
        query: &Ragged<u32>,
        cache: &InferencerCache,
        max_new_tokens: usize,
        options: &BeamOptions,
        sampler: &Sampler,
    ) -> Result<Vec<Vec<Beam>>, Error> {
        options.check()?;
        let Some(more) = max_new_tokens.checked_sub(1) else {
            let (found, expected) = ("0".into(), "1 or more".into());
            return Err(Error::BadOption { option: "max_new_tokens", found, expected });
        };
        let rows = self.open(query, cache, more)?;
        let mut searched = vec![];
        for row in &rows {
            searched.push(self.begin(row, max_new_tokens, (*options, sampler))?);
        }
        while searched.iter().any(Searched::is_open) {
            let logits = self.run(&searched).await?;
            for (searched, logits) in searched.iter_mut().zip(logits) {
                if searched.is_open() {
                    let parents = searched.search.advance(&logits, &mut |_, _| Ok(false))?;
                    searched.follow(&mut self.pool, &parents)?;
                }
            }
        }
        let finish = |mut searched: Searched| searched.search.finish(FinishReason::Length);
        Ok(searched.into_iter().map(finish).collect())
    }

    /// [`beams`](Self::beams), waiting for its end. Not for use inside an async task.
    ///
    /// # Errors
    ///
    /// As there.
    #[cfg(not(target_family = "wasm"))]
    pub fn beams_blocking(
        &mut self,
        query: &Ragged<u32>,
        cache: &InferencerCache,
        max_new_tokens: usize,
        options: &BeamOptions,
        sampler: &Sampler,
    ) -> Result<Vec<Vec<Beam>>, Error> {
        pollster::block_on(self.beams(query, cache, max_new_tokens, options, sampler))
    }

    /// The search after a row, which is forked for it.
    fn begin(
        &mut self,
        open: &OpenRow,
        max_new_tokens: usize,
        (options, sampler): (BeamOptions, &Sampler),
    ) -> Result<Searched, Error> {
        let (sampler, eos_tokens) = (sampler.clone(), self.options.eos_tokens.clone());
        let search = BeamSearch::new(&open.history, max_new_tokens, options, sampler, eos_tokens);
        let kv_slots = if open.is_idle { vec![] } else { vec![self.pool.fork(open.row.sequence)?] };
        Ok(Searched { search, held: self.holding(&kv_slots), cached: open.row.tokens.len() })
    }

    /// Runs what the rows of all searches have not run; the logits after each row.
    async fn run(&mut self, searched: &[Searched]) -> Result<Vec<Vec<Vec<f32>>>, Error> {
        let (mut runs, mut schedulers) = (vec![], vec![]);
        for (scheduler, Searched { search, held, cached }) in searched.iter().enumerate() {
            for (row, tokens) in held.rows.iter().zip(search.rows()) {
                let (sequence, position, tokens) = (row.sequence, *cached, &tokens[*cached..]);
                runs.push(Run { sequence, position, tokens, wanted_from: tokens.len() - 1 });
                schedulers.push(scheduler);
            }
        }
        let mut logits = vec![vec![]; searched.len()];
        let take = |run: usize, _: usize, row: &[f32]| {
            logits[schedulers[run]].push(row.to_vec());
            Ok(())
        };
        Steps::new(&mut *self.model, &mut self.pool, &mut self.outputs).run(&runs, take).await?;
        Ok(logits)
    }
}

impl Searched {
    /// Whether it has rows to run.
    fn is_open(&self) -> bool {
        self.held.rows() > 0
    }

    /// Goes on with the rows that the search has now.
    fn follow(&mut self, pool: &mut PagedCache, parents: &[usize]) -> Result<(), Error> {
        let mut kv_slots: Vec<_> = self.held.rows.iter().map(|row| row.sequence).collect();
        kv_slots::follow(pool, &mut kv_slots, parents)?;
        self.held.rows = kv_slots.into_iter().map(CacheRow::new).collect();
        self.cached = self.search.rows().first().map_or(0, |tokens| tokens.len() - 1);
        Ok(())
    }
}

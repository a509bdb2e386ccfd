//! A model without an engine: batches of token ids in, token ids and logits out.

mod cache;
mod calls;
mod ragged;
mod steps;

use std::sync::Arc;

use setun_model::{Model as Forward, Outputs, PagedCache};
use setun_text::Strategy;

pub use cache::InferencerCache;
use cache::{CacheRow, Released};
use calls::OpenRow;
pub use ragged::Ragged;
pub(crate) use steps::{Run, Steps, max_wanted_rows};

use crate::error::Error;

/// Runs a model on batches of token ids, without an engine.
///
/// [`prefill`](Self::prefill) runs prompts and chooses one token after each, and
/// [`decode`](Self::decode) goes on from there. Both take a batch of `B` rows, each with its own
/// place in an [`InferencerCache`], and grow it by exactly the tokens that they run. A token that
/// was just chosen has not been run: it is the next call's query. So after a query of one token
/// and `N` new ones the cache holds `N` positions more, those of the query and of all new tokens
/// but the last.
///
/// Rows may be of different lengths, and nothing is spent on padding: a row without tokens is not
/// run. What a row gives depends neither on the other rows nor on how its prompt was cut over
/// calls, bit for bit on a processor.
///
/// ```no_run
/// use setun_engine::{Error, Inferencer, InferencerOptions, Ragged};
/// use setun_text::{Sampler, SamplerOptions};
///
/// fn run(model: Box<dyn setun_model::Model>) -> Result<(), Error> {
///     let mut inferencer = Inferencer::new(model, InferencerOptions::default());
///     let mut greedy = Sampler::new(SamplerOptions::default())?;
///     let mut cache = inferencer.cache(2)?;
///     let prompts = Ragged::from_rows([&[128_000, 791][..], &[128_000, 12_805, 5304, 264]]);
///     let first = inferencer.prefill_blocking(&prompts, &mut cache, &mut greedy)?;
///     let rest = inferencer.decode_blocking(&first.next(), &mut cache, 16, &mut greedy)?;
///     assert_eq!(rest.token_ids.rows(), 2);
///     Ok(())
/// }
/// ```
pub struct Inferencer {
    pub(crate) model: Box<dyn Forward>,
    pub(crate) pool: PagedCache,
    pub(crate) outputs: Outputs,
    pub(crate) options: InferencerOptions,
    released: Arc<Released>,
}

/// Options of an [`Inferencer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferencerOptions {
    /// Tokens that end a row. Default: none.
    pub eos_tokens: Vec<u32>,
    /// The positions whose logits results have. Default: all.
    pub logits: TokenLogits,
    /// Most positions of all caches together, where those that forks share count once and each
    /// row's last block counts in full. The recurrent state of a row counts as the blocks that have
    /// its bytes. Default: as many as there is memory for, which is taken
    /// as it is used.
    pub cache_positions: usize,
}

impl Default for InferencerOptions {
    fn default() -> Self {
        Self { eos_tokens: vec![], logits: TokenLogits::All, cache_positions: usize::MAX }
    }
}

/// The positions whose logits a result has, each `4 * V` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenLogits {
    /// Those of all tokens that are run: `[B, Q, V]` or `[B, N, V]`.
    #[default]
    All,
    /// Those of each row's last: `[B, 1, V]`.
    Last,
    /// None: `[B, 0, V]`.
    None,
}

/// What a call gives. A row whose query was empty is empty in all.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// The tokens that were chosen, `[B, 1]` after a prompt and `[B, N]` otherwise; rows end with
    /// their first end token.
    pub token_ids: Ragged<u32>,
    /// Logits after the tokens that were run, as far as they are [wanted](TokenLogits). Of new
    /// tokens the logits at a place are those that the token at this place was chosen from.
    pub token_logits: Ragged<f32>,
    /// Whether a row has come to an end token.
    pub ended: Vec<bool>,
}

impl Inferred {
    /// The query that goes on from here: the last token of each row, and none of rows that have
    /// ended.
    #[must_use]
    pub fn next(&self) -> Ragged<u32> {
        let rows = self.token_ids.iter().zip(&self.ended);
        Ragged::from_rows(rows.map(|(row, &ended)| match row.last() {
            Some(last) if !ended => std::slice::from_ref(last),
            _ => &[],
        }))
    }
}

impl Inferencer {
    /// Over a model that is on its device.
    #[must_use]
    pub fn new(model: Box<dyn Forward>, options: InferencerOptions) -> Self {
        let positions = model.block_positions().max(1);
        let blocks = (options.cache_positions / positions).min(u32::MAX as usize);
        let pool = PagedCache::for_model(&*model, blocks);
        Self { model, pool, outputs: Outputs::default(), options, released: Arc::default() }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &dyn Forward {
        &*self.model
    }

    /// An empty cache for batches of this many rows.
    ///
    /// # Errors
    ///
    /// If it would have no rows.
    pub fn cache(&mut self, rows: usize) -> Result<InferencerCache, Error> {
        if rows == 0 {
            let (found, expected) = ("0".into(), "1 or more".into());
            return Err(Error::BadOption { option: "rows", found, expected });
        }
        self.collect();
        let row = |draws| CacheRow { draws, ..CacheRow::new(self.pool.create()) };
        let rows = (0..rows as u64).map(row).collect();
        Ok(InferencerCache { rows, released: Arc::clone(&self.released) })
    }

    /// Runs the tokens of a query, `[B, Q]`, and chooses the token that follows each row. The cache
    /// grows by `Q`.
    ///
    /// All that a row holds then counts as its prompt ([`Step::prompt_tokens`]); the token that is
    /// chosen takes the random numbers of a generation's first.
    ///
    /// [`Step::prompt_tokens`]: setun_text::Step::prompt_tokens
    ///
    /// # Errors
    ///
    /// If the query does not fit the cache or has no tokens at all, a token is not of the model's
    /// vocabulary, or a row would outgrow the context; nothing has run then. If a step fails, or
    /// the strategy does. The cache is as before then, but the strategy may have chosen.
    pub async fn prefill(
        &mut self,
        query: &Ragged<u32>,
        cache: &mut InferencerCache,
        strategy: &mut dyn Strategy,
    ) -> Result<Inferred, Error> {
        let mut rows = self.open(query, cache, 0)?;
        if query.values().is_empty() {
            let what = "the least number of tokens of a prompt";
            return Err(Error::BatchShape { what, expected: 1, found: 0 });
        }
        for row in &mut rows {
            row.prompt_tokens = row.history.len();
        }
        self.advance(&mut rows, strategy).await?;
        Ok(self.close(rows, cache))
    }

    /// Runs a query of one token, `[B, 1]`, chooses the next, runs that, and so on until there are
    /// `max_new_tokens`; each row by itself ends with its first end token. The cache grows by as
    /// many positions as there are new tokens, of which the last has not been run. A query without
    /// any token, as [`Inferred::next`] gives where all rows have ended, gives none.
    ///
    /// # Errors
    ///
    /// As [`prefill`](Self::prefill), but for the query; if one of its rows has more than one token, or
    /// `max_new_tokens` is 0 or more than the context has room for.
    pub async fn decode(
        &mut self,
        query: &Ragged<u32>,
        cache: &mut InferencerCache,
        max_new_tokens: usize,
        strategy: &mut dyn Strategy,
    ) -> Result<Inferred, Error> {
        let mut rows = self.open_decoding(query, cache, max_new_tokens)?;
        for _ in 0..max_new_tokens {
            if rows.iter().all(OpenRow::is_done) {
                break;
            }
            self.advance(&mut rows, strategy).await?;
        }
        Ok(self.close(rows, cache))
    }

    /// [`prefill`](Self::prefill), waiting for its end. Not for use inside an async task.
    ///
    /// # Errors
    ///
    /// As there.
    #[cfg(not(target_family = "wasm"))]
    pub fn prefill_blocking(
        &mut self,
        query: &Ragged<u32>,
        cache: &mut InferencerCache,
        strategy: &mut dyn Strategy,
    ) -> Result<Inferred, Error> {
        pollster::block_on(self.prefill(query, cache, strategy))
    }

    /// [`decode`](Self::decode), waiting for its end. Not for use inside an async task.
    ///
    /// # Errors
    ///
    /// As there.
    #[cfg(not(target_family = "wasm"))]
    pub fn decode_blocking(
        &mut self,
        query: &Ragged<u32>,
        cache: &mut InferencerCache,
        max_new_tokens: usize,
        strategy: &mut dyn Strategy,
    ) -> Result<Inferred, Error> {
        pollster::block_on(self.decode(query, cache, max_new_tokens, strategy))
    }
}

#[cfg(test)]
mod tests;

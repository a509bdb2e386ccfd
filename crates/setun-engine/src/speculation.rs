//! Several tokens from one step of a model: guessed by a draft, verified all at once.
//!
//! A step over a few tokens of a sequence takes hardly longer than one over one, as it reads the
//! same weights. So a [`Draft`] proposes the tokens that come next: [`PromptLookup`] from the text
//! so far, [`DraftModel`] by a smaller model. The target runs them in one step, in which it says of
//! each place what it would have chosen there; the tokens up to the first that does not stay are
//! new, and that one's replacement with them. What the others left in the cache is dropped.
//!
//! What is generated is what the target generates alone: the same tokens or, if that is asked for,
//! tokens of the same distribution ([`Verify`]).

mod acceptance;
mod calibrate;
mod draft;
mod draft_length;
mod draft_model;
mod lookahead;
mod prompt_lookup;
pub(crate) mod sampled;
mod verify;

use std::collections::BTreeMap;

use setun_model::SequenceId;

pub use acceptance::{Distribution, Verdict, acceptance, propose, residual, verify};
pub use draft::{Draft, DraftRequest, Proposal};
pub use draft_length::{DraftCost, DraftLength};
pub use draft_model::DraftModel;
pub(crate) use draft_model::DraftRoom;
pub(crate) use lookahead::Lookahead;
pub use prompt_lookup::PromptLookup;
pub use verify::Verify;

use self::verify::Judged;
use crate::{
    error::Error,
    inferencer::{
        Inferencer, InferencerCache, Inferred, OpenRow, Ragged, Run, Steps, max_wanted_rows,
    },
};

/// What a [`SpeculativeInferencer`] is told once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeculationOptions {
    /// Most tokens to propose at once for a row. Default: 12.
    pub max_proposed: usize,
    /// Time that a proposed token adds to a step of the target, in parts of a step over one token.
    /// Default: 0.2, as of a model of two thousand million weights on two cores; it is far more
    /// where weights are few, so better [measured](SpeculativeInferencer::calibrate).
    pub row_cost: f64,
}

impl Default for SpeculationOptions {
    fn default() -> Self {
        Self { max_proposed: 12, row_cost: 0.2 }
    }
}

/// An [`Inferencer`] whose decoding is sped up by a draft. Prompts and caches are the
/// inferencer's own.
pub struct SpeculativeInferencer {
    inferencer: Inferencer,
    draft: Box<dyn Draft>,
    options: SpeculationOptions,
    known: BTreeMap<SequenceId, Known>,
    is_open: bool, // a call has begun, and has not come to its end
}

/// What the draft has seen of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    cuts: u64,
    last: Option<(usize, u32)>, // place and token
    length: DraftLength,
}

/// What speculation came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeculationCounts {
    /// Times that proposals of a row were verified; a step does so for all rows.
    pub verifications: usize,
    /// Tokens that were proposed.
    pub proposed: usize,
    /// Tokens of these that stayed.
    pub accepted: usize,
    /// New tokens: those that stayed, and one more for each verification.
    pub tokens: usize,
}

/// What [`SpeculativeInferencer::decode`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Speculated {
    /// Tokens and logits, as [`Inferencer::decode`] gives them.
    pub inferred: Inferred,
    /// How many were guessed.
    pub counts: SpeculationCounts,
}

impl SpeculativeInferencer {
    /// Has a draft propose tokens to an inferencer.
    ///
    /// # Errors
    ///
    /// If the draft has another vocabulary.
    pub fn new(
        inferencer: Inferencer,
        draft: Box<dyn Draft>,
        options: SpeculationOptions,
    ) -> Result<Self, Error> {
        let expected = inferencer.model().vocab_size();
        match draft.vocab_size() {
            Some(found) if found != expected => {
                let what = "the vocabulary of a draft";
                Err(Error::BatchShape { what, expected, found })
            }
            _ => Ok(Self { inferencer, draft, options, known: BTreeMap::new(), is_open: false }),
        }
    }

    /// The inferencer, for prompts, caches and decoding without the draft.
    pub fn inferencer(&mut self) -> &mut Inferencer {
        &mut self.inferencer
    }

    /// [`Inferencer::decode`] with fewer steps.
    ///
    /// # Errors
    ///
    /// As there, and if the draft fails.
    pub async fn decode(
        &mut self,
        query: &Ragged<u32>,
        cache: &mut InferencerCache,
        max_new_tokens: usize,
        mut verify: Verify<'_>,
    ) -> Result<Speculated, Error> {
        let mut rows = self.inferencer.open_decoding(query, cache, max_new_tokens)?;
        self.begin(&rows);
        let mut counts = SpeculationCounts::default();
        while rows.iter().any(|row| is_open(row, max_new_tokens)) {
            let proposals = self.propose(&rows, max_new_tokens, &verify).await?;
            let open = rows.iter_mut().filter(|row| is_open(row, max_new_tokens));
            let token_logprobs =
                open.zip(proposals).map(|(row, given)| Judged::new(row, given)).collect();
            self.verify(token_logprobs, &mut verify, &mut counts).await?;
        }
        self.end(&rows);
        counts.tokens = rows.iter().map(|row| row.chosen).sum();
        let inferred = self.inferencer.close(rows, cache);
        Ok(Speculated { inferred, counts })
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
        verify: Verify<'_>,
    ) -> Result<Speculated, Error> {
        pollster::block_on(self.decode(query, cache, max_new_tokens, verify))
    }

    /// Has the draft forget what no longer is as it has seen it.
    fn begin(&mut self, rows: &[OpenRow]) {
        let Self { inferencer, draft, known, is_open, .. } = self;
        let broke_off = std::mem::replace(is_open, true);
        known.retain(|&sequence, _| {
            let stays = !broke_off && inferencer.pool.len(sequence).is_ok();
            if !stays {
                draft.forget(sequence);
            }
            stays
        });
        for OpenRow { row, history, .. } in rows.iter().filter(|row| !row.is_idle) {
            let seen =
                known.entry(row.sequence).or_insert(Known { cuts: row.cuts, ..Known::default() });
            let goes_on = seen.last.is_none_or(|(place, token)| history.get(place) == Some(&token));
            if seen.cuts != row.cuts || !goes_on {
                draft.forget(row.sequence);
                *seen = Known { cuts: row.cuts, last: None, length: seen.length };
            }
        }
    }

    fn end(&mut self, rows: &[OpenRow]) {
        for row in rows.iter().filter(|row| !row.is_idle) {
            if let Some(known) = self.known.get_mut(&row.row.sequence) {
                let place = row.history.len() - 1;
                known.last = row.history.last().map(|&token| (place, token));
            }
        }
        self.is_open = false;
    }

    /// A proposal for each row that goes on; of some it is empty.
    async fn propose(
        &mut self,
        rows: &[OpenRow],
        max_new_tokens: usize,
        verify: &Verify<'_>,
    ) -> Result<Vec<Proposal>, Error> {
        let open: Vec<_> = rows.iter().filter(|row| is_open(row, max_new_tokens)).collect();
        let (room, cost) = (self.room(open.len()), self.cost());
        let (mut requests, mut kv_slots) = (vec![], vec![]);
        for (place, row) in open.iter().enumerate() {
            let sequence = row.row.sequence;
            let left = max_new_tokens - row.chosen - 1; // one comes without a proposal
            let most = self.options.max_proposed.min(room).min(left);
            let most = self.known.entry(sequence).or_default().length.next(most, cost);
            if most > 0 {
                let (step, probabilities) = (row.step(), verify.wants_probabilities());
                let sampler = None;
                requests.push(DraftRequest { sequence, step, most, probabilities, sampler });
                kv_slots.push((place, most));
            }
        }
        let mut proposals = vec![Proposal::default(); open.len()];
        if !requests.is_empty() {
            let vocabulary = self.inferencer.model().vocab_size();
            let proposed = self.draft.propose(&requests).await?;
            for ((place, most), mut proposal) in kv_slots.into_iter().zip(proposed) {
                proposal.cut(most, vocabulary);
                proposals[place] = proposal;
            }
        }
        Ok(proposals)
    }

    /// Runs the last token of each row and what is proposed after it, and takes what stays.
    async fn verify(
        &mut self,
        mut token_logprobs: Vec<Judged<'_>>,
        verify: &mut Verify<'_>,
        counts: &mut SpeculationCounts,
    ) -> Result<(), Error> {
        let tokens = |token_logprobs: &Judged<'_>| {
            let last = &token_logprobs.row.history[token_logprobs.row.cached()..];
            [last, &token_logprobs.proposal.tokens].concat()
        };
        let tokens: Vec<Vec<u32>> = token_logprobs.iter().map(tokens).collect();
        let mut runs = vec![];
        for (Judged { row, .. }, tokens) in token_logprobs.iter().zip(&tokens) {
            let (sequence, position) = (row.row.sequence, row.cached());
            runs.push(Run { sequence, position, tokens, wanted_from: 0 });
        }
        let Inferencer { model, pool, outputs, options, .. } = &mut self.inferencer;
        let take = |run: usize, place: usize, logits: &[f32]| {
            token_logprobs[run].take(place, logits, verify, (options.logits, &options.eos_tokens))
        };
        Steps::new(&mut **model, pool, outputs).run(&runs, take).await?;
        for Judged { row, proposal, accepted, .. } in &token_logprobs {
            pool.truncate(row.row.sequence, row.cached())?;
            let proposed = proposal.tokens.len();
            self.known.entry(row.row.sequence).or_default().length.record(proposed, *accepted);
            counts.verifications += 1;
            counts.proposed += proposed;
            counts.accepted += accepted;
        }
        Ok(())
    }

    /// Most tokens that can be proposed for each of so many rows: a step is not cut, and proposals
    /// take no block of the cache that a row may need without them.
    fn room(&self, rows: usize) -> usize {
        let (pool, rows) = (&self.inferencer.pool, rows.max(1));
        // A row may begin a block, or have to copy its last one.
        let blocks = (pool.free_blocks() / rows).saturating_sub(1);
        let positions = blocks.saturating_mul(pool.block_positions());
        let of_a_step = max_wanted_rows(self.inferencer.model()) / rows;
        of_a_step.min(positions).saturating_sub(1)
    }

    /// A proposal costs what its bytes take to be read, beside those of a step.
    fn cost(&self) -> DraftCost {
        let target = self.inferencer.model().memory().weights();
        let draft = self.draft.bytes_per_token();
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let proposal = if target == 0 { 0.0 } else { draft as f64 / target as f64 };
        DraftCost { row: self.options.row_cost, proposal }
    }
}

/// Whether a row gets more tokens.
fn is_open(row: &OpenRow, max_new_tokens: usize) -> bool {
    !row.is_done() && row.chosen < max_new_tokens
}

#[cfg(test)]
mod tests;

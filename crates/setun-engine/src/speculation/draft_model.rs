//! Proposals from a smaller model.

use std::collections::HashMap;

use setun_model::{CacheSalt, MemoryUse, Model as Forward, Outputs, PagedCache, SequenceId};
use setun_text::{Draw, Sampler, SamplerState, Step, TextError};

use crate::{
    error::Error,
    inferencer::{Run, Steps},
};

/// A model of the target's vocabulary that proposes what it would generate itself. It has a cache
/// of its own, from which tokens that were not accepted are dropped; several sequences share its
/// steps.
///
/// A sequence that outgrows its context gets no more proposals.
pub(crate) struct DraftModel {
    model: Box<dyn Forward>,
    sampler: Sampler,
    pool: PagedCache,
    max_new: usize,
    outputs: Outputs,
    sequences: HashMap<SequenceId, Kept>,
}

/// A sequence for which tokens are to be proposed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftRequest<'a> {
    /// The sequence, by the name that it has in the target's cache.
    pub(crate) sequence: SequenceId,
    /// What separates its prefixes from those of others.
    pub(crate) salt: Option<&'a CacheSalt>,
    /// Where the first token is proposed: after its history, whose last token has not been run,
    /// and with random numbers. Those of further tokens have the indices after it.
    pub(crate) step: Step<'a>,
    /// Most tokens to propose; 1 or more.
    pub(crate) most: usize,
    /// How the target chooses in this sequence; none to choose by the draft's options.
    pub(crate) sampler: Option<&'a Sampler>,
}

/// How much a draft model takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftRoom {
    /// Blocks of its cache. A sequence for which there are none gets no proposals.
    pub(crate) blocks: usize,
    /// Blocks that no sequence has, kept for texts that begin as others did.
    pub(crate) prefix_blocks: usize,
    /// Rows of a call before it proposes: a text of which more is new gets no proposals until
    /// further calls have run the rest.
    pub(crate) rows: usize,
}

/// What is known of a sequence.
struct Kept {
    sequence: SequenceId, // its name in the own cache
    tokens: Vec<u32>,     // the history, and what was proposed after it
    history: usize,       // how many of them are that
    cached: usize,        // how many have been run
}

/// Tokens of a sequence that are run next.
struct Part {
    sequence: SequenceId,
    position: usize,
    tokens: Vec<u32>,
}

/// A request that is under way.
struct Open<'a> {
    request: &'a DraftRequest<'a>,
    most: usize,
    proposal: Vec<u32>,
}

impl DraftModel {
    /// Over a model that is on its device, within some room. The sampler is that of requests without one.
    pub(crate) fn within(model: Box<dyn Forward>, sampler: Sampler, room: DraftRoom) -> Self {
        let mut pool = PagedCache::for_model(&*model, room.blocks);
        pool.keep_prefixes(room.prefix_blocks);
        let (outputs, sequences) = (Outputs::default(), HashMap::new());
        Self { model, sampler, pool, max_new: room.rows, outputs, sequences }
    }

    /// The tokens for each request, in their order, each of another sequence; there may be none.
    /// From call to call the history of a sequence only grows, until it is forgotten.
    ///
    /// # Errors
    ///
    /// If a step fails.
    pub(crate) async fn propose(
        &mut self,
        requests: &[DraftRequest<'_>],
    ) -> Result<Vec<Vec<u32>>, Error> {
        let proposed = self.try_propose(requests).await;
        if proposed.is_err() {
            // What the cache holds of them is not known.
            for request in requests {
                self.forget(request.sequence);
            }
        }
        proposed
    }

    /// Bytes that the model keeps in memory.
    pub(crate) fn memory(&self) -> MemoryUse {
        self.model.memory()
    }

    /// Whether its cache has memory that no sequence needs.
    pub(crate) fn has_spare(&self) -> bool {
        let held = self.pool.held_blocks() - self.pool.idle_blocks();
        self.pool.idle_blocks() > 0 || self.memory().cache > held * self.model.block_bytes()
    }

    /// Forgets the sequences that are not there any more.
    pub(crate) fn retain(&mut self, is_there: impl Fn(SequenceId) -> bool) {
        let Self { sequences, pool, .. } = self;
        sequences.retain(|&sequence, kept| {
            let stays = is_there(sequence);
            if !stays {
                pool.remove(kept.sequence);
            }
            stays
        });
    }

    /// Holds its cache to this many blocks. Where sequences have more, all begin again.
    pub(crate) async fn hold_to(&mut self, blocks: usize) -> Result<(), Error> {
        if self.pool.held_blocks() - self.pool.idle_blocks() > blocks {
            self.retain(|_| false);
        }
        let beyond = self.pool.held_blocks().saturating_sub(blocks);
        self.pool.forget_idle(self.pool.idle_blocks().saturating_sub(beyond));
        self.pool.set_max_blocks(blocks);
        if self.memory().cache <= blocks.saturating_mul(self.model.block_bytes()) {
            return Ok(());
        }
        self.shrink().await
    }

    /// Gives back the memory of blocks that no sequence has, and of steps.
    pub(crate) async fn shrink(&mut self) -> Result<(), Error> {
        self.pool.forget_idle(0);
        self.pool.compact();
        self.outputs = Outputs::default();
        Ok(self.model.shrink(&mut self.pool).await?)
    }

    /// Drops what is kept of a sequence.
    fn forget(&mut self, sequence: SequenceId) {
        if let Some(kept) = self.sequences.remove(&sequence) {
            self.pool.remove(kept.sequence);
        }
    }

    async fn try_propose(&mut self, requests: &[DraftRequest<'_>]) -> Result<Vec<Vec<u32>>, Error> {
        let mut open = vec![];
        for request in requests {
            self.follow(request)?;
            // The last token that is proposed is not run.
            let context = self.model.context_length() + 1;
            let most = request.most.min(context.saturating_sub(request.step.history.len()));
            let most = if request.step.history.is_empty() { 0 } else { most };
            open.push(Open { request, most, proposal: vec![] });
        }
        self.hold_to_room(&mut open);
        self.read(&mut open).await?;
        let rounds = open.iter().map(|open| open.most).max().unwrap_or(0);
        for round in 0..rounds {
            self.round(&mut open, round).await?;
        }
        for kept in open.iter().filter_map(|open| self.sequences.get(&open.request.sequence)) {
            self.pool.record_prefix(kept.sequence, &kept.tokens[..kept.cached])?;
        }
        Ok(open.into_iter().map(|open| open.proposal).collect())
    }

    /// Drops what a sequence's history does not have, and takes over what is new in it.
    fn follow(&mut self, request: &DraftRequest<'_>) -> Result<(), Error> {
        let Self { sequences, pool, .. } = self;
        let history = request.step.history;
        let kept = sequences.entry(request.sequence).or_insert_with(|| {
            let sequence = pool.create_from(request.salt, history);
            let cached = pool.len(sequence).unwrap_or(0);
            Kept { sequence, tokens: history[..cached].to_vec(), history: cached, cached }
        });
        let known = if kept.history <= history.len() { kept.history } else { 0 };
        let pairs = kept.tokens[known..].iter().zip(&history[known..]);
        let common = known + pairs.take_while(|(kept, now)| kept == now).count();
        kept.tokens.truncate(common);
        kept.tokens.extend_from_slice(&history[common..]);
        kept.history = history.len();
        // The last token is run in any case, for its logits.
        kept.cached = kept.cached.min(common).min(history.len().saturating_sub(1));
        pool.truncate(kept.sequence, kept.cached)?;
        kept.cached = pool.len(kept.sequence)?; // less where a recurrent state goes back
        Ok(())
    }

    /// Proposes nothing where the cache has no room for it.
    fn hold_to_room(&self, open: &mut [Open<'_>]) {
        let mut free = self.pool.free_blocks();
        for Open { request, most, .. } in open.iter_mut().filter(|open| open.most > 0) {
            let Some(kept) = self.sequences.get(&request.sequence) else { continue };
            let positions = kept.tokens.len() - kept.cached + *most;
            let needed = self.pool.needed(kept.sequence, positions).unwrap_or(usize::MAX);
            match free.checked_sub(needed) {
                Some(left) => free = left,
                None => *most = 0,
            }
        }
    }

    /// Runs part of those texts of which too much is new, and proposes nothing for them: short
    /// ones come first.
    async fn read(&mut self, open: &mut [Open<'_>]) -> Result<(), Error> {
        let Self { model, pool, outputs, sequences, max_new, .. } = self;
        let new = |kept: &Kept| kept.tokens.len() - kept.cached;
        let mut order: Vec<_> = open.iter_mut().filter(|open| open.most > 0).collect();
        order.sort_by_key(|open| sequences.get(&open.request.sequence).map(new));
        let (mut left, mut parts) = (*max_new, vec![]);
        for Open { request, most, .. } in order {
            let Some(kept) = sequences.get_mut(&request.sequence) else { continue };
            let rows = new(kept).min(left);
            left -= rows;
            if rows < new(kept) {
                *most = 0;
                parts.push(kept.part(rows));
                kept.cached += rows;
            }
        }
        let runs: Vec<_> = parts.iter().map(|part| part.run(0)).collect();
        Steps::new(&mut **model, pool, outputs).run(&runs, |_, _, _| Ok(())).await
    }

    /// Runs what has not been run of each sequence, and proposes one more token for it.
    async fn round(&mut self, open: &mut [Open<'_>], round: usize) -> Result<(), Error> {
        let Self { model, sampler, pool, outputs, sequences, .. } = self;
        let (mut parts, mut numbers) = (vec![], vec![]);
        for (number, open) in open.iter().enumerate().filter(|(_, open)| open.most > round) {
            if let Some(kept) = sequences.get(&open.request.sequence) {
                parts.push(kept.part(kept.tokens.len() - kept.cached));
                numbers.push(number);
            }
        }
        let runs: Vec<_> = parts.iter().map(|part| part.run(1)).collect();
        let take = |run: usize, _: usize, logits: &[f32]| {
            let Open { request, proposal, .. } = &mut open[numbers[run]];
            let Some(kept) = sequences.get_mut(&request.sequence) else { return Ok(()) };
            let sampler = request.sampler.unwrap_or(sampler);
            let first = request.step.draw;
            let draw = Draw { index: first.index + round as u64, ..first };
            let step = Step { history: &kept.tokens, draw, ..request.step };
            let token = sample(sampler, logits, &step)?;
            proposal.push(token);
            kept.cached = kept.tokens.len();
            kept.tokens.push(token);
            Ok(())
        };
        Steps::new(&mut **model, pool, outputs).run(&runs, take).await
    }
}

impl Kept {
    /// The first of its tokens that have not been run.
    fn part(&self, rows: usize) -> Part {
        let tokens = self.tokens[self.cached..][..rows].to_vec();
        Part { sequence: self.sequence, position: self.cached, tokens }
    }
}

impl Part {
    /// The logits of this many of the last are requested.
    fn run(&self, wanted: usize) -> Run<'_> {
        let Self { sequence, position, ref tokens } = *self;
        Run { sequence, position, tokens, wanted_from: tokens.len().saturating_sub(wanted) }
    }
}

/// The token that a sampler chooses. It must keep no state: what is drawn for a proposal that does not
/// stay must leave no trace.
fn sample(sampler: &Sampler, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
    if sampler.has_state() {
        return Err(TextError::NeedsState { option: "mirostat_tau" });
    }
    Ok(sampler.sample(logits, step, &mut SamplerState::default())?.token)
}

#[cfg(test)]
mod tests;

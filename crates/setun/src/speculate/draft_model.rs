//! Proposals from a smaller model.

use std::collections::HashMap;

use futures::future::{FutureExt, LocalBoxFuture};
use setun_model::{Model as Forward, Outputs, PagedCache, SequenceId};
use setun_text::{Draw, Sampler, Step};

use super::{
    acceptance::propose,
    draft::{Draft, DraftRequest, Proposal},
    sampled::{probabilities, sample},
};
use crate::{
    error::Error,
    inferencer::{Run, Steps},
};

/// A model of the target's vocabulary that proposes what it would generate itself. It has a cache
/// of its own, from which tokens that were not accepted are dropped; several sequences share its
/// steps.
///
/// A sequence that outgrows its context gets no more proposals.
pub struct DraftModel {
    model: Box<dyn Forward>,
    sampler: Sampler,
    pool: PagedCache,
    outputs: Outputs,
    sequences: HashMap<SequenceId, Kept>,
}

/// What is known of a sequence.
struct Kept {
    sequence: SequenceId, // its name in the own cache
    tokens: Vec<u32>,     // the history, and what was proposed after it
    history: usize,       // how many of them are that
    cached: usize,        // how many have been run
}

/// A request that is under way.
struct Open<'a> {
    request: &'a DraftRequest<'a>,
    most: usize,
    proposal: Proposal,
}

impl DraftModel {
    /// Over a model that is on its device. The sampler should have the target's options.
    #[must_use]
    pub fn new(model: Box<dyn Forward>, sampler: Sampler) -> Self {
        let pool = PagedCache::new(model.block_positions().max(1), u32::MAX as usize);
        Self { model, sampler, pool, outputs: Outputs::default(), sequences: HashMap::new() }
    }

    async fn try_propose(&mut self, requests: &[DraftRequest<'_>]) -> Result<Vec<Proposal>, Error> {
        let mut open = vec![];
        for request in requests {
            self.follow(request)?;
            // The last token that is proposed is not run.
            let context = self.model.context_length() + 1;
            let most = request.most.min(context.saturating_sub(request.step.history.len()));
            let most = if request.step.history.is_empty() { 0 } else { most };
            open.push(Open { request, most, proposal: Proposal::default() });
        }
        let rounds = open.iter().map(|open| open.most).max().unwrap_or(0);
        for round in 0..rounds {
            self.round(&mut open, round).await?;
        }
        Ok(open.into_iter().map(|open| open.proposal).collect())
    }

    /// Drops what a sequence's history does not have, and takes over what is new in it.
    fn follow(&mut self, request: &DraftRequest<'_>) -> Result<(), Error> {
        let Self { sequences, pool, .. } = self;
        let kept = sequences.entry(request.sequence).or_insert_with(|| Kept {
            sequence: pool.create(),
            tokens: vec![],
            history: 0,
            cached: 0,
        });
        let history = request.step.history;
        let known = if kept.history <= history.len() { kept.history } else { 0 };
        let pairs = kept.tokens[known..].iter().zip(&history[known..]);
        let common = known + pairs.take_while(|(kept, now)| kept == now).count();
        kept.tokens.truncate(common);
        kept.tokens.extend_from_slice(&history[common..]);
        kept.history = history.len();
        // The last token is run in any case, for its logits.
        kept.cached = kept.cached.min(common).min(history.len().saturating_sub(1));
        Ok(pool.truncate(kept.sequence, kept.cached)?)
    }

    /// Runs what has not been run of each sequence, and proposes one more token for it.
    async fn round(&mut self, open: &mut [Open<'_>], round: usize) -> Result<(), Error> {
        let Self { model, sampler, pool, outputs, sequences } = self;
        let (mut pending, mut numbers) = (vec![], vec![]);
        for (number, open) in open.iter().enumerate().filter(|(_, open)| open.most > round) {
            if let Some(kept) = sequences.get(&open.request.sequence) {
                let tokens = kept.tokens[kept.cached..].to_vec();
                pending.push((kept.sequence, kept.cached, tokens));
                numbers.push(number);
            }
        }
        let runs: Vec<_> = pending.iter().map(run).collect();
        let take = |run: usize, _: usize, logits: &[f32]| {
            let Open { request, proposal, .. } = &mut open[numbers[run]];
            let Some(kept) = sequences.get_mut(&request.sequence) else { return Ok(()) };
            let first = request.step.draw;
            let draw = Draw { index: first.index + round as u64, ..first };
            let step = Step { history: &kept.tokens, draw, ..request.step };
            let token = if request.probabilities {
                let drawn_from = probabilities(sampler, logits, &step)?;
                let Some(token) = propose(&drawn_from, draw) else { return Ok(()) };
                proposal.probabilities.push(drawn_from);
                token
            } else {
                sample(sampler, logits, &step)?
            };
            proposal.tokens.push(token);
            kept.cached = kept.tokens.len();
            kept.tokens.push(token);
            Ok(())
        };
        Steps::new(&mut **model, pool, outputs).run(&runs, take).await
    }
}

fn run((sequence, position, tokens): &(SequenceId, usize, Vec<u32>)) -> Run<'_> {
    let wanted_from = tokens.len().saturating_sub(1);
    Run { sequence: *sequence, position: *position, tokens, wanted_from }
}

impl Draft for DraftModel {
    fn propose<'a>(
        &'a mut self,
        requests: &'a [DraftRequest<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Proposal>, Error>> {
        let proposing = async move {
            let proposed = self.try_propose(requests).await;
            if proposed.is_err() {
                // What the cache holds of them is not known.
                for request in requests {
                    self.forget(request.sequence);
                }
            }
            proposed
        };
        proposing.boxed_local()
    }

    fn forget(&mut self, sequence: SequenceId) {
        if let Some(kept) = self.sequences.remove(&sequence) {
            self.pool.remove(kept.sequence);
        }
    }

    fn vocab_size(&self) -> Option<usize> {
        Some(self.model.vocab_size())
    }

    fn bytes_per_token(&self) -> usize {
        self.model.memory().weights()
    }
}

#[cfg(test)]
mod tests;

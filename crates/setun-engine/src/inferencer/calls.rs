//! Calls of an inferencer, from their checks to their results.

use std::sync::Arc;

use setun_text::{Draw, Step, Strategy};

use super::{CacheRow, Inferencer, InferencerCache, Ragged, Run, Steps, TokenLogits};
use crate::{error::Error, inferencer::Inferred};

impl Inferencer {
    /// Frees what caches that are gone had.
    pub(super) fn collect(&mut self) {
        for sequence in self.released.take() {
            self.pool.remove(sequence);
        }
    }

    /// Checks whose a cache is, and drops what it no longer has.
    pub(super) fn own(&mut self, cache: &InferencerCache) -> Result<(), Error> {
        if !Arc::ptr_eq(&self.released, &cache.released) {
            return Err(Error::OtherCache);
        }
        self.collect();
        for row in &cache.rows {
            self.pool.truncate(row.sequence, row.tokens.len())?;
        }
        Ok(())
    }

    /// The rows of a query at the end of what their cache holds, with room for `more` tokens
    /// after them.
    pub(super) fn open(
        &mut self,
        query: &Ragged<u32>,
        cache: &InferencerCache,
        more: usize,
    ) -> Result<Vec<OpenRow>, Error> {
        self.own(cache)?;
        let (expected, found) = (cache.rows(), query.rows());
        if expected != found {
            return Err(Error::BatchShape { what: "rows of a query", expected, found });
        }
        let (vocabulary, context) = (self.model.vocab_size(), self.model.context_length());
        let mut rows = Vec::with_capacity(expected);
        for (row, (kept, tokens)) in cache.rows.iter().zip(query.iter()).enumerate() {
            let is_unknown = |&token: &u32| token as usize >= vocabulary;
            if let Some(place) = tokens.iter().position(is_unknown) {
                let token = tokens[place];
                return Err(Error::UnknownToken { row, place, token, vocabulary });
            }
            let history = [kept.tokens.as_slice(), tokens].concat();
            let positions = history.len().saturating_add(more);
            if !tokens.is_empty() && positions > context {
                return Err(Error::RowFull { row, positions, context });
            }
            rows.push(OpenRow {
                row: kept.clone(),
                history,
                prompt_tokens: kept.prompt_tokens,
                chosen: 0,
                logits: vec![],
                ended: false,
                is_idle: tokens.is_empty(),
            });
        }
        Ok(rows)
    }

    /// The same for a query of one token, after which come up to `max_new_tokens`.
    pub(super) fn open_decoding(
        &mut self,
        query: &Ragged<u32>,
        cache: &InferencerCache,
        max_new_tokens: usize,
    ) -> Result<Vec<OpenRow>, Error> {
        let Some(more) = max_new_tokens.checked_sub(1) else {
            let (found, expected) = ("0".into(), "1 or more".into());
            return Err(Error::BadOption { option: "max_new_tokens", found, expected });
        };
        if let Some(found) = query.lengths().into_iter().find(|&length| length > 1) {
            let what = "tokens of a row of a query that is decoded from";
            return Err(Error::BatchShape { what, expected: 1, found });
        }
        self.open(query, cache, more)
    }

    /// Runs what the rows have not run, and chooses one token for each that is not done.
    pub(super) async fn advance(
        &mut self,
        rows: &mut [OpenRow],
        strategy: &mut dyn Strategy,
    ) -> Result<(), Error> {
        let (wanted, eos_tokens) = (self.options.logits, &self.options.eos_tokens);
        let mut open: Vec<_> = rows.iter_mut().filter(|row| !row.is_done()).collect();
        // Where a recurrent state went back further than the row, tokens between are run again.
        let begin = |row: &&mut OpenRow| {
            let kept = self.pool.len(row.row.sequence)?;
            Ok(kept.min(row.cached()))
        };
        let begun = open.iter().map(begin).collect::<Result<Vec<usize>, Error>>()?;
        let rows = open.iter().zip(&begun);
        let pending: Vec<Vec<u32>> = rows.map(|(row, &at)| row.history[at..].to_vec()).collect();
        let mut runs = vec![];
        for ((row, tokens), &position) in open.iter().zip(&pending).zip(&begun) {
            let again = row.cached() - position;
            let wanted_from = if wanted == TokenLogits::All { again } else { tokens.len() - 1 };
            runs.push(Run { sequence: row.row.sequence, position, tokens, wanted_from });
        }
        let steps = Steps::new(&mut *self.model, &mut self.pool, &mut self.outputs);
        let take = |run: usize, offset: usize, logits: &[f32]| {
            let row = &mut *open[run];
            row.keep(logits, wanted);
            if offset + 1 == pending[run].len() {
                let token = strategy.choose(logits, &row.step())?;
                row.take(token, eos_tokens);
            }
            Ok(())
        };
        steps.run(&runs, take).await
    }

    /// Hands the cache what was run.
    pub(super) fn close(&self, rows: Vec<OpenRow>, cache: &mut InferencerCache) -> Inferred {
        let mut token_ids = Ragged::new(1);
        let mut token_logits = Ragged::new(self.model.vocab_size());
        let mut ended = vec![];
        for (open, kept) in rows.into_iter().zip(&mut cache.rows) {
            let new = open.history.len() - open.chosen;
            token_ids.push(&open.history[new..]);
            token_logits.push(&open.logits);
            ended.push(open.ended);
            if !open.is_idle {
                kept.prompt_tokens = open.prompt_tokens;
                let (cached, mut history) = (open.cached(), open.history);
                history.truncate(cached);
                kept.tokens = history;
            }
        }
        Inferred { token_ids, token_logits, ended }
    }
}

/// A row while tokens are chosen after it. The cache takes over what was run when all is done.
pub(super) struct OpenRow {
    row: CacheRow,
    /// What is in the cache, the query and the new tokens.
    pub(super) history: Vec<u32>,
    pub(super) prompt_tokens: usize,
    chosen: usize,
    logits: Vec<f32>, // [wanted, V]
    ended: bool,
    is_idle: bool, // its query is empty
}

impl OpenRow {
    /// Whether nothing more is to be run.
    pub(super) fn is_done(&self) -> bool {
        self.is_idle || self.ended
    }

    /// Positions that have been run.
    fn cached(&self) -> usize {
        if self.chosen == 0 { self.row.tokens.len() } else { self.history.len() - 1 }
    }

    /// Where the next token is chosen.
    fn step(&self) -> Step<'_> {
        let index = self.history.len().saturating_sub(self.prompt_tokens) as u64;
        let draw = Draw { seed: self.row.seed, sequence: self.row.draws, index };
        let (history, prompt_tokens) = (&self.history, self.prompt_tokens);
        Step { history, prompt_tokens, draw, allowed: None }
    }

    /// Keeps the logits of a position.
    fn keep(&mut self, logits: &[f32], wanted: TokenLogits) {
        match wanted {
            TokenLogits::All => self.logits.extend_from_slice(logits),
            TokenLogits::Last => logits.clone_into(&mut self.logits),
            TokenLogits::None => {}
        }
    }

    /// Takes the next token.
    fn take(&mut self, token: u32, eos_tokens: &[u32]) {
        self.history.push(token);
        self.chosen += 1;
        self.ended = eos_tokens.contains(&token);
    }
}

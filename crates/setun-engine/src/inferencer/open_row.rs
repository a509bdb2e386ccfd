//! A row while a call is under way.

use setun_text::{Draw, Step};

use super::{CacheRow, TokenLogits};

/// A row while tokens are chosen after it. The cache takes over what was run when all is done.
pub(crate) struct OpenRow {
    pub(crate) row: CacheRow,
    /// What is in the cache, the query and the new tokens.
    pub(crate) history: Vec<u32>,
    pub(crate) prompt_tokens: usize,
    pub(crate) chosen: usize,
    pub(crate) logits: Vec<f32>, // [wanted, V]
    pub(crate) ended: bool,
    pub(crate) is_idle: bool, // its query is empty
}

impl OpenRow {
    /// Whether nothing more is to be run.
    pub(crate) fn is_done(&self) -> bool {
        self.is_idle || self.ended
    }

    /// Positions that have been run.
    pub(crate) fn cached(&self) -> usize {
        if self.chosen == 0 { self.row.tokens.len() } else { self.history.len() - 1 }
    }

    /// Where the next token is chosen.
    pub(crate) fn step(&self) -> Step<'_> {
        let index = self.history.len().saturating_sub(self.prompt_tokens) as u64;
        let draw = Draw { seed: self.row.seed, sequence: self.row.draws, index };
        let (history, prompt_tokens) = (&self.history, self.prompt_tokens);
        Step { history, prompt_tokens, draw, allowed: None }
    }

    /// Keeps the logits of a position.
    pub(crate) fn keep(&mut self, logits: &[f32], wanted: TokenLogits) {
        match wanted {
            TokenLogits::All => self.logits.extend_from_slice(logits),
            TokenLogits::Last => logits.clone_into(&mut self.logits),
            TokenLogits::None => {}
        }
    }

    /// Takes the next token.
    pub(crate) fn take(&mut self, token: u32, eos_tokens: &[u32]) {
        self.history.push(token);
        self.chosen += 1;
        self.ended = eos_tokens.contains(&token);
    }
}

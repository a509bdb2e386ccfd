//! The state of one sequence in its grammar.

use std::fmt;

use llguidance::TokenParser;
use setun_text::TokenMask;

use crate::closing::Cursor;
use crate::failure::{caught, failure};
use crate::number_size::Scan;
use crate::{Grammar, GrammarError};

/// Tokens that are left where there is no limit.
const ANY_NUMBER: usize = usize::MAX / 4;

/// The state of one sequence that follows a [`Grammar`].
///
/// For each token: [`Self::mask`], which takes the time and can run beside the forward pass, as
/// it needs the tokens before alone; then a choice among what it allows; then [`Self::accept`].
/// A clone is independent, and answers as the original would.
pub struct Constraint {
    grammar: Grammar,
    parser: TokenParser,
    mask: Option<TokenMask>,
    /// Of a JSON text where it was before each token and is now.
    scans: Vec<Scan>,
    /// The place in a JSON text, as long as it can be followed.
    cursor: Option<Cursor>,
    /// Tokens that may still be taken, end tokens included; `None` for any number.
    left: Option<usize>,
    /// Tokens taken, end tokens included.
    taken: usize,
    /// End tokens taken. The parser does not see them.
    ended: usize,
    /// What every later call answers once the parser has failed.
    failed: Option<GrammarError>,
}

impl Constraint {
    /// A sequence before its first token.
    #[must_use]
    pub fn new(grammar: &Grammar) -> Self {
        let parser = grammar.parser();
        let scans = grammar.scan().into_iter().collect();
        let cursor = grammar.closing().and_then(Cursor::new);
        Self {
            grammar: grammar.clone(),
            parser,
            mask: None,
            scans,
            cursor,
            left: None,
            taken: 0,
            ended: 0,
            failed: None,
        }
    }

    /// The tokens that may come next, at least one.
    ///
    /// With a limit on the tokens that are left, a JSON text is led to its end within it, if it has
    /// one that is short enough.
    ///
    /// Computed once and kept until a token is taken or taken back. It is of the size of the
    /// vocabulary; a model with more logits than tokens must not choose the others.
    pub fn mask(&mut self) -> Result<&TokenMask, GrammarError> {
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => self.compute_mask()?,
        };
        Ok(self.mask.insert(mask))
    }

    fn compute_mask(&mut self) -> Result<TokenMask, GrammarError> {
        if self.is_finished() {
            return Ok(self.grammar.end_tokens().clone());
        }
        let set = self.ask(TokenParser::compute_mask)?;
        let vocabulary = self.grammar.vocabulary();
        let mut mask = TokenMask::from_words(set.as_slice(), vocabulary.tokens());
        if let Some(&scan) = self.scans.last() {
            vocabulary.number_tokens().restrict(&mut mask, scan);
        }
        let left = self.left.unwrap_or(ANY_NUMBER);
        if let Some(cursor) = &mut self.cursor
            && !cursor.restrict(&mut mask, left, vocabulary)
        {
            self.cursor = None;
        }
        if mask.is_empty() {
            return Err(GrammarError::NoTokenFits { taken: self.taken });
        }
        Ok(mask)
    }

    /// Takes a token. One that may not come leaves everything as it was.
    pub fn accept(&mut self, token: u32) -> Result<(), GrammarError> {
        if !self.allows(token)? {
            return Err(GrammarError::TokenRefused { token, taken: self.taken });
        }
        if self.grammar.end_tokens().contains(token) {
            self.ended += 1;
        } else {
            self.ask(|parser| {
                parser.consume_token(token)?;
                parser.check_stop()
            })?;
            let bytes = self.grammar.vocabulary().token_bytes(token);
            if self.cursor.as_mut().is_some_and(|cursor| !cursor.accept(bytes)) {
                self.cursor = None;
            }
            let next = self.scans.last().and_then(|scan| scan.after(bytes));
            self.scans.extend(next);
        }
        self.mask = None;
        self.taken += 1;
        self.left = self.left.map(|left| left.saturating_sub(1));
        Ok(())
    }

    /// Sets how many tokens may still be taken, one that ends the text included. Each that is
    /// taken is one less.
    pub fn set_tokens_left(&mut self, tokens: usize) {
        if self.left != Some(tokens) {
            (self.left, self.mask) = (Some(tokens), None);
        }
    }

    /// The fewest tokens that are known to complete the text, that which ends it left out; `None`
    /// where that is not known.
    pub fn shortest_end(&mut self) -> Option<usize> {
        let vocabulary = self.grammar.vocabulary();
        self.cursor.as_mut().and_then(|cursor| cursor.cost(vocabulary))
    }

    /// Whether a token may come next; cheaper than a mask.
    pub fn allows(&mut self, token: u32) -> Result<bool, GrammarError> {
        if let Some(mask) = &self.mask {
            return Ok(mask.contains(token));
        }
        if self.grammar.end_tokens().contains(token) {
            return self.is_accepting();
        }
        if self.is_finished() || token as usize >= self.grammar.vocabulary().tokens() {
            return Ok(false);
        }
        let bytes = self.grammar.vocabulary().token_bytes(token);
        if self.scans.last().is_some_and(|scan| scan.after(bytes).is_none()) {
            return Ok(false);
        }
        self.ask(|parser| parser.validate_token(token))
    }

    /// Whether the text may end here.
    pub fn is_accepting(&mut self) -> Result<bool, GrammarError> {
        if self.is_finished() {
            return Ok(true);
        }
        self.ask(|parser| Ok(parser.is_accepting()))
    }

    /// Whether the text is complete: only end tokens may come.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.ended > 0 || (self.failed.is_none() && self.parser.stopped())
    }

    /// The tokens, at most `most`, that must come next because nothing else may, end tokens
    /// left out. They need not be requested of a model, and the text is the same as if it were.
    ///
    /// They cost a mask each. Where a text is forced but can be cut into tokens in several ways
    /// there are none: how it is cut is the model's choice.
    pub fn forced_tokens(&mut self, most: usize) -> Result<Vec<u32>, GrammarError> {
        let mut forced = Vec::new();
        let mut fork = self.clone();
        while forced.len() < most && !fork.is_finished() {
            let mask = fork.mask()?;
            let only = if mask.count() == 1 { mask.iter().next() } else { None };
            let Some(token) = only else { break };
            if fork.grammar.end_tokens().contains(token) {
                break;
            }
            fork.accept(token)?;
            forced.push(token);
        }
        Ok(forced)
    }

    /// Takes back the last `tokens` tokens.
    pub fn rollback(&mut self, tokens: usize) -> Result<(), GrammarError> {
        if tokens > self.taken {
            return Err(GrammarError::Rollback { asked: tokens, taken: self.taken });
        }
        let ended = tokens.min(self.ended);
        if tokens > ended {
            self.ask(|parser| parser.rollback(tokens - ended))?;
            self.scans.truncate(self.scans.len().saturating_sub(tokens - ended));
            if let Some(cursor) = &mut self.cursor {
                cursor.rollback(tokens - ended);
            }
        }
        self.ended -= ended;
        self.taken -= tokens;
        self.left = self.left.map(|left| left + tokens);
        self.mask = None;
        Ok(())
    }

    /// Tokens taken, end tokens included.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken
    }

    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut TokenParser) -> anyhow::Result<T>,
    ) -> Result<T, GrammarError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let parser = &mut self.parser;
        caught(|| question(parser)).map_err(|error| {
            let error = failure(&self.parser, self.taken, &error.to_string());
            self.mask = None;
            self.failed.insert(error).clone()
        })
    }
}

impl Clone for Constraint {
    fn clone(&self) -> Self {
        Self {
            grammar: self.grammar.clone(),
            parser: self.parser.deep_clone(),
            mask: self.mask.clone(),
            scans: self.scans.clone(),
            cursor: self.cursor.clone(),
            failed: self.failed.clone(),
            ..*self
        }
    }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Constraint")
            .field("taken", &self.taken)
            .field("finished", &self.is_finished())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

//! A text on its way through a filter of patterns.

use std::{collections::VecDeque, sync::Arc};

use super::attempt::{Attempt, Seen};
use super::rules::{FilterAction, Rule};
use super::word::Letter;
use crate::{FilterState, FilterStep, TextError};

/// One text.
#[derive(Debug)]
pub(super) struct FilteredText {
    rules: Arc<[Rule]>,
    seen: Seen,
    /// The place up to which all is shown, or replaced.
    settled: usize,
    /// What is a match or may become one, by places, then by rules.
    attempts: VecDeque<Attempt>,
    is_stopped: bool,
}

impl FilteredText {
    pub(super) fn new(rules: Arc<[Rule]>) -> Self {
        let seen = Seen::new(&rules);
        Self { rules, seen, settled: 0, attempts: VecDeque::new(), is_stopped: false }
    }

    /// Continues the attempts, and begins those that a character may begin.
    fn take(&mut self, character: char) {
        let (at, before) = (self.seen.end(), self.seen.text.chars().next_back());
        let letter = Letter::new(character);
        self.seen.text.push(character);
        for attempt in &mut self.attempts {
            if let Some(rule) = self.rules.get(attempt.rule) {
                attempt.take(rule, &mut self.seen, at, &letter);
            }
        }
        self.attempts.retain(Attempt::is_alive);
        for (index, rule) in self.rules.iter().enumerate() {
            let mut attempt = Attempt::begin(index, rule, at, before);
            attempt.take(rule, &mut self.seen, at, &letter);
            if attempt.is_alive() {
                self.attempts.push_back(attempt);
            }
        }
    }

    /// Takes the actions of the matches that nothing can change any more, and shows what is sure to
    /// be part of none.
    fn settle(&mut self, shown: &mut String) {
        while let Some(attempt) = self.attempts.front() {
            shown.push_str(self.seen.between(self.settled, attempt.start));
            self.settled = attempt.start;
            let rule = self.rules.get(attempt.rule);
            match (attempt.found, rule.map(|rule| &rule.action)) {
                (Some(_), Some(FilterAction::Stop)) => {
                    self.is_stopped = true;
                    self.attempts.clear();
                    return;
                }
                (Some(end), Some(FilterAction::Replace(text))) if !attempt.is_open => {
                    shown.push_str(text);
                    self.settled = end;
                    self.attempts.retain(|attempt| attempt.start >= end);
                }
                _ => return,
            }
        }
        shown.push_str(self.seen.between(self.settled, self.seen.end()));
        self.settled = self.seen.end();
    }
}

impl FilterState for FilteredText {
    fn push(&mut self, text: &str) -> Result<FilterStep, TextError> {
        let mut shown = String::new();
        for character in text.chars() {
            if self.is_stopped {
                break;
            }
            self.take(character);
            self.settle(&mut shown);
            self.seen.forget(self.settled);
        }
        Ok(FilterStep { text: shown, stopped: self.is_stopped })
    }

    fn finish(&mut self) -> Result<FilterStep, TextError> {
        let mut shown = String::new();
        for attempt in &mut self.attempts {
            if let Some(rule) = self.rules.get(attempt.rule) {
                attempt.end(rule, &mut self.seen);
            }
        }
        self.attempts.retain(Attempt::is_alive);
        if !self.is_stopped {
            self.settle(&mut shown);
        }
        Ok(FilterStep { text: shown, stopped: self.is_stopped })
    }
}

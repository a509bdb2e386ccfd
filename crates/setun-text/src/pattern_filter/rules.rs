//! Patterns, and what is done about them.

#[cfg(feature = "regex")]
use super::expression::Expression;
use super::word::Word;
use crate::TextError;

/// A pattern, and what is done about its matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// What to look for.
    pub pattern: FilterPattern,
    /// What to do about it.
    pub action: FilterAction,
}

/// What a [`PatternFilter`](crate::PatternFilter) looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterPattern {
    /// A text of one character or more; it need not be a single word.
    Word {
        /// The text.
        text: String,
        /// Whether it counts only where no letter, digit or `_` stands directly before or after
        /// it.
        whole: bool,
        /// Whether capitals and small letters are the same: characters are whose capitals, or
        /// small letters, Unicode says to be the same.
        ignore_case: bool,
    },
    /// A regular expression in the syntax of the `regex` crate, which matches no empty text. Where
    /// it could end in several places it prefers as that crate does.
    #[cfg(feature = "regex")]
    Regex(String),
}

/// What a [`PatternFilter`](crate::PatternFilter) does about a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterAction {
    /// Shows this text instead, which may be empty.
    Replace(String),
    /// Ends the text before it, as soon as it is sure to match.
    Stop,
}

/// A rule that was checked.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) pattern: Pattern,
    pub(super) action: FilterAction,
}

#[derive(Debug)]
pub(super) enum Pattern {
    Word(Word),
    #[cfg(feature = "regex")]
    Expression(Expression),
}

impl Rule {
    /// The rule at this place of the list.
    pub(super) fn new(index: usize, rule: FilterRule) -> Result<Self, TextError> {
        let FilterRule { pattern, action } = rule;
        let pattern = match pattern {
            FilterPattern::Word { text, whole, ignore_case } => {
                if text.is_empty() {
                    let reason = "it is empty, expected a character or more".to_owned();
                    return Err(TextError::FilterPattern { index, pattern: text, reason });
                }
                Pattern::Word(Word::new(&text, whole, ignore_case))
            }
            #[cfg(feature = "regex")]
            FilterPattern::Regex(pattern) => match Expression::new(&pattern) {
                Ok(expression) => Pattern::Expression(expression),
                Err(reason) => return Err(TextError::FilterPattern { index, pattern, reason }),
            },
        };
        Ok(Self { pattern, action })
    }

    /// States of its automaton.
    #[cfg(feature = "regex")]
    pub(super) fn states(&self) -> usize {
        match &self.pattern {
            Pattern::Word(_) => 0,
            Pattern::Expression(expression) => expression.states(),
        }
    }
}

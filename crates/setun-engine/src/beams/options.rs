//! Options of a beam search.

use setun_text::{named_options, option_table};

use crate::error::Error;

option_table! {
    /// How a beam search goes on and ends, with the names of Hugging Face's `generate`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BeamOptions;

    /// Number of beams, which run side by side in one batch; at most the engine's `max_concurrent`.
    num_beams: usize as integer(1, 1024) = 4, "N", Beams;

    /// Number of texts to return, best first; at most `num_beams`.
    num_return_sequences: usize as integer(1, 1024) = 1, "K", Beams;

    /// Exponent of the length that divides a score: above 0 favours longer texts, below 0 shorter
    /// ones.
    length_penalty: f64 as FINITE = 1.0, "X", Beams;

    /// When a search ends that has as many texts as beams: at once (true), when a better one is
    /// unlikely (false), or when a better one is impossible (never).
    early_stopping: EarlyStopping as Choice(EarlyStopping::NAMES) = "false", "WHEN", Beams;

    /// Number of groups in diverse beam search; a divisor of `num_beams`.
    num_beam_groups: usize as integer(1, 1024) = 1, "G", Beams;

    /// Penalty on a token's log-probability for each beam of an earlier group that chose it in the
    /// same step; above 0 with several groups, else 0.
    diversity_penalty: f32 as NON_NEGATIVE = 0.0, "X", Beams;
}

/// When a search, or one of its groups, ends that has found as many texts as it has beams. One whose
/// beams have all ended, or come to the most tokens, ends in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EarlyStopping {
    /// At once. Hugging Face's `True`.
    Full,
    /// Once the best beam would not be better than the worst of the texts found, if it ended
    /// there. Hugging Face's `False`.
    #[default]
    Unlikely,
    /// Once the best beam cannot become better than the worst of the texts found, even if it
    /// came to the most tokens without losing anything. Hugging Face's `"never"`.
    Never,
}

named_options!(EarlyStopping { Full = "true", Unlikely = "false", Never = "never" });

impl BeamOptions {
    /// This many beams, and the defaults.
    #[must_use]
    pub fn new(num_beams: usize) -> Self {
        Self { num_beams, ..Self::default() }
    }

    /// Checks every value, and those that depend on each other.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_values()?;
        let Self { num_beams, num_beam_groups: groups, diversity_penalty, .. } = *self;
        let bad = |option, found, expected| Err(Error::BadOption { option, found, expected });
        if self.num_return_sequences > num_beams {
            let expected = format!("1 to {num_beams}, the beams");
            return bad("num_return_sequences", self.num_return_sequences.to_string(), expected);
        }
        if !num_beams.is_multiple_of(groups) {
            let expected = format!("a divisor of {num_beams}, the beams");
            return bad("num_beam_groups", groups.to_string(), expected);
        }
        let expected = match groups {
            1 if diversity_penalty != 0.0 => "0, as there is one group",
            2.. if diversity_penalty == 0.0 => "a number above 0, as there are groups",
            _ => return Ok(()),
        };
        bad("diversity_penalty", diversity_penalty.to_string(), expected.to_owned())
    }
}

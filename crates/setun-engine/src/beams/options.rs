//! Options of a beam search.

use std::{fmt, str::FromStr};

use crate::error::Error;

/// Most beams of a search.
const MAX_BEAMS: usize = 1024;

/// How a beam search goes on and ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeamOptions {
    /// Hypotheses that run side by side, 1 to 1024. Default: 4.
    pub beams: usize,
    /// Scores are divided by the length to this power: above 0 longer texts gain, below 0 shorter
    /// ones. Finite. Default: 1.
    pub length_penalty: f64,
    /// When a search ends. Default: [`EarlyStopping::Unlikely`].
    pub early_stopping: EarlyStopping,
    /// How many texts are given, the best first; 1 or more, and no more than `beams`. Default: 1.
    pub best: usize,
    /// Groups of equally many beams; a divisor of `beams`. Default: 1.
    pub groups: usize,
    /// Taken from the log-probability of a token for each beam of an earlier group that took it
    /// in the same step. 0 or more, finite, and above 0 where there are several groups, which
    /// would all find the same otherwise. Default: 0.
    pub diversity_penalty: f32,
}

impl Default for BeamOptions {
    fn default() -> Self {
        Self {
            beams: 4,
            length_penalty: 1.0,
            early_stopping: EarlyStopping::default(),
            best: 1,
            groups: 1,
            diversity_penalty: 0.0,
        }
    }
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

impl BeamOptions {
    /// This many beams, and the defaults.
    #[must_use]
    pub fn new(beams: usize) -> Self {
        Self { beams, ..Self::default() }
    }

    /// Checks all ranges.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let bad = |option, found: &dyn ToString, expected: String| {
            Err(Error::BadOption { option, found: found.to_string(), expected })
        };
        let Self { beams, length_penalty, best, groups, diversity_penalty, .. } = *self;
        if !(1..=MAX_BEAMS).contains(&beams) {
            return bad("beams", &beams, format!("1 to {MAX_BEAMS}"));
        }
        if !length_penalty.is_finite() {
            return bad("length_penalty", &length_penalty, "a finite number".into());
        }
        if !(1..=beams).contains(&best) {
            return bad("best", &best, format!("1 to {beams}, the beams"));
        }
        if groups == 0 || !beams.is_multiple_of(groups) {
            return bad("groups", &groups, format!("a divisor of {beams}, the beams"));
        }
        let is_number = diversity_penalty.is_finite() && diversity_penalty >= 0.0;
        match groups {
            1 if diversity_penalty != 0.0 => {
                bad("diversity_penalty", &diversity_penalty, "0, as there is one group".into())
            }
            2.. if !is_number || diversity_penalty == 0.0 => {
                let expected = "a finite number above 0, as there are groups".into();
                bad("diversity_penalty", &diversity_penalty, expected)
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for EarlyStopping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full => "true",
            Self::Unlikely => "false",
            Self::Never => "never",
        })
    }
}

/// Hugging Face's spelling: `true`, `false` or `never`.
impl FromStr for EarlyStopping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "true" => Ok(Self::Full),
            "false" => Ok(Self::Unlikely),
            "never" => Ok(Self::Never),
            _ => {
                let (found, expected) = (text.into(), "true, false or never".into());
                Err(Error::BadOption { option: "early_stopping", found, expected })
            }
        }
    }
}

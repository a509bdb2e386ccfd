//! The logits between sampling steps: at first a whole row, then a list.

use std::borrow::Cow;

use crate::{
    SamplingStep, TextError, TokenMask,
    ranked_candidates::{Ranked, RankedCandidates},
};

/// What happens to the logit of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// Divided where it is positive, multiplied where it is negative.
    Penalise(f32),
    /// Added to it.
    Add(f32),
}

impl Change {
    pub(crate) fn of(self, logit: f32) -> f32 {
        match self {
            Self::Penalise(penalty) if logit < 0.0 => logit * penalty,
            Self::Penalise(penalty) => logit / penalty,
            Self::Add(bias) => logit + bias,
        }
    }
}

/// A whole row, until a step looks at all of it: single tokens are changed and dropped where
/// they lie, and a greedy choice needs no list.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    logits: Cow<'a, [f32]>,
    allowed: Option<TokenMask>,
}

/// What the steps until now have left.
#[derive(Debug)]
pub(crate) enum LogitsState<'a> {
    Row(Row<'a>),
    List(RankedCandidates),
}

impl<'a> LogitsState<'a> {
    pub(crate) fn row(logits: &'a [f32]) -> Self {
        Self::Row(Row { logits: Cow::Borrowed(logits), allowed: None })
    }

    /// Changes tokens, which are ascending and have logits.
    pub(crate) fn change(
        &mut self,
        step: SamplingStep,
        changes: &[(u32, Change)],
    ) -> Result<(), TextError> {
        match self {
            Self::Row(row) => row.change(step, changes),
            Self::List(list) => list.change(|ranked| {
                let found = changes.binary_search_by_key(&ranked.token(), |&(token, _)| token);
                found.ok().map(|index| changes[index].1.of(ranked.logit()))
            }),
        }
    }

    /// Drops tokens, in any order.
    pub(crate) fn ban(&mut self, mut tokens: Vec<u32>) {
        match self {
            Self::Row(row) => {
                let allowed = row.allowed.get_or_insert_with(|| TokenMask::all(row.logits.len()));
                for token in tokens {
                    allowed.remove(token);
                }
            }
            Self::List(list) => {
                tokens.sort_unstable();
                list.retain(|ranked| tokens.binary_search(&ranked.token()).is_err());
            }
        }
    }

    /// Drops all tokens but these.
    pub(crate) fn allow(&mut self, mask: &TokenMask) {
        match self {
            Self::Row(row) => {
                let all = || TokenMask::all(row.logits.len());
                row.allowed.get_or_insert_with(all).intersect(mask);
            }
            Self::List(list) => list.retain(|ranked| mask.contains(ranked.token())),
        }
    }

    /// Drops all tokens but these, which are ascending.
    pub(crate) fn allow_only(&mut self, tokens: &[u32]) {
        match self {
            Self::Row(row) => {
                let mut mask = TokenMask::none(row.logits.len());
                for &token in tokens {
                    mask.insert(token);
                }
                self.allow(&mask);
            }
            Self::List(list) => {
                list.retain(|ranked| tokens.binary_search(&ranked.token()).is_ok());
            }
        }
    }

    /// Divides all logits.
    pub(crate) fn divide(self, divisor: f32) -> Result<Self, TextError> {
        Ok(Self::List(match self {
            Self::Row(row) => row.list(divisor)?,
            Self::List(mut list) => {
                list.change(|ranked| Some(ranked.logit() / divisor))?;
                list
            }
        }))
    }

    /// The list; one token or more.
    pub(crate) fn list(self) -> Result<RankedCandidates, TextError> {
        let list = match self {
            Self::Row(row) => row.list(1.0)?,
            Self::List(list) => list,
        };
        if list.is_empty() { Err(TextError::NoTokenLeft) } else { Ok(list) }
    }

    /// The best token.
    pub(crate) fn best(&self) -> Result<Ranked, TextError> {
        match self {
            Self::Row(row) => row.best(),
            Self::List(list) => list.best().ok_or(TextError::NoTokenLeft),
        }
    }
}

impl Row<'_> {
    fn change(&mut self, step: SamplingStep, changes: &[(u32, Change)]) -> Result<(), TextError> {
        let vocabulary = self.logits.len();
        for &(token, change) in changes {
            let Some(&logit) = self.logits.get(token as usize) else {
                return Err(match step {
                    SamplingStep::LogitBias => {
                        TextError::OptionToken { option: step.name(), token, vocabulary }
                    }
                    _ => TextError::TokenRange { token, vocabulary },
                });
            };
            if self.allowed.as_ref().is_none_or(|allowed| allowed.contains(token)) {
                let found = change.of(logit);
                finite(token, found)?;
                self.logits.to_mut()[token as usize] = found;
            }
        }
        Ok(())
    }

    /// The tokens that are allowed, their logits divided. All logits have to be finite.
    fn list(self, divisor: f32) -> Result<RankedCandidates, TextError> {
        let ranked = |(token, &logit): (u32, &f32)| finite(token, logit / divisor);
        let all = (0..=u32::MAX).zip(&*self.logits);
        let tokens: Vec<Ranked> = match &self.allowed {
            None => all.map(ranked).collect::<Result<_, _>>()?,
            Some(allowed) => {
                self.check()?;
                let logit = |token| Some((token, self.logits.get(token as usize)?));
                allowed.iter().filter_map(logit).map(ranked).collect::<Result<_, _>>()?
            }
        };
        if self.logits.is_empty() {
            Err(TextError::NoLogits)
        } else {
            Ok(RankedCandidates::new(tokens))
        }
    }

    /// The highest logit, of equal ones the lowest id.
    fn best(&self) -> Result<Ranked, TextError> {
        let mut best: Option<Ranked> = None;
        for (token, &logit) in (0..=u32::MAX).zip(&*self.logits) {
            let ranked = finite(token, logit)?;
            if self.allowed.as_ref().is_none_or(|allowed| allowed.contains(token)) {
                best = Some(best.map_or(ranked, |best| best.min(ranked)));
            }
        }
        let none =
            || if self.logits.is_empty() { TextError::NoLogits } else { TextError::NoTokenLeft };
        best.ok_or_else(none)
    }

    fn check(&self) -> Result<(), TextError> {
        let bad = (0..=u32::MAX).zip(&*self.logits).find(|(_, logit)| !logit.is_finite());
        bad.map_or(Ok(()), |(token, &found)| Err(TextError::LogitNotFinite { token, found }))
    }
}

/// A token with its logit, if that is a number to choose by.
pub(crate) fn finite(token: u32, found: f32) -> Result<Ranked, TextError> {
    let ranked = found.is_finite().then(|| Ranked::new(token, found));
    ranked.ok_or(TextError::LogitNotFinite { token, found })
}

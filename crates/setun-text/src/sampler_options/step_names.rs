//! Names and order of sampling steps, as options give them.

use std::str::FromStr;

use crate::{SamplingStep, TextError};

impl FromStr for SamplingStep {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let plain = |name: &str| -> String {
            name.chars()
                .filter(|c| !matches!(c, '_' | '-'))
                .map(|c| c.to_ascii_lowercase())
                .collect()
        };
        let wanted = plain(text);
        let found = Self::ORDER.iter().find(|step| plain(step.name()) == wanted);
        found.copied().ok_or_else(|| TextError::UnknownStep {
            found: text.to_owned(),
            known: Self::ORDER.iter().map(|step| step.name()).collect(),
        })
    }
}

impl SamplingStep {
    /// All steps: those that `given` leaves out in their usual order, then those that it names.
    ///
    /// # Errors
    ///
    /// If it names a step twice.
    pub(crate) fn ordered(given: &[Self]) -> Result<Vec<Self>, TextError> {
        let repeated =
            given.iter().enumerate().find(|(index, step)| given[..*index].contains(step));
        if let Some((_, step)) = repeated {
            return Err(TextError::RepeatedStep { step: step.name() });
        }
        let others = Self::ORDER.iter().filter(|step| !given.contains(step));
        Ok(others.chain(given).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling_of_its_own_names() {
        for &step in SamplingStep::ORDER {
            assert_eq!(step.to_string().parse::<SamplingStep>().ok(), Some(step));
            let hyphens = step.name().replace('_', "-");
            assert_eq!(hyphens.parse::<SamplingStep>().ok(), Some(step));
        }
        assert_eq!("topNSigma".parse::<SamplingStep>().ok(), Some(SamplingStep::TopNSigma));
        let error = "top_q".parse::<SamplingStep>().expect_err("there is none").to_string();
        assert!(error.contains("`top_q`") && error.contains("top_k, top_p"), "{error}");
    }

    #[test]
    fn steps_left_out_come_first() {
        use SamplingStep as Step;
        let order = Step::ordered(&[Step::TopP, Step::Temperature, Step::TopK]).expect("no twins");
        assert_eq!(order.len(), Step::ORDER.len());
        assert_eq!(order[..2], [Step::LogitBias, Step::RepetitionPenalty]);
        assert_eq!(
            order[order.len() - 4..],
            [Step::Mirostat, Step::TopP, Step::Temperature, Step::TopK]
        );
        assert_eq!(Step::ordered(&[]).expect("none"), Step::ORDER);
    }

    #[test]
    fn a_step_named_twice_is_refused() {
        use SamplingStep as Step;
        let error = Step::ordered(&[Step::TopP, Step::TopK, Step::TopP]).expect_err("twice");
        assert!(error.to_string().contains("`top_p` twice"), "{error}");
    }
}

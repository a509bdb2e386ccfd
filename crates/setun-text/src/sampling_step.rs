//! The steps from logits to a choice, and their order.

use std::{fmt, str::FromStr};

use crate::TextError;

macro_rules! steps {
    ($($(#[$doc:meta])* $step:ident = $name:literal,)*) => {
        /// A step from logits to a choice. A step whose options are off is not taken.
        ///
        /// Spelt `top_k`, `top-k` or `topK`; shown as the first of these.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SamplingStep {
            $($(#[$doc])* $step,)*
        }

        impl SamplingStep {
            /// All steps in the order in which Hugging Face's `generate` takes them. Those that
            /// it does not have stand beside their likes: frequency and presence penalties as
            /// in vLLM, top-nσ before whatever drops tokens, XTC and mirostat at the end.
            pub const ORDER: &[Self] = &[$(Self::$step),*];

            /// Its name, with underscores.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$step => $name,)*
                }
            }
        }
    };
}

steps! {
    /// Adds to logits.
    LogitBias = "logit_bias",
    /// Makes tokens of the history less likely.
    RepetitionPenalty = "repetition_penalty",
    /// Makes generated tokens less likely, by how often they came.
    FrequencyPenalty = "frequency_penalty",
    /// Makes generated tokens less likely.
    PresencePenalty = "presence_penalty",
    /// Makes tokens less likely that would prolong a repetition.
    Dry = "dry",
    /// Drops tokens that would repeat an n-gram.
    NoRepeatNgram = "no_repeat_ngram",
    /// Drops tokens that would complete a banned sequence.
    BannedSequences = "banned_sequences",
    /// Drops the tokens that end a text, while it is too short.
    MinTokens = "min_tokens",
    /// Drops banned tokens, and those that are not allowed.
    Tokens = "tokens",
    /// Calls the caller's own processors.
    Processors = "processors",
    /// Divides the logits, by a fixed or a dynamic temperature.
    Temperature = "temperature",
    /// Keeps logits within some standard deviations of the best.
    TopNSigma = "top_n_sigma",
    /// Keeps the best tokens.
    TopK = "top_k",
    /// Keeps the best tokens up to a share of the probability.
    TopP = "top_p",
    /// Keeps tokens with a share of the best one's probability.
    MinP = "min_p",
    /// Keeps tokens of typical information.
    TypicalP = "typical_p",
    /// Drops tokens below a probability.
    EpsilonCutoff = "epsilon_cutoff",
    /// Drops tokens below a probability that depends on the entropy.
    EtaCutoff = "eta_cutoff",
    /// Sometimes drops the likeliest tokens.
    Xtc = "xtc",
    /// Keeps tokens up to a surprise that follows the text.
    Mirostat = "mirostat",
}

impl SamplingStep {
    /// Whether greedy choices take it, too: it changes single tokens, whatever the others are.
    pub(crate) fn is_of_tokens(self) -> bool {
        use SamplingStep as Step;
        self.is_change() || self.is_ban() || matches!(self, Step::Processors)
    }

    /// Whether it changes the logits of single tokens.
    pub(crate) fn is_change(self) -> bool {
        use SamplingStep as Step;
        matches!(
            self,
            Step::LogitBias
                | Step::RepetitionPenalty
                | Step::FrequencyPenalty
                | Step::PresencePenalty
                | Step::Dry
        )
    }

    /// Whether it drops single tokens, whatever their logits are.
    pub(crate) fn is_ban(self) -> bool {
        use SamplingStep as Step;
        matches!(self, Step::NoRepeatNgram | Step::BannedSequences | Step::MinTokens | Step::Tokens)
    }

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

impl fmt::Display for SamplingStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

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

//! The steps from logits to a choice, and their order.

use std::fmt;

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
    LogitsProcessors = "logits_processors",
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
        self.is_change() || self.is_ban() || matches!(self, Step::LogitsProcessors)
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
}

impl fmt::Display for SamplingStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

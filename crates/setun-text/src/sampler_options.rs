//! Options of the sampler.

mod check;
mod step_names;
mod table;

use std::collections::BTreeMap;

use crate::{OptionKind, OptionValue, SamplingStep, SharedProcessor};

macro_rules! define_sampler_options {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $type:ty as $kind:ident = $default:literal,
        $value:literal, $group:ident $(, $modifier:ident)*;
    )*) => {
        /// Options of a [`Sampler`](crate::Sampler). The default is greedy.
        ///
        /// Penalties, biases, bans and processors act on greedy choices, too; the temperature and
        /// all that drops tokens by their probability do not. A probability is that among the
        /// tokens which the steps before have left; a generated token is one of the history after
        /// the prompt.
        #[derive(Clone, Debug, PartialEq)]
        pub struct SamplerOptions {
            $(
                $(#[doc = $doc])*
                ///
                #[doc = concat!(
                    "Range: [`", stringify!($kind), "`](crate::OptionKind::", stringify!($kind),
                    "). Default: ", $default, "."
                )]
                pub $name: $type,
            )*
            /// DRY: tokens that end a repetition and are never penalised.
            pub dry_breakers: Vec<u32>,
            /// Added to the logits of tokens. Finite.
            pub logit_bias: BTreeMap<u32, f32>,
            /// The only tokens that may come; all if none are given.
            pub allowed_tokens: Option<Vec<u32>>,
            /// Tokens that may not come.
            pub banned_tokens: Vec<u32>,
            /// Token sequences that may not come: where the history ends in all but the last token
            /// of one, prompt included, the last is dropped. Each has a token or more. As Hugging
            /// Face's `bad_words_ids`.
            pub banned_sequences: Vec<Vec<u32>>,
            /// The tokens that end a text.
            pub end_tokens: Vec<u32>,
            /// The caller's own steps, one after the other.
            pub logits_processors: Vec<SharedProcessor>,
            /// The last steps, each at most once; those that are left out are taken before them, in
            /// the order of [`SamplingStep::ORDER`]. Tokens that a [`Step`](crate::Step) does not
            /// allow are dropped before all.
            pub order: Vec<SamplingStep>,
        }

        impl Default for SamplerOptions {
            fn default() -> Self {
                Self {
                    $($name: $default,)*
                    dry_breakers: vec![],
                    logit_bias: BTreeMap::new(),
                    allowed_tokens: None,
                    banned_tokens: vec![],
                    banned_sequences: vec![],
                    end_tokens: vec![],
                    logits_processors: vec![],
                    order: vec![],
                }
            }
        }

        impl SamplerOptions {
            /// Each number with its name and kind.
            fn numbers(&self) -> impl Iterator<Item = (&'static str, OptionKind, OptionValue)> {
                [$((stringify!($name), OptionKind::$kind, OptionValue::from(self.$name)),)*]
                    .into_iter()
            }
        }
    };
}

crate::sampling_options!(define_sampler_options! {});

impl SamplerOptions {
    /// Whether a step does anything.
    pub(crate) fn takes(&self, step: SamplingStep) -> bool {
        use SamplingStep as Step;
        let is_sampled = self.temperature != 0.0;
        if !step.is_of_tokens() && !is_sampled {
            return false;
        }
        match step {
            Step::LogitBias => !self.logit_bias.is_empty(),
            Step::RepetitionPenalty => self.repetition_penalty != 1.0,
            Step::FrequencyPenalty => self.frequency_penalty != 0.0,
            Step::PresencePenalty => self.presence_penalty != 0.0,
            Step::Dry => self.dry_multiplier != 0.0,
            Step::NoRepeatNgram => self.no_repeat_ngram != 0,
            Step::BannedSequences => !self.banned_sequences.is_empty(),
            Step::MinTokens => self.min_tokens != 0 && !self.end_tokens.is_empty(),
            Step::Tokens => self.allowed_tokens.is_some() || !self.banned_tokens.is_empty(),
            Step::LogitsProcessors => !self.logits_processors.is_empty(),
            Step::Temperature => self.temperature != 1.0 || self.dynamic_temperature != 0.0,
            Step::TopNSigma => self.top_n_sigma != 0.0,
            Step::TopK => self.top_k != 0,
            Step::TopP => self.top_p != 1.0,
            Step::MinP => self.min_p != 0.0,
            Step::TypicalP => self.typical_p != 1.0,
            Step::EpsilonCutoff => self.epsilon_cutoff != 0.0,
            Step::EtaCutoff => self.eta_cutoff != 0.0,
            Step::Xtc => self.xtc_probability != 0.0,
            Step::Mirostat => self.mirostat_tau != 0.0,
        }
    }
}

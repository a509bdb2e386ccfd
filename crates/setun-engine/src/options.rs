//! Options of a generation.

mod defaults;
mod sampling;

use std::{collections::BTreeMap, time::Duration};

use setun_text::{Message, SamplingStep, SharedFilter, SharedProcessor};

use crate::{constraint::SharedConstraint, context::SharedContextStrategy, error::Error};

pub use defaults::DefaultOptions;
pub(crate) use sampling::Meaning;

/// Options of a generation. What is not given is as the model's own defaults say.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GenerateOptions {
    /// Most tokens to generate. Default: what fits the context; with a [`context`](Self::context)
    /// of one's own, no end.
    pub max_tokens: Option<usize>,
    /// Sampling temperature: 0, which always takes the likeliest token, or 0.000001 and up.
    pub temperature: Option<f32>,
    /// Only the `k` likeliest tokens (and ties); 0 for all.
    pub top_k: Option<usize>,
    /// Only the likeliest tokens that together have this probability, 0 to 1; the best one stays.
    pub top_p: Option<f32>,
    /// Only tokens at least this many times as probable as the likeliest, 0 to 1.
    pub min_p: Option<f32>,
    /// Divides (or, if negative, multiplies) the logits of tokens seen before; above 0.
    pub repetition_penalty: Option<f32>,
    /// How far the temperature moves with the entropy; 0 leaves it fixed.
    pub dynamic_temperature: Option<f32>,
    /// The exponent of a dynamic temperature; above 0, and 1 unless given.
    pub dynamic_temperature_exponent: Option<f32>,
    /// Only logits within so many standard deviations of the best; 0 for all.
    pub top_n_sigma: Option<f32>,
    /// Only the tokens of the most typical information that together have this probability.
    pub typical_p: Option<f32>,
    /// Only tokens of at least this probability; below 1.
    pub epsilon_cutoff: Option<f32>,
    /// Only tokens above a probability that is lower where the entropy is high; below 1.
    pub eta_cutoff: Option<f32>,
    /// How often the likeliest tokens but the last of them are dropped (XTC), 0 to 1.
    pub xtc_probability: Option<f32>,
    /// The probability that counts as likely there, 0 to 0.5, and 0.1 unless given.
    pub xtc_threshold: Option<f32>,
    /// The surprise in bits a token that mirostat steers towards; 0 for none.
    pub mirostat_tau: Option<f32>,
    /// How fast mirostat follows, 0.1 unless given.
    pub mirostat_eta: Option<f32>,
    /// Taken from a token's logit for each time that it was generated, −2 to 2. The prompt does
    /// not count, as `OpenAI` and vLLM define it.
    pub frequency_penalty: Option<f32>,
    /// Taken once from the logits of tokens that were generated, −2 to 2. The prompt does not
    /// count.
    pub presence_penalty: Option<f32>,
    /// No run of so many tokens comes twice, prompt included; 0 for any.
    pub no_repeat_ngram: Option<usize>,
    /// What DRY takes from tokens that would prolong a repetition, prompt included; 0 for none.
    pub dry_multiplier: Option<f32>,
    /// By how much a longer repetition costs more there, 1 or more, and 1.75 unless given.
    pub dry_base: Option<f32>,
    /// The length of a repetition that costs the multiplier alone; 2 unless given.
    pub dry_allowed_length: Option<usize>,
    /// Tokens that DRY looks back; all unless given, or 0.
    pub dry_range: Option<usize>,
    /// Where repetitions end for DRY: the token that such a text ends in after an "a". A line
    /// break, `:`, `"` and `*` unless given.
    pub dry_breakers: Option<Vec<String>>,
    /// What is added to the logits of tokens.
    pub logit_bias: BTreeMap<u32, f32>,
    /// The tokens that may come; all unless given.
    pub allowed_tokens: Option<Vec<u32>>,
    /// Tokens that may not come.
    pub banned_tokens: Vec<u32>,
    /// Texts that may not come, in the tokens that they have at the beginning of a text and after a
    /// space. Of one of several tokens the last may not follow the others; a text
    /// that comes in other tokens is not seen.
    pub ban: Vec<String>,
    /// Generated tokens before a token may come that ends the text.
    pub min_tokens: Option<usize>,
    /// The last steps of sampling, each at most once; those that are left out come before them,
    /// in the order of Hugging Face's `generate` ([`SamplingStep::ORDER`]).
    pub sampling_order: Vec<SamplingStep>,
    /// Steps of one's own, one after the other.
    pub processors: Vec<SharedProcessor>,
    /// Seed of the sampler. Default: random, and reported.
    pub seed: Option<u64>,
    /// Strings that end the text; they are not part of it.
    pub stop: Vec<String>,
    /// What looks at the text, behind the stop strings, before it is shown: it may hold text back,
    /// replace it, or end it ([`FinishReason::Filtered`](crate::FinishReason::Filtered)). Each
    /// text has a state of its own. Tokens, and with them sessions, stay what they are.
    pub filter: Option<SharedFilter>,
    /// Whether events carry log-probabilities.
    pub logprobs: bool,
    /// How many of the likeliest tokens events name, with their log-probabilities; 0 for none.
    pub top_logprobs: usize,
    /// Whether there is an event of the prompt first, with the log-probabilities of its tokens
    /// ([`Event::Prompt`](crate::Event::Prompt)). They are computed anew, cached or not.
    pub echo: bool,
    /// The form that the text is to have, as a JSON schema or a grammar says.
    pub form: Option<SharedConstraint>,
    /// Most tokens that are guessed at once, from what followed the same words earlier in the
    /// text, and verified in one step: faster where a text repeats its prompt or itself. It
    /// changes no text, sampled or not. 0, the default, guesses none; 12 is a good number. An
    /// engine with a draft guesses by that.
    pub lookahead: usize,
    /// What becomes of a text that fills the context, or a prompt that does not fit. Default: the
    /// text ends, and the prompt is refused.
    pub context: Option<SharedContextStrategy>,
    /// Those of a higher priority start first, and keep their memory longer. Default: 0.
    pub priority: i32,
    /// Time from the call on, after which the generation ends with what it has
    /// ([`FinishReason::Deadline`](crate::FinishReason::Deadline)). Default: none.
    pub deadline: Option<Duration>,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = Some($name);
            self
        }
    )*};
}

use setters;

impl GenerateOptions {
    /// The model's own defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets [`max_tokens`](Self::max_tokens).
        max_tokens: usize,
        /// Sets [`seed`](Self::seed).
        seed: u64,
        /// Sets [`deadline`](Self::deadline).
        deadline: Duration,
        /// Sets [`form`](Self::form).
        form: SharedConstraint,
        /// Sets [`context`](Self::context).
        context: SharedContextStrategy,
        /// Sets [`filter`](Self::filter).
        filter: SharedFilter,
    }

    /// Adds a stop string.
    #[must_use]
    pub fn stop(mut self, stop: impl Into<String>) -> Self {
        self.stop.push(stop.into());
        self
    }

    /// Sets [`logprobs`](Self::logprobs).
    #[must_use]
    pub fn logprobs(mut self, logprobs: bool) -> Self {
        self.logprobs = logprobs;
        self
    }

    /// Sets [`top_logprobs`](Self::top_logprobs).
    #[must_use]
    pub fn top_logprobs(mut self, tokens: usize) -> Self {
        self.top_logprobs = tokens;
        self
    }

    /// Sets [`echo`](Self::echo).
    #[must_use]
    pub fn echo(mut self, echo: bool) -> Self {
        self.echo = echo;
        self
    }

    /// Sets [`lookahead`](Self::lookahead).
    #[must_use]
    pub fn lookahead(mut self, tokens: usize) -> Self {
        self.lookahead = tokens;
        self
    }

    /// Sets [`priority`](Self::priority).
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let bad = |option, found: &dyn ToString, expected: &str| {
            Err(Error::BadOption { option, found: found.to_string(), expected: expected.into() })
        };
        if self.max_tokens == Some(0) {
            return bad("max_tokens", &0, "1 or more");
        }
        if let (Some(least), Some(most)) = (self.min_tokens, self.max_tokens)
            && least > most
        {
            return bad("min_tokens", &least, "no more than max_tokens");
        }
        if self.ban.iter().any(String::is_empty) {
            return bad("ban", &"an empty text", "a character or more");
        }
        Ok(())
    }
}

/// What a generation starts from.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// Text; special tokens are added as the tokenizer's post-processor says.
    Text(String),
    /// Tokens as they are.
    Tokens(Vec<u32>),
    /// A conversation, rendered by the model's own template.
    Chat(Vec<Message>),
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u32>> for Prompt {
    fn from(tokens: Vec<u32>) -> Self {
        Self::Tokens(tokens)
    }
}

impl From<Vec<Message>> for Prompt {
    fn from(messages: Vec<Message>) -> Self {
        Self::Chat(messages)
    }
}

//! Options of a generation.

use std::time::Duration;

use setun_text::{Message, SamplerOptions};

use crate::error::Error;

/// Options of a generation. What is not given is as the model's own defaults say.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GenerateOptions {
    /// Most tokens to generate. Default: what fits the context.
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
    /// Seed of the sampler. Default: random, and reported.
    pub seed: Option<u64>,
    /// Strings that end the text; they are not part of it.
    pub stop: Vec<String>,
    /// Whether events carry log-probabilities.
    pub logprobs: bool,
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

impl GenerateOptions {
    /// The model's own defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets [`max_tokens`](Self::max_tokens).
        max_tokens: usize,
        /// Sets [`temperature`](Self::temperature).
        temperature: f32,
        /// Sets [`top_k`](Self::top_k).
        top_k: usize,
        /// Sets [`top_p`](Self::top_p).
        top_p: f32,
        /// Sets [`min_p`](Self::min_p).
        min_p: f32,
        /// Sets [`repetition_penalty`](Self::repetition_penalty).
        repetition_penalty: f32,
        /// Sets [`seed`](Self::seed).
        seed: u64,
        /// Sets [`deadline`](Self::deadline).
        deadline: Duration,
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

    /// Sets [`priority`](Self::priority).
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// These options over a model's own.
    pub(crate) fn sampler(&self, defaults: &SamplerOptions) -> SamplerOptions {
        SamplerOptions {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_k: self.top_k.unwrap_or(defaults.top_k),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            min_p: self.min_p.unwrap_or(defaults.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(defaults.repetition_penalty),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.max_tokens == Some(0) {
            return Err(Error::BadOption {
                option: "max_tokens",
                found: "0".into(),
                expected: "1 or more".into(),
            });
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

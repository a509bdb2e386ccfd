//! How the next token is chosen.

mod check;

use std::collections::BTreeMap;

use crate::{SamplingStep, SharedProcessor};

/// The lowest temperature besides 0. Anything below is greedy in all but name, and logits
/// divided by much less overflow.
pub const LEAST_TEMPERATURE: f32 = 1e-6;

/// Options of a [`Sampler`](crate::Sampler). The default is greedy.
///
/// Penalties, biases, bans and processors act on greedy choices, too; the temperature and all
/// that drops tokens by their probability do not. A probability is that among the tokens which
/// the steps before have left; a generated token is one of the history after the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerOptions {
    /// Divides the logits: below 1 sharper, above 1 flatter. 0 always takes the best token. 0,
    /// or [`LEAST_TEMPERATURE`] or more, and finite.
    pub temperature: f32,
    /// Lets the temperature follow the entropy *H* of the *n* tokens that are left: it lies
    /// between *max(0, t − r)* and *t + r*, at the share *(H / ln n)^exponent* of the way, where
    /// *t* is `temperature` and *r* this range. At 0 the best token alone is left. 0 keeps it
    /// fixed. 0 or more, finite. As llama.cpp's `dynatemp_range`.
    pub dynamic_temperature: f32,
    /// The exponent in it. Above 0, finite.
    pub dynamic_temperature_exponent: f32,
    /// Keeps logits of *best − n·σ* and more, σ being the standard deviation of those that are
    /// left (the root of the mean square). 0 keeps all. 0 or more, finite. Tang et al., "Top-nσ:
    /// not all logits are you need", 2024.
    pub top_n_sigma: f32,
    /// Keeps the `top_k` best tokens and all that tie with the last of them; 0 keeps all.
    pub top_k: usize,
    /// Keeps the best tokens until they have this share of the probability; 1 keeps all.
    /// From 0 to 1; the best token always stays.
    pub top_p: f32,
    /// Keeps tokens with at least this share of the best one's probability; 0 keeps all.
    /// From 0 to 1.
    pub min_p: f32,
    /// Keeps the tokens whose information, *−ln p*, is nearest to the entropy, until they have
    /// this share of the probability, and all that tie with the last of them; 1 keeps all. From
    /// 0 to 1. Meister et al., "Locally typical sampling", 2022.
    pub typical_p: f32,
    /// Keeps tokens of this probability and more, and the best; 0 keeps all. 0 or more, below 1.
    /// Hewitt, Manning and Liang, "Truncation sampling as language model desmoothing", 2022.
    pub epsilon_cutoff: f32,
    /// Keeps tokens of the probability *min(η, √η · e^−H)* and more, *H* being the entropy, and
    /// the best; 0 keeps all. 0 or more, below 1. From the same paper.
    pub eta_cutoff: f32,
    /// How often XTC drops the likeliest tokens: where two or more have `xtc_threshold` of the
    /// probability, all of them but the last. 0 to 1. Weidmann's "exclude top choices", 2024.
    pub xtc_probability: f32,
    /// The probability that a token needs for it. From 0 to 0.5: no two could have more.
    pub xtc_threshold: f32,
    /// The surprise, in bits a token, that mirostat steers towards; 0 is none. 0 or more, finite.
    /// A token stays while *−log₂ p ≤ μ*, and the best does; *μ* is 2τ at first, and after a
    /// token of the surprise *S* among all that are left at the end it is *μ − η(S − τ)*. Basu
    /// et al., "Mirostat: a neural text decoding algorithm that directly controls perplexity",
    /// 2021, in its authors' second version.
    pub mirostat_tau: f32,
    /// The rate η of it. 0 or more, finite.
    pub mirostat_eta: f32,
    /// Divides the positive logits of tokens that occurred, and multiplies the negative ones;
    /// 1 leaves them. Finite, above 0. Prompt and generated tokens, once however often they
    /// occurred. Keskar et al., "CTRL", 2019.
    pub repetition_penalty: f32,
    /// Taken from a token's logit for each time that it was generated; the prompt does not
    /// count. −2 to 2, and 0 for none, as `OpenAI` and vLLM define it.
    pub frequency_penalty: f32,
    /// Taken once from the logit of a token that was generated; the prompt does not count. −2 to
    /// 2, and 0 for none, as `OpenAI` and vLLM define it.
    pub presence_penalty: f32,
    /// No run of so many tokens comes twice, prompt included; 0 for any. As Hugging Face.
    pub no_repeat_ngram: usize,
    /// DRY: where the last *m* tokens occurred before, the token that followed them then loses
    /// *multiplier · base^(m − allowed length)*, if *m* is no less than that length. The longest
    /// such *m* counts, and no more than 50; the loss is at most 10³⁰. 0 for none. 0 or more,
    /// finite. Weidmann's "don't repeat yourself", 2024.
    pub dry_multiplier: f32,
    /// The base in it. 1 or more, finite.
    pub dry_base: f32,
    /// The length of a repetition that costs the multiplier alone.
    pub dry_allowed_length: usize,
    /// Looks back at so many tokens, prompt included; 0 for all.
    pub dry_range: usize,
    /// Tokens that no match contains and that are never made less likely.
    pub dry_breakers: Vec<u32>,
    /// What is added to the logits of tokens. Finite.
    pub logit_bias: BTreeMap<u32, f32>,
    /// The tokens that may come; all if none are given.
    pub allowed_tokens: Option<Vec<u32>>,
    /// Tokens that may not come.
    pub banned_tokens: Vec<u32>,
    /// Sequences of tokens that may not come: where all but the last of one are the end of the
    /// history, prompt included, the last is dropped. Each has a token or more. As Hugging
    /// Face's `bad_words_ids`.
    pub banned_sequences: Vec<Vec<u32>>,
    /// Generated tokens before one of `end_tokens` may come.
    pub min_tokens: usize,
    /// The tokens that end a text.
    pub end_tokens: Vec<u32>,
    /// The caller's own steps, one after the other.
    pub processors: Vec<SharedProcessor>,
    /// The last steps, each at most once; those that are left out are taken before them, in the
    /// order of [`SamplingStep::ORDER`]. Tokens that a [`Step`](crate::Step) does not allow are
    /// dropped before all.
    pub order: Vec<SamplingStep>,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            dynamic_temperature: 0.0,
            dynamic_temperature_exponent: 1.0,
            top_n_sigma: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            mirostat_tau: 0.0,
            mirostat_eta: 0.1,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            no_repeat_ngram: 0,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_range: 0,
            dry_breakers: vec![],
            logit_bias: BTreeMap::new(),
            allowed_tokens: None,
            banned_tokens: vec![],
            banned_sequences: vec![],
            min_tokens: 0,
            end_tokens: vec![],
            processors: vec![],
            order: vec![],
        }
    }
}

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
            Step::Processors => !self.processors.is_empty(),
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

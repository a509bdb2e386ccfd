//! How to sample.

use clap::{Args, builder::NonEmptyStringValueParser};
use setun::{GenerateOptions, SamplingStep, text::MIN_TEMPERATURE};

use super::number;

/// The largest number below 1.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;

/// How to sample. What is not given is as the model's own defaults say.
#[derive(Args, Debug)]
pub(crate) struct SamplingArgs {
    /// Most tokens to generate [default: what fits the context]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,

    /// Randomness: 0 always takes the likeliest token; else 0.000001 or more
    #[arg(long, value_name = "T", value_parser = temperature)]
    temperature: Option<f32>,

    /// Only the K likeliest tokens; 0 for all
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,

    /// Only the likeliest tokens that together have this probability; 0 for the likeliest alone
    #[arg(long, value_name = "P", value_parser = number(0.0, 1.0))]
    top_p: Option<f32>,

    /// Only tokens at least this many times as probable as the likeliest
    #[arg(long, value_name = "P", value_parser = number(0.0, 1.0))]
    min_p: Option<f32>,

    /// Makes tokens that occurred before less likely; 1 does nothing
    #[arg(long, value_name = "R", value_parser = number(f32::MIN_POSITIVE, f32::MAX))]
    repetition_penalty: Option<f32>,

    /// Seed, for the same text again [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Ends the text before this string; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    #[command(flatten)]
    penalties: PenaltyArgs,

    #[command(flatten)]
    filters: FilterArgs,
}

/// What single tokens gain or lose.
#[derive(Args, Debug)]
#[command(next_help_heading = "Penalties, biases and bans")]
struct PenaltyArgs {
    /// Taken from a logit for each time that the token was generated
    #[arg(long, value_name = "R", value_parser = number(-2.0, 2.0), allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,

    /// Taken once from the logits of tokens that were generated
    #[arg(long, value_name = "R", value_parser = number(-2.0, 2.0), allow_negative_numbers = true)]
    presence_penalty: Option<f32>,

    /// No run of N tokens comes twice; 0 for any
    #[arg(long, value_name = "N")]
    no_repeat_ngram: Option<usize>,

    /// Taken from tokens that would prolong a repetition (DRY); 0 for none
    #[arg(long, value_name = "R", value_parser = number(0.0, f32::MAX))]
    dry_multiplier: Option<f32>,

    /// By how much a longer repetition costs more there [default: 1.75]
    #[arg(long, value_name = "R", value_parser = number(1.0, f32::MAX))]
    dry_base: Option<f32>,

    /// The length of a repetition that costs the multiplier alone [default: 2]
    #[arg(long, value_name = "N")]
    dry_allowed_length: Option<usize>,

    /// Tokens that are looked back at; 0 for all [default: 0]
    #[arg(long, value_name = "N")]
    dry_range: Option<usize>,

    /// Ends repetitions for DRY; may be given several times [default: line break, `:`, `"`, `*`]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    dry_breaker: Vec<String>,

    /// Adds V to the logit of a token; may be given several times
    #[arg(long, value_name = "ID=V", value_parser = bias, allow_hyphen_values = true)]
    logit_bias: Vec<(u32, f32)>,

    /// The tokens that may come
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    allow_tokens: Vec<u32>,

    /// Tokens that may not come
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    ban_tokens: Vec<u32>,

    /// A text that may not come, in the tokens that the tokenizer gives it; several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    ban: Vec<String>,

    /// Tokens before the text may end by itself
    #[arg(long, value_name = "N")]
    min_tokens: Option<usize>,
}

/// What leaves out tokens by their probability.
#[derive(Args, Debug)]
#[command(next_help_heading = "More filters")]
struct FilterArgs {
    /// Moves the temperature by up to R with the entropy; 0 leaves it fixed
    #[arg(long, value_name = "R", value_parser = number(0.0, f32::MAX))]
    dynamic_temperature: Option<f32>,

    /// The exponent of a dynamic temperature [default: 1]
    #[arg(long, value_name = "E", value_parser = number(f32::MIN_POSITIVE, f32::MAX))]
    dynamic_temperature_exponent: Option<f32>,

    /// Only logits within N standard deviations of the best; 0 for all
    #[arg(long, value_name = "N", value_parser = number(0.0, f32::MAX))]
    top_n_sigma: Option<f32>,

    /// Only the tokens of the most typical information that together have this probability
    #[arg(long, value_name = "P", value_parser = number(0.0, 1.0))]
    typical_p: Option<f32>,

    /// Only tokens of at least this probability
    #[arg(long, value_name = "P", value_parser = number(0.0, BELOW_ONE))]
    epsilon_cutoff: Option<f32>,

    /// Only tokens above a probability that is lower where the entropy is high
    #[arg(long, value_name = "P", value_parser = number(0.0, BELOW_ONE))]
    eta_cutoff: Option<f32>,

    /// How often the likeliest tokens but the last of them are dropped
    #[arg(long, value_name = "P", value_parser = number(0.0, 1.0))]
    xtc_probability: Option<f32>,

    /// The probability that counts as likely there [default: 0.1]
    #[arg(long, value_name = "P", value_parser = number(0.0, 0.5))]
    xtc_threshold: Option<f32>,

    /// Steers towards this surprise a token; 0 for none
    #[arg(long, value_name = "BITS", value_parser = number(0.0, f32::MAX))]
    mirostat_tau: Option<f32>,

    /// How fast it follows [default: 0.1]
    #[arg(long, value_name = "RATE", value_parser = number(0.0, f32::MAX))]
    mirostat_eta: Option<f32>,

    /// The last steps in their order, as `top_p,min_p,temperature`; all others come before
    #[arg(long, value_name = "STEPS", value_delimiter = ',', value_parser = step)]
    sampling_order: Vec<SamplingStep>,
}

macro_rules! copy {
    ($from:ident => $to:ident: $($name:ident),* $(,)?) => {
        $($to.$name = $from.$name;)*
    };
}

impl SamplingArgs {
    pub(super) fn options(&self) -> GenerateOptions {
        let mut options = GenerateOptions::new();
        options.max_tokens = self.max_tokens.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        options.stop.clone_from(&self.stop);
        copy!(self => options: temperature, top_k, top_p, min_p, repetition_penalty, seed);
        self.penalties.add(&mut options);
        self.filters.add(&mut options);
        options
    }
}

impl PenaltyArgs {
    fn add(&self, options: &mut GenerateOptions) {
        copy!(self => options: frequency_penalty, presence_penalty, no_repeat_ngram, dry_multiplier, dry_base, dry_allowed_length, dry_range, min_tokens);
        options.dry_breakers = Some(self.dry_breaker.clone()).filter(|list| !list.is_empty());
        options.logit_bias = self.logit_bias.iter().copied().collect();
        options.allowed_tokens = Some(self.allow_tokens.clone()).filter(|list| !list.is_empty());
        options.banned_tokens.clone_from(&self.ban_tokens);
        options.ban.clone_from(&self.ban);
    }
}

impl FilterArgs {
    fn add(&self, options: &mut GenerateOptions) {
        copy!(self => options: dynamic_temperature, dynamic_temperature_exponent, top_n_sigma, typical_p, epsilon_cutoff, eta_cutoff, xtc_probability, xtc_threshold, mirostat_tau, mirostat_eta);
        options.sampling_order.clone_from(&self.sampling_order);
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    let allowed = |number: &f32| *number == 0.0 || (MIN_TEMPERATURE..=f32::MAX).contains(number);
    let number = text.parse().ok().filter(allowed);
    number.ok_or_else(|| format!("0, or a number of {MIN_TEMPERATURE} or more"))
}

fn bias(text: &str) -> Result<(u32, f32), String> {
    let parsed = text.split_once('=').and_then(|(token, bias)| {
        let bias = bias.parse().ok().filter(|bias: &f32| bias.is_finite());
        token.parse().ok().zip(bias)
    });
    parsed.ok_or_else(|| "the id of a token, `=` and a number".to_owned())
}

fn step(text: &str) -> Result<SamplingStep, String> {
    text.parse().map_err(|error: setun::text::TextError| error.to_string())
}

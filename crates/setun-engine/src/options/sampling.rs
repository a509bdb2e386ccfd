//! The options of sampling.

use std::collections::BTreeMap;

use setun_text::{
    LogitsProcessor, Sampler, SamplerOptions, SamplingStep, SharedProcessor, Tokenizer,
};

use super::{GenerateOptions, setters};
use crate::error::Error;

/// Where repetitions end for DRY, unless others are given: as its author proposes.
const DRY_BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

/// What options mean for a model.
pub(crate) struct Meaning<'a> {
    pub(crate) defaults: &'a SamplerOptions,
    pub(crate) tokenizer: Option<&'a dyn Tokenizer>,
    pub(crate) end_tokens: &'a [u32],
    pub(crate) vocabulary: usize,
}

impl GenerateOptions {
    setters! {
        /// Sets [`temperature`](Self::temperature).
        temperature: f32,
        /// Sets [`dynamic_temperature`](Self::dynamic_temperature).
        dynamic_temperature: f32,
        /// Sets [`dynamic_temperature_exponent`](Self::dynamic_temperature_exponent).
        dynamic_temperature_exponent: f32,
        /// Sets [`top_n_sigma`](Self::top_n_sigma).
        top_n_sigma: f32,
        /// Sets [`top_k`](Self::top_k).
        top_k: usize,
        /// Sets [`top_p`](Self::top_p).
        top_p: f32,
        /// Sets [`min_p`](Self::min_p).
        min_p: f32,
        /// Sets [`typical_p`](Self::typical_p).
        typical_p: f32,
        /// Sets [`epsilon_cutoff`](Self::epsilon_cutoff).
        epsilon_cutoff: f32,
        /// Sets [`eta_cutoff`](Self::eta_cutoff).
        eta_cutoff: f32,
        /// Sets [`xtc_probability`](Self::xtc_probability).
        xtc_probability: f32,
        /// Sets [`xtc_threshold`](Self::xtc_threshold).
        xtc_threshold: f32,
        /// Sets [`mirostat_tau`](Self::mirostat_tau).
        mirostat_tau: f32,
        /// Sets [`mirostat_eta`](Self::mirostat_eta).
        mirostat_eta: f32,
        /// Sets [`repetition_penalty`](Self::repetition_penalty).
        repetition_penalty: f32,
        /// Sets [`frequency_penalty`](Self::frequency_penalty).
        frequency_penalty: f32,
        /// Sets [`presence_penalty`](Self::presence_penalty).
        presence_penalty: f32,
        /// Sets [`no_repeat_ngram`](Self::no_repeat_ngram).
        no_repeat_ngram: usize,
        /// Sets [`dry_multiplier`](Self::dry_multiplier).
        dry_multiplier: f32,
        /// Sets [`dry_base`](Self::dry_base).
        dry_base: f32,
        /// Sets [`dry_allowed_length`](Self::dry_allowed_length).
        dry_allowed_length: usize,
        /// Sets [`dry_range`](Self::dry_range).
        dry_range: usize,
        /// Sets [`min_tokens`](Self::min_tokens).
        min_tokens: usize,
        /// Sets [`dry_breakers`](Self::dry_breakers).
        dry_breakers: Vec<String>,
        /// Sets [`allowed_tokens`](Self::allowed_tokens).
        allowed_tokens: Vec<u32>,
    }

    /// Sets [`logit_bias`](Self::logit_bias).
    #[must_use]
    pub fn logit_bias(mut self, biases: impl Into<BTreeMap<u32, f32>>) -> Self {
        self.logit_bias = biases.into();
        self
    }

    /// Sets [`banned_tokens`](Self::banned_tokens).
    #[must_use]
    pub fn banned_tokens(mut self, tokens: impl Into<Vec<u32>>) -> Self {
        self.banned_tokens = tokens.into();
        self
    }

    /// Adds a text to [`ban`](Self::ban).
    #[must_use]
    pub fn ban(mut self, text: impl Into<String>) -> Self {
        self.ban.push(text.into());
        self
    }

    /// Sets [`sampling_order`](Self::sampling_order).
    #[must_use]
    pub fn sampling_order(mut self, steps: impl Into<Vec<SamplingStep>>) -> Self {
        self.sampling_order = steps.into();
        self
    }

    /// Adds a step of one's own to [`processors`](Self::processors).
    #[must_use]
    pub fn processor(mut self, processor: impl LogitsProcessor + 'static) -> Self {
        self.processors.push(SharedProcessor::new(processor));
        self
    }

    /// A sampler by these options over a model's own.
    pub(crate) fn sampler(&self, meaning: &Meaning<'_>) -> Result<Sampler, Error> {
        let mut options = self.over(meaning.defaults);
        options.end_tokens = meaning.end_tokens.to_vec();
        if options.dry_multiplier != 0.0 {
            options.dry_breakers = self.breakers(meaning)?;
        }
        if !self.ban.is_empty() {
            let tokenizer = meaning.tokenizer.ok_or(Error::BadOption {
                option: "ban",
                found: "given".into(),
                expected: "a model with a tokenizer, or banned_tokens".into(),
            })?;
            for text in &self.ban {
                options.banned_sequences.push(tokenizer.encode(text, false)?);
                options.banned_sequences.push(tokenizer.encode(&format!(" {text}"), false)?);
            }
        }
        let sampler = Sampler::new(options)?;
        sampler.options().check_vocabulary(meaning.vocabulary)?;
        Ok(sampler)
    }

    /// The tokens at which repetitions end: the last of each text, written after a letter.
    fn breakers(&self, meaning: &Meaning<'_>) -> Result<Vec<u32>, Error> {
        let Some(tokenizer) = meaning.tokenizer else { return Ok(vec![]) };
        let usual = || DRY_BREAKERS.map(str::to_owned).to_vec();
        let mut tokens = vec![];
        for text in self.dry_breakers.clone().unwrap_or_else(usual) {
            tokens.extend(tokenizer.encode(&format!("a{text}"), false)?.last());
        }
        Ok(tokens)
    }

    /// The sampler's options: these, and the defaults where they are not given.
    #[must_use]
    pub fn over(&self, defaults: &SamplerOptions) -> SamplerOptions {
        macro_rules! over {
            ($($name:ident,)*) => {
                SamplerOptions {
                    $($name: self.$name.unwrap_or(defaults.$name),)*
                    logit_bias: self.logit_bias.clone(),
                    allowed_tokens: self.allowed_tokens.clone(),
                    banned_tokens: self.banned_tokens.clone(),
                    processors: self.processors.clone(),
                    order: self.sampling_order.clone(),
                    ..defaults.clone()
                }
            };
        }
        over! {
            temperature,
            dynamic_temperature,
            dynamic_temperature_exponent,
            top_n_sigma,
            top_k,
            top_p,
            min_p,
            typical_p,
            epsilon_cutoff,
            eta_cutoff,
            xtc_probability,
            xtc_threshold,
            mirostat_tau,
            mirostat_eta,
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            no_repeat_ngram,
            dry_multiplier,
            dry_base,
            dry_allowed_length,
            dry_range,
            min_tokens,
        }
    }
}

#[cfg(test)]
mod tests;

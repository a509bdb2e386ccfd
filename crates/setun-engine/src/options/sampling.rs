//! The sampler of a generation, from its options.

use setun_text::{Sampler, SamplerOptions, Tokenizer};

use super::GenerateOptions;
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
    /// A sampler by these options over a model's own.
    pub(crate) fn sampler(&self, meaning: &Meaning<'_>) -> Result<Sampler, Error> {
        let mut options = self.over(meaning.defaults);
        options.end_tokens = meaning.end_tokens.to_vec();
        if options.dry_multiplier != 0.0 {
            options.dry_breakers = self.breakers(meaning)?;
        }
        if !self.bad_words.is_empty() {
            let tokenizer = meaning.tokenizer.ok_or(Error::BadOption {
                option: "bad_words",
                found: "given".into(),
                expected: "a model with a tokenizer, or banned_tokens".into(),
            })?;
            for text in &self.bad_words {
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
            ($($(#[$doc:meta])* $name:ident: $type:ty as $kind:ident = $($rest:tt),*;)*) => {
                SamplerOptions {
                    $($name: self.$name.unwrap_or(defaults.$name),)*
                    logit_bias: self.logit_bias.clone(),
                    allowed_tokens: self.allowed_tokens.clone(),
                    banned_tokens: self.banned_tokens.clone(),
                    logits_processors: self.logits_processors.clone(),
                    order: self.sampling_order.clone(),
                    ..defaults.clone()
                }
            };
        }
        setun_text::sampling_options!(over! {})
    }
}

#[cfg(test)]
mod tests;

//! Generations that go on after tokens that were generated before.

use super::{Engine, Shared};
use crate::{context::SharedContextStrategy, error::Error, options::GenerateOptions};

/// Checks the tokens that were generated before, and what they are given with.
///
/// # Errors
///
/// If there are too many, one is not of the vocabulary, or an option depends on more than they hold.
pub(super) fn check(
    options: &GenerateOptions,
    max_tokens: usize,
    vocabulary: usize,
) -> Result<(), Error> {
    let tokens = &options.generated_tokens;
    let bad = |found: String, expected: String| {
        Err(Error::BadOption { option: "generated_tokens", found, expected })
    };
    if tokens.len() > max_tokens {
        let expected = format!("{max_tokens} tokens or fewer, as max_tokens and the context allow");
        return bad(format!("{} tokens", tokens.len()), expected);
    }
    if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
        return bad(format!("token {token}"), format!("tokens below {vocabulary}"));
    }
    if options.mirostat_tau.is_some_and(|tau| tau > 0.0) {
        return bad("given".into(), "no mirostat_tau beside them".into());
    }
    if options.prompt_logprobs == Some(true) {
        return bad("given".into(), "no prompt_logprobs beside them".into());
    }
    Ok(())
}

impl Engine {
    /// What the model sees after these tokens, of which each was taken where there was room.
    pub(super) fn replay_context(
        &self,
        mut seen: Vec<u32>,
        strategy: &SharedContextStrategy,
        generated: &[u32],
    ) -> Result<Vec<u32>, Error> {
        let Shared { context_length, vocab_size, .. } = *self.shared;
        for &token in generated {
            seen.push(token);
            if seen.len() >= context_length {
                seen = strategy.shorten(&seen, context_length, vocab_size)?;
            }
        }
        Ok(seen)
    }
}

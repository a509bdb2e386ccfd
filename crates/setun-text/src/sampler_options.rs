//! How the next token is chosen.

use std::ops::RangeInclusive;

use crate::TextError;

/// The lowest temperature besides 0. Anything below is greedy in all but name, and logits
/// divided by much less overflow.
pub const LEAST_TEMPERATURE: f32 = 1e-6;

/// Options of a [`Sampler`](crate::Sampler). The default is greedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerOptions {
    /// Divides the logits: below 1 sharper, above 1 flatter. 0 always takes the best token,
    /// whatever the three filters say. 0, or [`LEAST_TEMPERATURE`] or more, and finite.
    pub temperature: f32,
    /// Keeps the `top_k` best tokens and all that tie with the last of them; 0 keeps all.
    pub top_k: usize,
    /// Keeps the best tokens until they have this share of the probability; 1 keeps all.
    /// From 0 to 1; the best token always stays.
    pub top_p: f32,
    /// Keeps tokens with at least this share of the best one's probability; 0 keeps all.
    /// From 0 to 1.
    pub min_p: f32,
    /// Divides the positive logits of tokens that occurred, and multiplies the negative ones;
    /// 1 leaves them. Finite, above 0. It acts on greedy choices too.
    pub repetition_penalty: f32,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0 }
    }
}

impl SamplerOptions {
    /// Checks every range.
    pub(crate) fn check(&self) -> Result<(), TextError> {
        let unit = 0.0..=1.0;
        let positive = f32::MIN_POSITIVE..=f32::MAX;
        if self.temperature != 0.0 {
            let warm = LEAST_TEMPERATURE..=f32::MAX;
            within("temperature", "0, or 0.000001 or more, and finite", self.temperature, &warm)?;
        }
        within("top_p", "from 0 to 1", self.top_p, &unit)?;
        within("min_p", "from 0 to 1", self.min_p, &unit)?;
        within("repetition_penalty", "above 0, and finite", self.repetition_penalty, &positive)
    }
}

fn within(
    option: &'static str,
    range: &'static str,
    found: f32,
    allowed: &RangeInclusive<f32>,
) -> Result<(), TextError> {
    if allowed.contains(&found) {
        Ok(())
    } else {
        Err(TextError::OptionRange { option, range, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_option_that_is_out_of_range() {
        let with = |change: fn(&mut SamplerOptions)| {
            let mut options = SamplerOptions::default();
            change(&mut options);
            options.check().map_err(|error| error.to_string())
        };
        let refused = |change| with(change).expect_err("out of range");
        assert_eq!(refused(|o| o.top_p = 1.5), "top_p is 1.5, expected from 0 to 1");
        assert!(refused(|o| o.temperature = -0.1).starts_with("temperature is -0.1"));
        assert!(refused(|o| o.temperature = f32::NAN).starts_with("temperature is NaN"));
        assert!(refused(|o| o.temperature = f32::INFINITY).starts_with("temperature is inf"));
        assert!(refused(|o| o.min_p = -1.0).starts_with("min_p"));
        assert!(refused(|o| o.repetition_penalty = 0.0).starts_with("repetition_penalty"));
        let expected = format!("expected 0, or {LEAST_TEMPERATURE} or more, and finite");
        assert!(refused(|o| o.temperature = 9.9e-7).ends_with(&expected));
        assert!(refused(|o| o.temperature = 1e-40).ends_with(&expected));
        assert!(with(|o| o.temperature = 1e-6).is_ok());
        assert!(with(|o| o.temperature = -0.0).is_ok());
        assert!(with(|o| o.top_p = 0.0).is_ok());
    }
}

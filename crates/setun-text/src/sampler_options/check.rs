//! Checks of the sampler's options.

use super::SamplerOptions;
use crate::{OptionError, OptionKind, OptionValue, SamplingStep, TextError};

impl SamplerOptions {
    /// Checks every range.
    pub(crate) fn check(&self) -> Result<(), TextError> {
        let bias = |&bias| ("logit_bias", OptionKind::FINITE, OptionValue::from(bias));
        let biases = self.logit_bias.values().map(bias);
        for (option, kind, found) in self.numbers().chain(biases) {
            if !kind.accepts(&found) {
                return Err(OptionError::Value { option, expected: kind, found }.into());
            }
        }
        self.check_lists()
    }

    /// Checks that options name tokens of the vocabulary alone. The tokens that end a text may
    /// lie beyond it.
    ///
    /// # Errors
    ///
    /// If one does not.
    pub fn check_vocabulary(&self, vocabulary: usize) -> Result<(), TextError> {
        let allowed = self.allowed_tokens.iter().flatten();
        let named = self.logit_bias.keys().map(|token| ("logit_bias", token));
        let named = named
            .chain(allowed.map(|token| ("allowed_tokens", token)))
            .chain(self.banned_tokens.iter().map(|token| ("banned_tokens", token)))
            .chain(self.banned_sequences.iter().flatten().map(|token| ("banned_sequences", token)))
            .chain(self.dry_breakers.iter().map(|token| ("dry_breakers", token)));
        for (option, &token) in named {
            if token as usize >= vocabulary {
                return Err(TextError::OptionToken { option, token, vocabulary });
            }
        }
        Ok(())
    }

    fn check_lists(&self) -> Result<(), TextError> {
        let empty = |option, expected| Err(TextError::EmptyOption { option, expected });
        if self.allowed_tokens.as_ref().is_some_and(Vec::is_empty) {
            return empty("allowed_tokens", "one token or more");
        }
        if self.banned_sequences.iter().any(Vec::is_empty) {
            return empty("one of banned_sequences", "one token or more");
        }
        SamplingStep::ordered(&self.order).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MIN_TEMPERATURE;

    fn with(change: fn(&mut SamplerOptions)) -> Result<(), String> {
        let mut options = SamplerOptions::default();
        change(&mut options);
        options.check().map_err(|error| error.to_string())
    }

    #[test]
    fn names_the_option_that_is_out_of_range() {
        let refused = |change| with(change).expect_err("out of range");
        assert_eq!(
            refused(|o| o.top_p = 1.5),
            "option `top_p` is 1.5, expected a number from 0 to 1"
        );
        assert!(refused(|o| o.temperature = -0.1).starts_with("option `temperature` is -0.1"));
        assert!(refused(|o| o.temperature = f32::NAN).starts_with("option `temperature` is NaN"));
        assert!(
            refused(|o| o.temperature = f32::INFINITY).starts_with("option `temperature` is inf")
        );
        assert!(refused(|o| o.min_p = -1.0).contains("`min_p`"));
        assert!(refused(|o| o.repetition_penalty = 0.0).contains("`repetition_penalty`"));
        let expected = format!("expected 0, or a finite number of {MIN_TEMPERATURE} or more");
        assert!(refused(|o| o.temperature = 9.9e-7).ends_with(&expected));
        assert!(refused(|o| o.temperature = 1e-40).ends_with(&expected));
        assert!(with(|o| o.temperature = 1e-6).is_ok());
        assert!(with(|o| o.temperature = -0.0).is_ok());
        assert!(with(|o| o.top_p = 0.0).is_ok());
    }

    /// An option, a value beyond its range and two at its ends.
    #[test]
    fn every_number_has_its_range() {
        type Case = (&'static str, fn(&mut SamplerOptions, f32), [f32; 4]);
        let cases: [Case; 14] = [
            (
                "dynamic_temperature",
                |o, x| o.dynamic_temperature = x,
                [-0.1, f32::INFINITY, 0.0, 9.0],
            ),
            (
                "dynamic_temperature_exponent",
                |o, x| o.dynamic_temperature_exponent = x,
                [0.0, -1.0, 0.1, 5.0],
            ),
            ("top_n_sigma", |o, x| o.top_n_sigma = x, [-1.0, f32::INFINITY, 0.0, 4.0]),
            ("typical_p", |o, x| o.typical_p = x, [-0.1, 1.1, 0.0, 1.0]),
            ("epsilon_cutoff", |o, x| o.epsilon_cutoff = x, [-0.1, 1.0, 0.0, 0.999]),
            ("eta_cutoff", |o, x| o.eta_cutoff = x, [-0.1, 1.0, 0.0, 0.999]),
            ("xtc_probability", |o, x| o.xtc_probability = x, [-0.1, 1.1, 0.0, 1.0]),
            ("xtc_threshold", |o, x| o.xtc_threshold = x, [-0.1, 0.51, 0.0, 0.5]),
            ("mirostat_tau", |o, x| o.mirostat_tau = x, [-0.1, f32::INFINITY, 0.0, 9.0]),
            ("mirostat_eta", |o, x| o.mirostat_eta = x, [-0.1, f32::INFINITY, 0.0, 1.0]),
            ("frequency_penalty", |o, x| o.frequency_penalty = x, [-2.1, 2.1, -2.0, 2.0]),
            ("presence_penalty", |o, x| o.presence_penalty = x, [-2.1, 2.1, -2.0, 2.0]),
            ("dry_multiplier", |o, x| o.dry_multiplier = x, [-0.1, f32::INFINITY, 0.0, 2.0]),
            ("dry_base", |o, x| o.dry_base = x, [0.99, f32::INFINITY, 1.0, 4.0]),
        ];
        for (option, set, [low, high, first, last]) in cases {
            for (value, is_good) in
                [(low, false), (high, false), (f32::NAN, false), (first, true), (last, true)]
            {
                let mut options = SamplerOptions::default();
                set(&mut options, value);
                let found = options.check().map_err(|error| error.to_string());
                assert_eq!(found.is_ok(), is_good, "{option}: {value}");
                let named = found
                    .err()
                    .is_none_or(|error| error.starts_with(&format!("option `{option}` is ")));
                assert!(named, "{option}: {value}");
            }
        }
    }

    #[test]
    fn lists_are_checked() {
        let refused = |change| with(change).expect_err("a bad list");
        assert!(
            refused(|o| o.allowed_tokens = Some(vec![])).starts_with("allowed_tokens is empty")
        );
        assert!(
            refused(|o| o.banned_sequences = vec![vec![1], vec![]]).contains("banned_sequences")
        );
        assert!(refused(|o| o.order = vec![SamplingStep::Dry; 2]).contains("`dry` twice"));
        let bias = |o: &mut SamplerOptions| o.logit_bias = [(3, f32::INFINITY)].into();
        assert_eq!(refused(bias), "option `logit_bias` is inf, expected a finite number");
    }

    #[test]
    fn tokens_are_of_the_vocabulary() {
        let changes: [fn(&mut SamplerOptions); 5] = [
            |o| o.logit_bias = [(9, 1.0)].into(),
            |o| o.allowed_tokens = Some(vec![1, 9]),
            |o| o.banned_tokens = vec![9],
            |o| o.banned_sequences = vec![vec![1], vec![1, 9]],
            |o| o.dry_breakers = vec![9],
        ];
        for change in changes {
            let mut options = SamplerOptions::default();
            change(&mut options);
            assert!(options.check_vocabulary(10).is_ok());
            let error = options.check_vocabulary(9).expect_err("out of the vocabulary");
            assert!(matches!(error, TextError::OptionToken { token: 9, vocabulary: 9, .. }));
        }
    }
}

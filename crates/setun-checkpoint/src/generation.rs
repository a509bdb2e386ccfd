//! `generation_config.json`: how a model's authors want it sampled.

use serde_json::{Map, Value};

use crate::{
    error::CheckpointError,
    files::GENERATION_CONFIG,
    json::{self, Fields},
};

/// What `generation_config.json` says; `None` where it is silent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationDefaults {
    /// False for greedy decoding.
    pub do_sample: Option<bool>,
    /// At least 0.
    pub temperature: Option<f32>,
    /// Tokens to keep; 0 keeps all.
    pub top_k: Option<usize>,
    /// Share of probability to keep, 0 to 1.
    pub top_p: Option<f32>,
    /// Least probability, relative to the likeliest token's, 0 to 1.
    pub min_p: Option<f32>,
    /// Above 0; 1 penalizes nothing.
    pub repetition_penalty: Option<f32>,
    /// Tokens that end a text.
    pub eos_tokens: Option<Vec<u32>>,
    /// First token of a text.
    pub bos: Option<u32>,
}

impl GenerationDefaults {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// If it is not a JSON object, or a field is out of its range.
    pub fn parse(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let map: Map<String, Value> = json::read(GENERATION_CONFIG, bytes)?;
        let fields = Fields::new(GENERATION_CONFIG, &map);
        let share =
            |key| number(&fields, key, "a number from 0 to 1", |x| (0.0..=1.0).contains(&x));
        Ok(Self {
            do_sample: fields.flag("do_sample")?,
            temperature: number(&fields, "temperature", "a number of at least 0", |x| x >= 0.0)?,
            top_k: top_k(&fields)?,
            top_p: share("top_p")?,
            min_p: share("min_p")?,
            repetition_penalty: number(&fields, "repetition_penalty", "a number above 0", |x| {
                x > 0.0
            })?,
            eos_tokens: fields.tokens("eos_token_id")?,
            bos: first_token(&fields)?,
        })
    }
}

/// The token of `bos_token_id`.
pub(crate) fn first_token(fields: &Fields<'_>) -> Result<Option<u32>, CheckpointError> {
    Ok(fields.tokens("bos_token_id")?.and_then(|tokens| tokens.first().copied()))
}

fn top_k(fields: &Fields<'_>) -> Result<Option<usize>, CheckpointError> {
    let limit = f64::from(u32::MAX);
    let expected = "a whole number of at least 0";
    let whole = |x: f64| x.fract() == 0.0 && (0.0..=limit).contains(&x);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: whole")]
    Ok(fields.number("top_k", expected, whole)?.map(|x| x as usize))
}

/// A number that is in its range as `f32`, too.
pub(crate) fn number(
    fields: &Fields<'_>,
    key: &str,
    expected: &str,
    accept: impl Fn(f64) -> bool,
) -> Result<Option<f32>, CheckpointError> {
    #[expect(clippy::cast_possible_truncation, reason = "to the nearest; checked to be finite")]
    let narrow = |x: f64| x as f32;
    let fits = |x: f64| narrow(x).is_finite() && accept(x) && accept(f64::from(narrow(x)));
    Ok(fields.number(key, expected, fits)?.map(narrow))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read() {
        let text = br#"{"do_sample": true, "temperature": 0.6, "top_k": 50, "top_p": 0.9,
            "eos_token_id": [128001, 128009], "bos_token_id": 128000, "max_length": 4096}"#;
        let expected = GenerationDefaults {
            do_sample: Some(true),
            temperature: Some(0.6),
            top_k: Some(50),
            top_p: Some(0.9),
            eos_tokens: Some(vec![128_001, 128_009]),
            bos: Some(128_000),
            ..GenerationDefaults::default()
        };
        assert_eq!(GenerationDefaults::parse(text), Ok(expected));
        assert_eq!(GenerationDefaults::parse(b"{}"), Ok(GenerationDefaults::default()));
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for (field, value) in [
            ("temperature", "-1"),
            ("temperature", "1e300"),
            ("top_p", "1.5"),
            ("min_p", "\"0.1\""),
            ("top_k", "1.5"),
            ("top_k", "-1"),
            ("repetition_penalty", "0"),
            ("repetition_penalty", "1e-300"),
            ("eos_token_id", "4294967296"),
            ("eos_token_id", "[1, -1]"),
            ("do_sample", "1"),
        ] {
            let text = format!(r#"{{"{field}": {value}}}"#);
            let error = GenerationDefaults::parse(text.as_bytes()).unwrap_err();
            let named =
                matches!(&error, CheckpointError::Field { field: found, .. } if found == field);
            assert!(named, "{text}: {error}");
        }
    }
}

//! Llama 3's rescaled frequencies, which GGUF holds as the tensor `rope_freqs.weight`: by what
//! each frequency is divided.

use std::f64::consts::TAU;

use super::metadata::Metadata;
use crate::{config::RopeScaling, error::CheckpointError};

/// The tensor.
pub(super) const TENSOR: &str = "rope_freqs.weight";

/// Keys that hold the numbers behind the tensor, where this library wrote it.
const KEYS: [&str; 4] = [
    "setun.rope.llama3.factor",
    "setun.rope.llama3.low_freq_factor",
    "setun.rope.llama3.high_freq_factor",
    "setun.rope.llama3.original_context",
];

/// Contexts that models with such frequencies were first trained on.
const CONTEXTS: [f64; 6] = [8192.0, 4096.0, 2048.0, 16384.0, 32768.0, 131_072.0];

/// How far a divisor may be from the computed one, relative to it: both are rounded to `f32`.
const TOLERANCE: f64 = 1e-5;

/// The numbers of [`RopeScaling::Llama3`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Llama3 {
    pub(super) factor: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) context: f64,
}

impl Llama3 {
    /// By what each of `count` frequencies is divided.
    pub(super) fn divisors(self, theta: f64, count: usize) -> Vec<f64> {
        let one = |index: usize| {
            #[expect(clippy::cast_precision_loss, reason = "small whole numbers")]
            let share = index as f64 / count as f64;
            let wavelength = TAU * theta.powf(share);
            if wavelength < self.context / self.high {
                1.0
            } else if wavelength > self.context / self.low {
                self.factor
            } else {
                let smooth = (self.context / wavelength - self.low) / (self.high - self.low);
                1.0 / ((1.0 - smooth) / self.factor + smooth)
            }
        };
        (0..count).map(one).collect()
    }

    pub(super) fn of(scaling: RopeScaling) -> Option<Self> {
        let RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } =
            scaling
        else {
            return None;
        };
        #[expect(clippy::cast_precision_loss, reason = "at most 2^24")]
        let context = original_context as f64;
        let (low, high) = (f64::from(low_freq_factor), f64::from(high_freq_factor));
        Some(Self { factor: f64::from(factor), low, high, context })
    }

    /// Keys and numbers for the metadata.
    pub(super) fn entries(self) -> [(&'static str, f64); 4] {
        let [factor, low, high, context] = KEYS;
        [(factor, self.factor), (low, self.low), (high, self.high), (context, self.context)]
    }

    fn stored(metadata: &Metadata) -> Result<Option<Self>, CheckpointError> {
        let mut numbers = [0.0; 4];
        for (number, key) in numbers.iter_mut().zip(KEYS) {
            match metadata.number(key)? {
                Some(found) => *number = found,
                None => return Ok(None),
            }
        }
        let [factor, low, high, context] = numbers;
        Ok(Some(Self { factor, low, high, context }))
    }
}

/// The numbers behind the tensor, if it changes anything.
///
/// # Errors
///
/// If it is none of Llama 3's.
pub(super) fn recognise(
    metadata: &Metadata,
    theta: f64,
    divisors: &[f32],
) -> Result<Option<Llama3>, CheckpointError> {
    if divisors.iter().all(|divisor| *divisor == 1.0) {
        return Ok(None);
    }
    let fits = |candidate: &Llama3| {
        let computed = candidate.divisors(theta, divisors.len());
        let close = |(a, b): (f64, f32)| (a - f64::from(b)).abs() <= TOLERANCE * a.abs();
        computed.into_iter().zip(divisors.iter().copied()).all(close)
    };
    let factor = f64::from(divisors.iter().copied().fold(1.0, f32::max));
    let guesses = CONTEXTS.map(|context| Llama3 { factor, low: 1.0, high: 4.0, context });
    let candidates = Llama3::stored(metadata)?.into_iter().chain(guesses);
    match candidates.into_iter().find(fits) {
        Some(found) => Ok(Some(found)),
        None => Err(CheckpointError::UnsupportedModel {
            file: metadata.file.clone(),
            what: "rotary embedding of tensor",
            found: TENSOR.to_owned(),
            supported: "Llama 3's frequencies with low and high factors of 1 and 4",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama_3_is_recognised_by_its_divisors() {
        let original = Llama3 { factor: 32.0, low: 1.0, high: 4.0, context: 8192.0 };
        #[expect(clippy::cast_possible_truncation, reason = "as a file has them")]
        let narrow = |llama: Llama3| -> Vec<f32> {
            llama.divisors(500_000.0, 64).into_iter().map(|divisor| divisor as f32).collect()
        };
        let metadata = Metadata::default();
        let found = recognise(&metadata, 500_000.0, &narrow(original));
        assert_eq!(found, Ok(Some(original)));
        assert_eq!(recognise(&metadata, 500_000.0, &[1.0; 64]), Ok(None));
        let other = Llama3 { low: 1.5, ..original };
        let error = recognise(&metadata, 500_000.0, &narrow(other)).unwrap_err();
        assert!(error.to_string().contains("rope_freqs.weight"), "{error}");
    }
}

//! Medians of measured rates.

use crate::error::CliError;

/// The median of decode rates. There is none where only the first token was generated.
pub(super) fn decode_median(rates: Vec<f64>) -> Result<f64, CliError> {
    median(rates).ok_or_else(|| {
        CliError::Usage(
            "--generate: nothing was decoded after the first token, expected 2 or more".into(),
        )
    })
}

/// The middle one, or the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let lower = if values.len().is_multiple_of(2) { values[middle - 1] } else { upper };
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}

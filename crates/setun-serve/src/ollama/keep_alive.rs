//! The time that a request has its model stay loaded.

use std::time::Duration;

use serde_json::Value;

use crate::{
    app::App, error::ApiError, excerpt::excerpt, fields::Fields, lifecycle::RequestGuard,
    registry::KeepAlive, served_model::ServedModel,
};

/// The field.
const FIELD: &str = "keep_alive";

/// Longest time, in seconds.
pub(super) const MAX_SECONDS: f64 = 1e9;

/// The form of a duration in the description, which leaves out those of many parts or digits.
pub(super) const DURATION: &str =
    r"^[+-]?([0-9]{1,9}|([0-9]{1,5}(\.[0-9]{1,6})?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)){1,2})$";

const EXPECTED: &str = "seconds or a duration such as \"5m\"; below 0 is no limit";

/// Units of a duration in seconds, as Go has them.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Takes the time of a request, if it has one.
pub(super) fn read(fields: &mut Fields) -> Result<Option<KeepAlive>, ApiError> {
    let value = fields.take(FIELD);
    value.map(|value| keep_alive(fields, &value)).transpose()
}

/// Keeps the model of a request for its time, if it has one.
pub(super) fn keep(app: &App, model: &ServedModel, guard: &RequestGuard, time: Option<KeepAlive>) {
    if let Some(time) = time {
        // It may have been removed meanwhile, and ends then after the request.
        let _ = app.keep_model(Some(model.name.clone()), time, guard.key());
    }
}

fn keep_alive(fields: &Fields, value: &Value) -> Result<KeepAlive, ApiError> {
    let seconds = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => duration(text),
        other => return Err(fields.wrong_type(FIELD, EXPECTED, other)),
    };
    match seconds {
        Some(seconds) if seconds < 0.0 => Ok(KeepAlive::Unlimited),
        Some(seconds) if seconds <= MAX_SECONDS => {
            Ok(KeepAlive::For(Duration::from_secs_f64(seconds)))
        }
        _ => {
            Err(ApiError::invalid(FIELD, format!("expected {EXPECTED}, found {}", excerpt(value))))
        }
    }
}

/// The seconds of a duration as Go writes it, such as `1h30m`; without a unit they are seconds.
fn duration(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sum =
        if unsigned.chars().all(is_of_number) { unsigned.parse().ok()? } else { sum(unsigned)? };
    Some(if text.starts_with('-') { -sum } else { sum })
}

/// The sum of numbers with units.
fn sum(mut rest: &str) -> Option<f64> {
    let mut sum = 0.0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|letter| !is_of_number(letter))?);
        let (unit, after) = after.split_at(after.find(is_of_number).unwrap_or(after.len()));
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum += number.parse::<f64>().ok()? * seconds;
        rest = after;
    }
    Some(sum)
}

fn is_of_number(letter: char) -> bool {
    letter.is_ascii_digit() || letter == '.'
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_numbers_or_durations() {
        let read = |value: Value| keep_alive(&Fields::default(), &value);
        let seconds = |seconds| Ok(KeepAlive::For(Duration::from_secs_f64(seconds)));
        for (value, expected) in [
            (json!(0), seconds(0.0)),
            (json!(1.5), seconds(1.5)),
            (json!("0"), seconds(0.0)),
            (json!("300"), seconds(300.0)),
            (json!("5m"), seconds(300.0)),
            (json!("1h30m"), seconds(5400.0)),
            (json!("+1.5s"), seconds(1.5)),
            (json!("500ms"), seconds(0.5)),
            (json!(-1), Ok(KeepAlive::Unlimited)),
            (json!("-1m"), Ok(KeepAlive::Unlimited)),
        ] {
            assert_eq!(read(value.clone()), expected, "{value}");
        }
        for value in [
            json!(1e10),
            json!(""),
            json!("-"),
            json!("soon"),
            json!("5 m"),
            json!("1m30"),
            json!("5d"),
            json!("inf"),
            json!("NaN"),
            json!([5]),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }
}

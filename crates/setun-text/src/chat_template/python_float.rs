//! Floating-point numbers as Python writes them.

use minijinja::Value;
use minijinja::value::ValueKind;

/// The number in a value that Python would print as a float.
pub(super) fn from_value(value: &Value) -> Option<f64> {
    let is_float = value.kind() == ValueKind::Number && !value.is_integer();
    if is_float { f64::try_from(value.clone()).ok() } else { None }
}

/// The shortest digits that give the number back, with an exponent below 1e-4 and from 1e16 on.
pub(super) fn repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned(); // Rust writes it in capitals.
    }
    let scientific = format!("{number:e}");
    let exponent = scientific.split_once('e').and_then(|(digits, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        (!(-4..16).contains(&exponent)).then_some((digits, exponent))
    });
    match exponent {
        Some((digits, exponent)) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None if number.fract() == 0.0 => format!("{number}.0"),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text is Python's `str` of the number.
    #[test]
    fn writes_as_python_does() {
        let expected = [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (123.25, "123.25"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (number, text) in expected {
            assert_eq!(repr(number), text);
        }
    }
}

//! The operator `%`: of numbers the remainder, of a text a format in the way of `printf`.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value, filters};

use super::budget::Budget;
use super::{costs, python_float};

/// `left % right` as in Python.
pub(super) fn remainder(
    state: &mut State<'_, '_>,
    left: &Value,
    right: &Value,
) -> Result<Value, Error> {
    Budget::of(state).steps(1)?;
    if left.kind() == ValueKind::String {
        return format(state, left, right);
    }
    let rest = match (python_float::from_value(left), python_float::from_value(right)) {
        (None, None) => of_integers(left, right)?,
        (left_float, right_float) => {
            let left = left_float.map_or_else(|| f64::try_from(left.clone()), Ok);
            let right = right_float.map_or_else(|| f64::try_from(right.clone()), Ok);
            let both = left.ok().zip(right.ok());
            both.map(|(left, right)| of_floats(left, right)).transpose()?
        }
    };
    rest.ok_or_else(|| refused(format!("there is no {} % {}", left.kind(), right.kind())))
}

/// The remainder of two integers; `None` if an operand is another number.
fn of_integers(left: &Value, right: &Value) -> Result<Option<Value>, Error> {
    let integer = |value: &Value| match value.kind() {
        ValueKind::Number | ValueKind::Bool => i128::try_from(value.clone()).ok(),
        _ => None,
    };
    let (Some(left), Some(right)) = (integer(left), integer(right)) else { return Ok(None) };
    if right == 0 {
        return Err(by_zero());
    }
    let rest = left.checked_rem(right).unwrap_or(0);
    let rest = if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest };
    Ok(Some(i64::try_from(rest).map_or_else(|_| Value::from(rest), Value::from)))
}

fn of_floats(left: f64, right: f64) -> Result<Value, Error> {
    if right == 0.0 {
        return Err(by_zero());
    }
    let rest = left % right;
    let rest = if rest != 0.0 && (rest < 0.0) != (right < 0.0) { rest + right } else { rest };
    Ok(Value::from(if rest == 0.0 { 0.0_f64.copysign(right) } else { rest }))
}

fn by_zero() -> Error {
    refused("a remainder of a division by zero".to_owned())
}

/// A format with its arguments: a tuple has several, any other value is the only one.
fn format(state: &mut State<'_, '_>, format: &Value, right: &Value) -> Result<Value, Error> {
    let mut arguments = vec![format.clone()];
    if right.is_tuple() {
        arguments.extend(right.try_iter()?);
    } else {
        arguments.push(right.clone());
    }
    let fields = Fields::of(Budget::of(state), arguments)?;
    let has_keys = right.kind() == ValueKind::Map || right.kind() == ValueKind::Seq;
    if fields.used < fields.arguments.len() && (right.is_tuple() || !has_keys) {
        return Err(refused("not all values are used by the format".to_owned()));
    }
    costs::format(Budget::of(state), &fields.arguments)?;
    Value::from_function(filters::format).call(state, &fields.arguments)
}

/// A format as minijinja takes it, with its values behind it, of which this many have a field.
struct Fields {
    arguments: Vec<Value>,
    used: usize,
}

impl Fields {
    /// Puts numbers in place of `*`, texts in place of what `%r` shows, and whole numbers in place
    /// of what `%d` cuts.
    fn of(budget: &mut Budget, given: Vec<Value>) -> Result<Self, Error> {
        let mut values = given.into_iter();
        let format = values.next().unwrap_or_default();
        let mut rest = format.as_str().unwrap_or_default();
        let (mut made, mut arguments, mut used) = (String::new(), vec![Value::from("")], 1);
        let missing = || refused("the format has more fields than values".to_owned());
        while let Some(place) = rest.find('%') {
            made += &rest[..=place];
            rest = &rest[place + 1..];
            let key =
                if rest.starts_with('(') { rest.find(')').map_or(0, |end| end + 1) } else { 0 };
            made += &rest[..key];
            rest = &rest[key..];
            while let Some(letter) =
                rest.chars().next().filter(|letter| "#0- +.123456789*hlL".contains(*letter))
            {
                match letter {
                    '*' => made += &i64::try_from(values.next().ok_or_else(missing)?)?.to_string(),
                    _ => made.push(letter),
                }
                rest = &rest[1..];
            }
            let Some(kind) = rest.chars().next() else { break };
            rest = &rest[kind.len_utf8()..];
            made.push(match kind {
                'r' | 'a' => 's',
                'u' => 'd',
                other => other,
            });
            if kind == '%' || key > 0 {
                continue;
            }
            let value = values.next().ok_or_else(missing)?;
            used += 1;
            arguments.push(match (kind, python_float::from_value(&value)) {
                ('r' | 'a', None) => {
                    let bytes = budget.count(format_args!("{value:?}"))?;
                    budget.bytes(bytes)?;
                    Value::from(format!("{value:?}"))
                }
                ('r' | 's' | 'a', Some(number)) => Value::from(python_float::repr(number)),
                ('d' | 'i' | 'u', Some(number)) if number.is_finite() => whole(number),
                _ => value,
            });
        }
        made += rest;
        arguments[0] = Value::from(made);
        arguments.extend(values);
        Ok(Self { arguments, used })
    }
}

/// A number without its fraction.
fn whole(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
    let whole = number.trunc() as i128;
    i64::try_from(whole).map_or_else(|_| Value::from(whole), Value::from)
}

fn refused(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

//! Slices as Python has them: minijinja's take `[:0:-1]` for `[::-1]`, give what has no places where
//! Python gives a list, and end the process where nothing is sliced backwards.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use super::budget::{Budget, ENTRY, entries};

/// `value[start:stop:step]` of a text or a list; a part that is not given is `none`.
pub(super) fn slice(
    state: &mut State<'_, '_>,
    value: &Value,
    start: Value,
    stop: Value,
    step: Value,
) -> Result<Value, Error> {
    let bound = |bound: Value| {
        if bound.is_none() { Ok(None) } else { i64::try_from(bound).map(Some) }
    };
    let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?.unwrap_or(1));
    if step == 0 {
        return Err(refused("a slice's step is zero".to_owned()));
    }
    let budget = Budget::of(state);
    if let Some(text) = value.as_str() {
        budget.bytes(5 * text.len() as u64)?; // its letters are four bytes each
        let letters: Vec<char> = text.chars().collect();
        let taken = places(start, stop, step, letters.len()).filter_map(|place| letters.get(place));
        return Ok(Value::from(taken.collect::<String>()));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(refused(format!("a value of type {} cannot be sliced", value.kind())));
    }
    budget.bytes(2 * ENTRY * entries(value))?;
    let entries: Vec<Value> = value.try_iter()?.collect();
    Ok(places(start, stop, step, entries.len())
        .filter_map(|place| entries.get(place))
        .cloned()
        .collect())
}

/// The places that a slice of this many entries takes; `step` is not zero. The ends are limited as
/// Python limits them (library reference, "Common Sequence Operations", notes 4 and 5).
fn places(
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
    len: usize,
) -> impl Iterator<Item = usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let (first, last) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let limited = |end: i64| if end < 0 { end.saturating_add(len) } else { end }.clamp(first, last);
    let (from, to) = if step > 0 { (first, last) } else { (last, first) };
    let (start, stop) = (start.map_or(from, limited), stop.map_or(to, limited));
    let is_before = move |place: &i64| if step > 0 { *place < stop } else { *place > stop };
    std::iter::successors(Some(start), move |place| place.checked_add(step))
        .take_while(is_before)
        .filter_map(|place| usize::try_from(place).ok())
}

fn refused(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_ends_and_steps_take_what_there_is() {
        let all = |start, stop, step| places(start, stop, step, 3).collect::<Vec<_>>();
        assert_eq!(all(Some(i64::MIN), Some(i64::MAX), i64::MAX), [0]);
        assert_eq!(all(Some(i64::MAX), Some(i64::MIN), i64::MIN), [2]);
        assert_eq!(places(None, None, -1, 0).count(), 0);
    }
}

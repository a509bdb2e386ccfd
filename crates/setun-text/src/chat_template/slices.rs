//! Slices as Python has them: minijinja's take `[:0:-1]` for `[::-1]`, give what has no places where
//! Python gives a list, and end the process where nothing is sliced backwards.

use minijinja::machinery::{Token, tokenize};
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value, syntax::SyntaxConfig};

use super::bounds;

/// The method that stands in a slice's place: it binds as closely as brackets do.
pub(super) const METHOD: &str = "setun_slice";

/// Of a list that is made as it is looked at.
const MAX_ENTRIES: usize = 1_000_000;

/// The template with calls of [`METHOD`] in place of its slices. What does not parse stays as it is.
pub(super) fn replace(source: &str) -> String {
    let mut edits = Vec::new();
    let mut open: Vec<Bracket> = Vec::new();
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { break };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        match token {
            Token::TemplateData(_) | Token::VariableStart | Token::BlockStart => open.clear(),
            Token::ParenOpen | Token::BraceOpen => open.push(Bracket::new(None)),
            Token::BracketOpen => open.push(Bracket::new(Some(start))),
            Token::Colon => {
                if let Some(Bracket { start: Some(_), parts, is_empty, .. }) = open.last_mut() {
                    parts.push((start, *is_empty));
                    *is_empty = true;
                }
            }
            Token::BracketClose => {
                edits.extend(open.pop().into_iter().flat_map(|bracket| bracket.edits(start, end)));
                fill(&mut open);
            }
            Token::ParenClose | Token::BraceClose => {
                open.pop();
                fill(&mut open);
            }
            _ => fill(&mut open),
        }
    }
    edits.sort_by_key(|&(start, ..)| start);
    bounds::edited(source, edits)
}

/// Records that there is something between the innermost bracket, or its last colon, and here.
fn fill(open: &mut [Bracket]) {
    if let Some(bracket) = open.last_mut() {
        bracket.is_empty = false;
    }
}

/// One that is open.
struct Bracket {
    start: Option<usize>, // where it is a square one
    /// Its colons, and whether nothing stands before them.
    parts: Vec<(usize, bool)>,
    is_empty: bool, // since the last colon
}

impl Bracket {
    fn new(start: Option<usize>) -> Self {
        Self { start, parts: vec![], is_empty: true }
    }

    /// What to put in place of which bytes, once it is closed; nothing if it is no slice.
    fn edits(self, close: usize, end: usize) -> Vec<(usize, usize, String)> {
        let Some(start) = self.start.filter(|_| !self.parts.is_empty()) else { return vec![] };
        let none = |is_empty| if is_empty { "none" } else { "" };
        let mut edits = vec![(start, start + 1, format!(".{METHOD}("))];
        for (colon, is_empty) in self.parts {
            edits.push((colon, colon + 1, format!("{},", none(is_empty))));
        }
        edits.push((close, end, format!("{})", none(self.is_empty))));
        edits
    }
}

/// `value[start:stop:step]` of a text or a list.
pub(super) fn slice(
    state: &State<'_, '_>,
    value: &Value,
    bounds: &[Value],
) -> Result<Value, Error> {
    if bounds.len() > 3 {
        return Err(refused("a slice has at most three parts".to_owned()));
    }
    let bound = |place: usize| match bounds.get(place) {
        Some(bound) if !bound.is_none() => i64::try_from(bound.clone()).map(Some),
        _ => Ok(None),
    };
    let (start, stop, step) = (bound(0)?, bound(1)?, bound(2)?.unwrap_or(1));
    if step == 0 {
        return Err(refused("a slice's step is zero".to_owned()));
    }
    if let Some(text) = value.as_str() {
        bounds::spend(state, text.len() as u64)?;
        let letters: Vec<char> = text.chars().collect();
        let taken = places(start, stop, step, letters.len()).filter_map(|place| letters.get(place));
        return Ok(Value::from(taken.collect::<String>()));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(refused(format!("a value of type {} cannot be sliced", value.kind())));
    }
    let entries = value.try_iter()?.take(MAX_ENTRIES).collect::<Vec<Value>>();
    bounds::spend(state, entries.len() as u64)?;
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
    fn slices_become_calls_and_nothing_else_changes() {
        for (source, expected) in [
            ("{{ x[1:] }}", "{{ x.setun_slice(1,none) }}"),
            ("{{ -x['a'][::-1].b }}", "{{ -x['a'].setun_slice(none,none,-1).b }}"),
            (
                "{{ x[y[:2][0]: {'a': 1}['a']] }}",
                "{{ x.setun_slice(y.setun_slice(none,2)[0], {'a': 1}['a']) }}",
            ),
            ("ü[:]{%- set x = (a)[ : ] -%}", "ü[:]{%- set x = (a).setun_slice( none, none) -%}"),
        ] {
            assert_eq!(replace(source), expected);
        }
        for same in [
            "",
            "[1:2]",
            "{{ {'a': [1, 2]}[0] }}",
            "{# x[:] #}",
            "{% raw %}{{ x[:] }}{% endraw %}",
            "{{ x[: }}",
        ] {
            assert_eq!(replace(same), same);
        }
    }

    #[test]
    fn extreme_ends_and_steps_take_what_there_is() {
        let all = |start, stop, step| places(start, stop, step, 3).collect::<Vec<_>>();
        assert_eq!(all(Some(i64::MIN), Some(i64::MAX), i64::MAX), [0]);
        assert_eq!(all(Some(i64::MAX), Some(i64::MIN), i64::MIN), [2]);
        assert_eq!(places(None, None, -1, 0).count(), 0);
    }
}

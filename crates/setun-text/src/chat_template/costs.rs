//! Costs of filters and methods, charged from their arguments before they run.

use minijinja::value::{DynObject, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::budget::{Budget, ENTRY, PAIR, entries, exceeded};
use super::operators;
use super::python_text::is_space;

/// A charge for arguments, of which the first is the value itself.
pub(super) type Cost = fn(&mut Budget, &[Value]) -> Result<(), Error>;

/// Most characters that a number in a format can request.
const MAX_WIDTH: u64 = 4096;

/// Bytes that a number takes in a format without a width.
const NUMBER_BYTES: u64 = 512;

/// For what does the same work for every value.
pub(super) fn nothing(budget: &mut Budget, _arguments: &[Value]) -> Result<(), Error> {
    budget.steps(1)
}

/// For what looks at all of its arguments.
pub(super) fn read(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    arguments.iter().try_for_each(|argument| budget.read(argument).map(|_| ()))
}

/// For what looks at all of its arguments, and may print them to compare them as texts.
pub(super) fn print(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    read(budget, arguments)?;
    for argument in arguments {
        if argument.as_object().is_some() {
            copy(budget, std::slice::from_ref(argument))?;
        }
    }
    Ok(())
}

/// For a text made of the printed value.
pub(super) fn copy(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    text(budget, arguments, 1)
}

/// For upper and lower case: a letter of two bytes can become six.
pub(super) fn change_case(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    text(budget, arguments, 3)
}

/// For HTML, in which a quote has six bytes.
pub(super) fn escape(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    text(budget, arguments, 6)
}

fn text(budget: &mut Budget, arguments: &[Value], times: u64) -> Result<(), Error> {
    let Some(value) = arguments.first() else { return Ok(()) };
    let bytes = budget.printed(value)?;
    budget.bytes(bytes.saturating_mul(times))
}

/// For `replace(old, new)` and the method of that name.
pub(super) fn replace(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    copy(budget, arguments)?;
    let [value, old, new, ..] = arguments else { return Ok(()) };
    let (old_bytes, new_bytes) = (budget.printed(old)?, budget.printed(new)?);
    budget.bytes(old_bytes.saturating_add(new_bytes))?;
    let places = match (value.as_str(), old.as_str()) {
        (Some(value), Some(old)) => value.matches(old).count() as u64,
        _ => budget.printed(value)? + 1,
    };
    budget.bytes(places.saturating_mul(new_bytes))
}

/// For what takes characters off the ends of a text: each is looked for among those given.
pub(super) fn trim(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    copy(budget, arguments)?;
    let [value, characters, ..] = arguments else { return Ok(()) };
    let (bytes, each) = (budget.printed(value)?, budget.printed(characters)?);
    budget.bytes(4 * each)?;
    budget.steps(bytes.saturating_mul(each) / 64)
}

/// For a text that is filled up to a width, which is the first argument or a named one.
pub(super) fn pad(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    read(budget, arguments)?;
    copy(budget, arguments)?;
    let width = arguments.iter().skip(1).map(largest_number).max().unwrap_or(0).max(80);
    budget.bytes(width.saturating_mul(4))
}

/// For a text that is cut, with another behind it.
pub(super) fn truncate(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    arguments.iter().try_for_each(|argument| copy(budget, std::slice::from_ref(argument)))
}

/// For a list of the parts of a text, between separators or spaces.
pub(super) fn split(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    copy(budget, arguments)?;
    let Some(text) = arguments.first().and_then(Value::as_str) else { return Ok(()) };
    let named = |argument: &Value| argument.is_kwargs().then(|| argument.get_attr("sep").ok());
    let separator = arguments.get(1).cloned().filter(|separator| !separator.is_kwargs());
    let separator = separator.or_else(|| arguments.iter().find_map(named).flatten());
    let parts = match separator.as_ref().and_then(Value::as_str) {
        Some(separator) => text.matches(separator).count() + 1,
        None => text.split(is_space).count(),
    };
    budget.bytes(2 * ENTRY * parts as u64)
}

/// For a list of the lines of a text.
pub(super) fn lines(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    copy(budget, arguments)?;
    let text = arguments.first().and_then(Value::as_str).unwrap_or_default();
    let lines = text.chars().filter(|letter| is_space(*letter)).count() + 1; // no fewer end a line
    budget.bytes(2 * ENTRY * lines as u64)
}

/// For `list|join(separator)`.
pub(super) fn join(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    let [list, others @ ..] = arguments else { return Ok(()) };
    let mut between = 0;
    for other in others {
        between += budget.printed(other)?; // one of them may be the name of an attribute
    }
    budget.bytes(entries(list).saturating_mul(between))?;
    printed_entries(budget, list)
}

/// For `separator.join(list)`.
pub(super) fn join_with(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    let [separator, list, ..] = arguments else { return Ok(()) };
    let between = budget.printed(separator)?;
    budget.bytes(entries(list).saturating_mul(between))?;
    printed_entries(budget, list)
}

/// Charges the texts of a list's entries.
fn printed_entries(budget: &mut Budget, list: &Value) -> Result<(), Error> {
    if let Some(text) = list.as_str() {
        return budget.bytes(text.len() as u64);
    }
    for entry in list.try_iter().into_iter().flatten() {
        let bytes = budget.printed(&entry)?;
        budget.bytes(bytes)?;
    }
    Ok(())
}

/// For `indent(width)`.
pub(super) fn indent(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    copy(budget, arguments)?;
    let [value, others @ ..] = arguments else { return Ok(()) };
    let lines = match value.as_str() {
        Some(text) => 2 + text.chars().filter(|letter| is_space(*letter)).count() as u64,
        None => 2 + budget.printed(value)?,
    };
    let mut width = others.iter().map(largest_number).max().unwrap_or(0).max(4);
    for other in others {
        width = budget.printed(other)?.max(width); // a text may stand for the spaces
    }
    budget.bytes(lines.saturating_mul(width.saturating_add(1)))
}

/// For the filter `format`.
pub(super) fn format(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    fields(budget, arguments, "%", |field| {
        let directive = field.split_once(')').map_or(field, |(_, directive)| directive);
        let end = directive.find(|character: char| character.is_ascii_alphabetic());
        directive.get(..end.unwrap_or(directive.len())).unwrap_or_default()
    })
}

/// For the method `format`. A brace can stand in a field, as what fills it or in a name.
pub(super) fn format_braces(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    fields(budget, arguments, "{", |field| field.rsplit_once('}').map_or(field, |(field, _)| field))
}

/// Each field of a format prints one of the arguments, or pads to a width that stands in it.
fn fields(
    budget: &mut Budget,
    arguments: &[Value],
    opening: &str,
    directive: fn(&str) -> &str,
) -> Result<(), Error> {
    copy(budget, arguments)?;
    let [format, others @ ..] = arguments else { return Ok(()) };
    let escapes = if format.is_safe() { 6 } else { 1 }; // for HTML, as what it is put into is
    let format = format.as_str().unwrap_or_default().replace(&opening.repeat(2), "");
    let format = format.replace("}}", "");
    let fields = || format.split(opening).skip(1);
    let width = fields().map(|field| widest(directive(field))).max().unwrap_or(0);
    if width > MAX_WIDTH {
        return Err(exceeded("characters in one field of a format", MAX_WIDTH, width));
    }
    let mut longest = 0;
    for other in others {
        longest = budget.printed(other)?.saturating_mul(escapes).max(longest);
    }
    let each = longest.saturating_add(4 * width).saturating_add(NUMBER_BYTES);
    budget.bytes(each.saturating_mul(fields().count() as u64))
}

/// The largest number that stands in a directive.
fn widest(directive: &str) -> u64 {
    let numbers = directive.split(|character: char| !character.is_ascii_digit());
    let numbers = numbers.filter(|digits| !digits.is_empty());
    numbers.map(|digits| digits.parse().unwrap_or(u64::MAX)).max().unwrap_or(0)
}

/// The largest number among an argument and its entries, where it is a map of named ones.
fn largest_number(argument: &Value) -> u64 {
    if argument.is_kwargs() {
        let named = argument.as_object().and_then(DynObject::try_iter_pairs);
        return named.into_iter().flatten().map(|(_, value)| number(&value)).max().unwrap_or(0);
    }
    number(argument)
}

fn number(value: &Value) -> u64 {
    match value.kind() {
        ValueKind::Number | ValueKind::Bool => {
            let number = i128::try_from(value.clone()).unwrap_or(0); // 1.5 is refused as a count
            u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX)
        }
        _ => 0,
    }
}

/// For a list of a value's entries.
pub(super) fn list(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    budget.bytes(ENTRY * arguments.first().map_or(0, entries))
}

/// For `reverse` and `last`, which leave a text a text.
pub(super) fn reverse(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    let is_text = arguments.first().is_some_and(|value| value.kind() == ValueKind::String);
    if is_text { copy(budget, arguments) } else { list(budget, arguments) }
}

/// For a list of pairs.
pub(super) fn pairs(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    budget.bytes(PAIR * arguments.first().map_or(0, entries))
}

/// For what chooses or changes entries one by one; the test or filter itself is charged when it runs.
pub(super) fn select(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    read(budget, arguments)?;
    let each = ENTRY * (2 + arguments.len() as u64);
    budget.bytes(each.saturating_mul(arguments.first().map_or(0, entries)))
}

/// For `map`, which can spell the names of filters that stand for operators.
pub(super) fn map(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    let filter = arguments.get(1).and_then(Value::as_str).unwrap_or_default();
    if filter.starts_with(operators::MARK) {
        let message = format!("filter {filter:.40} is unknown");
        return Err(Error::new(ErrorKind::UnknownFilter, message));
    }
    select(budget, arguments)
}

/// For what compares entries with each other, which copies their texts.
pub(super) fn sort(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    let [list, ..] = arguments else { return Ok(()) };
    let text = budget.read(list)?;
    read(budget, &arguments[1..])?;
    let entries = entries(list);
    budget.bytes(PAIR.saturating_mul(entries).saturating_add(text.saturating_mul(3)))?;
    let rounds = u64::from(u64::BITS - entries.leading_zeros());
    budget.steps((entries + text / 16).saturating_mul(rounds))
}

/// For `batch(count, fill)` and `slice(count, fill)`.
pub(super) fn parts(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    let [list, others @ ..] = arguments else { return Ok(()) };
    let count = others.first().map_or(0, number);
    budget.bytes(PAIR.saturating_mul(entries(list).saturating_add(count)))
}

/// For `sum`, which adds numbers alone: as sums of texts or lists grow, each is copied again.
pub(super) fn sum(budget: &mut Budget, arguments: &[Value]) -> Result<(), Error> {
    read(budget, arguments)?;
    let mut start = arguments.get(2).cloned().filter(|start| !start.is_kwargs());
    for named in arguments.iter().filter(|argument| argument.is_kwargs()) {
        start = named.get_attr("start").ok().filter(|start| !start.is_undefined()).or(start);
    }
    match start {
        Some(start) if !start.is_none() && !start.is_number() => {
            let message = format!("a sum starts with a number, not with a {}", start.kind());
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
        _ => Ok(()),
    }
}

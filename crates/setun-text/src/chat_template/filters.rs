//! Filters and tests, each with what it costs.
//!
//! The environment starts empty, so that nothing can be called which is not in these tables.

#![expect(clippy::needless_pass_by_value, reason = "arguments come by value")]

use minijinja::value::{ArgType, DynObject, Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, tests};

use super::budget::{Budget, can_change, flat};
use super::costs;
use super::python_text::{self, is_space, word_count};

/// Adds what the language has of its own; `dialect` adds the rest.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    add_filters_of_texts(environment);
    add_filters_of_lists(environment);
    add_filters_of_numbers(environment);
    add_tests(environment);
}

fn add_filters_of_texts(environment: &mut Environment<'_>) {
    let mut add = |name, filter, cost| add_filter(environment, name, filter, cost);
    let escape = Value::from_function(filters::escape);
    add("escape", escape.clone(), costs::escape);
    add("e", escape, costs::escape);
    add("safe", Value::from_function(filters::safe), costs::copy);
    add("lower", Value::from_function(filters::lower), costs::change_case);
    add("upper", Value::from_function(filters::upper), costs::change_case);
    add("title", Value::from_function(filters::title), costs::change_case);
    add("capitalize", Value::from_function(filters::capitalize), costs::change_case);
    add("replace", Value::from_function(filters::replace), costs::replace);
    add("trim", Value::from_function(trim), costs::trim);
    add("center", Value::from_function(center), costs::pad);
    add("truncate", Value::from_function(truncate), costs::truncate);
    add("wordcount", Value::from_function(|text: String| word_count(&text)), costs::copy);
    add("split", Value::from_function(filters::split), costs::split);
    add("lines", Value::from_function(filters::lines), costs::lines);
    add("join", Value::from_function(filters::join), costs::join);
    add("indent", Value::from_function(indent), costs::indent);
    add("format", Value::from_function(filters::format), costs::format);
    add("pprint", Value::from_function(filters::pprint), |budget, arguments| {
        let [value, ..] = arguments else { return Ok(()) };
        let bytes = budget.count(format_args!("{value:#?}"))?;
        budget.bytes(bytes)
    });
}

fn add_filters_of_lists(environment: &mut Environment<'_>) {
    let mut add = |name, filter, cost| add_filter(environment, name, filter, cost);
    add("items", Value::from_function(filters::items), costs::pairs);
    add("dictsort", Value::from_function(filters::dictsort), costs::sort);
    add("sort", Value::from_function(filters::sort), costs::sort);
    add("unique", Value::from_function(filters::unique), costs::sort);
    add("groupby", Value::from_function(filters::groupby), costs::sort);
    add("min", Value::from_function(filters::min), costs::sort);
    add("max", Value::from_function(filters::max), costs::sort);
    add("reverse", Value::from_function(filters::reverse), costs::reverse);
    add("list", Value::from_function(filters::list), costs::list);
    add("first", Value::from_function(filters::first), costs::nothing);
    add("last", Value::from_function(filters::last), costs::reverse);
    add("batch", Value::from_function(filters::batch), costs::parts);
    add("slice", Value::from_function(filters::slice), costs::parts);
    add("sum", Value::from_function(filters::sum), costs::sum);
    add("map", Value::from_function(filters::map), costs::map);
    add("select", Value::from_function(filters::select), costs::select);
    add("reject", Value::from_function(filters::reject), costs::select);
    add("selectattr", Value::from_function(filters::selectattr), costs::select);
    add("rejectattr", Value::from_function(filters::rejectattr), costs::select);
    add("attr", Value::from_function(attr), costs::read);
}

fn add_filters_of_numbers(environment: &mut Environment<'_>) {
    let mut add = |name, filter, cost| add_filter(environment, name, filter, cost);
    let default = Value::from_function(filters::default);
    add("default", default.clone(), costs::nothing);
    add("d", default, costs::nothing);
    add("bool", Value::from_function(filters::bool), costs::nothing);
    add("round", Value::from_function(filters::round), costs::nothing);
    add("abs", Value::from_function(filters::abs), costs::nothing);
    add("int", Value::from_function(filters::int), costs::read);
    add("float", Value::from_function(filters::float), costs::read);
}

fn add_tests(environment: &mut Environment<'_>) {
    let mut add = |names: &[&'static str], test: Value, cost: costs::Cost| {
        for name in names {
            add_test(environment, name, test.clone(), cost);
        }
    };
    add(&["undefined"], Value::from_function(tests::is_undefined), costs::nothing);
    add(&["defined"], Value::from_function(tests::is_defined), costs::nothing);
    add(&["callable"], Value::from_function(is_callable), costs::nothing);
    add(&["none"], Value::from_function(tests::is_none), costs::nothing);
    add(&["safe", "escaped"], Value::from_function(tests::is_safe), costs::nothing);
    add(&["boolean"], Value::from_function(tests::is_boolean), costs::nothing);
    add(&["odd"], Value::from_function(tests::is_odd), costs::nothing);
    add(&["even"], Value::from_function(tests::is_even), costs::nothing);
    add(&["divisibleby"], Value::from_function(tests::is_divisibleby), costs::nothing);
    add(&["number"], Value::from_function(tests::is_number), costs::nothing);
    add(&["integer", "int"], Value::from_function(tests::is_integer), costs::nothing);
    add(&["float"], Value::from_function(tests::is_float), costs::nothing);
    add(&["string"], Value::from_function(tests::is_string), costs::nothing);
    add(&["sequence"], Value::from_function(tests::is_sequence), costs::nothing);
    add(&["mapping"], Value::from_function(tests::is_mapping), costs::nothing);
    add(&["true"], Value::from_function(tests::is_true), costs::nothing);
    add(&["false"], Value::from_function(tests::is_false), costs::nothing);
    add(&["filter"], Value::from_function(tests::is_filter), costs::nothing);
    add(&["test"], Value::from_function(tests::is_test), costs::nothing);
    add(&["startingwith"], Value::from_function(tests::is_startingwith), costs::print);
    add(&["endingwith"], Value::from_function(tests::is_endingwith), costs::print);
    add(&["lower"], Value::from_function(tests::is_lower), costs::print);
    add(&["upper"], Value::from_function(tests::is_upper), costs::print);
    add(&["sameas"], Value::from_function(tests::is_sameas), costs::print);
    add(&["eq", "equalto", "=="], Value::from_function(tests::is_eq), costs::print);
    add(&["ne", "!="], Value::from_function(tests::is_ne), costs::print);
    add(&["lt", "lessthan", "<"], Value::from_function(tests::is_lt), costs::print);
    add(&["le", "<="], Value::from_function(tests::is_le), costs::print);
    add(&["gt", "greaterthan", ">"], Value::from_function(tests::is_gt), costs::print);
    add(&["ge", ">="], Value::from_function(tests::is_ge), costs::print);
    add(&["in"], Value::from_function(tests::is_in), costs::print);
}

/// A filter that is charged before it runs. What it makes is a list at once, and not too deep.
fn add_filter(
    environment: &mut Environment<'_>,
    name: &'static str,
    filter: Value,
    cost: costs::Cost,
) {
    let deepens = matches!(name, "batch" | "slice" | "groupby");
    let charged = move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
        let arguments = arguments.into_values();
        let budget = Budget::of(state);
        budget.can_hold_changing |= arguments.iter().skip(1).any(brings_changing);
        cost(budget, &arguments)?;
        let made = filter.call(state, &arguments)?;
        let made = flat(state, made)?;
        if deepens {
            Budget::of(state).read(&made)?;
        }
        Ok::<Value, Error>(made)
    };
    environment.add_filter(name, charged);
}

/// Whether an argument, or a named one among others, can change.
fn brings_changing(argument: &Value) -> bool {
    let named = if argument.is_kwargs() { argument.as_object() } else { None };
    let mut named = named.and_then(DynObject::try_iter_pairs).into_iter().flatten();
    can_change(argument) || named.any(|(_, value)| can_change(&value))
}

/// A test that is charged before it runs.
fn add_test(environment: &mut Environment<'_>, name: &'static str, test: Value, cost: costs::Cost) {
    let charged = move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
        let arguments = arguments.into_values();
        cost(Budget::of(state), &arguments)?;
        test.call(state, &arguments)
    };
    environment.add_test(name, charged);
}

/// The test `iterable`: as in Python, text can be iterated over and `None` cannot.
pub(super) fn is_iterable(value: &Value) -> bool {
    use ValueKind::{Iterable, Map, Seq, String, Undefined};
    matches!(value.kind(), Iterable | Map | Seq | String | Undefined)
}

/// The filter `length`: as in Jinja, an undefined value has no entries.
pub(super) fn length(state: &mut State<'_, '_>, value: &Value) -> Result<usize, Error> {
    Budget::of(state).scan(value.as_str().map_or(0, str::len))?;
    let length = if value.is_undefined() { Some(0) } else { value.len() };
    length.ok_or_else(|| {
        let message = format!("a value of type {} has no length", value.kind());
        Error::new(ErrorKind::InvalidOperation, message)
    })
}

/// The filter `trim`.
fn trim(text: String, letters: Option<String>, named: Kwargs) -> Result<String, Error> {
    let letters = match letters {
        Some(letters) => Some(letters),
        None => named.get("chars")?,
    };
    named.assert_all_used()?;
    let goes = |letter: char| match &letters {
        Some(letters) => letters.contains(letter),
        None => is_space(letter),
    };
    Ok(text.trim_matches(goes).to_owned())
}

/// The filter `indent`: the indentation is a number of spaces or a text.
fn indent(
    text: String,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    named: Kwargs,
) -> Result<String, Error> {
    let width = argument(width, &named, "width", Value::from(4))?;
    let first = argument(first, &named, "first", false)?;
    let blank = argument(blank, &named, "blank", false)?;
    named.assert_all_used()?;
    let spaces = match width.as_str() {
        Some(text) => text.to_owned(),
        None => " ".repeat(usize::try_from(i64::try_from(width)?).unwrap_or(0)),
    };
    let mut made = String::new();
    for (index, (line, _)) in python_text::lines(&(text + "\n")).enumerate() {
        if index > 0 {
            made.push('\n');
        }
        if if index == 0 { first } else { blank || !line.is_empty() } {
            made += &spaces;
        }
        made += line;
    }
    Ok(made)
}

/// The filter `center`.
fn center(text: String, width: Option<i64>, named: Kwargs) -> Result<String, Error> {
    let width = argument(width, &named, "width", 80)?;
    named.assert_all_used()?;
    Ok(python_text::center(&text, width, ' '))
}

/// The filter `truncate`: a text that is longer than `length` ends with `end`, behind a whole word.
fn truncate(text: String, arguments: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let arguments = arguments.into_values();
    let (length, killwords, end, leeway, named): (
        Option<i64>,
        Option<bool>,
        Option<String>,
        Option<i64>,
        Kwargs,
    ) = from_args(&arguments)?;
    let length = argument(length, &named, "length", 255)?;
    let killwords = argument(killwords, &named, "killwords", false)?;
    let end = argument(end, &named, "end", "...".to_owned())?;
    let leeway = argument(leeway, &named, "leeway", 5)?;
    named.assert_all_used()?;
    let (Ok(length), Ok(leeway)) = (usize::try_from(length), usize::try_from(leeway)) else {
        return Err(Error::new(ErrorKind::InvalidOperation, "a length is negative"));
    };
    let Some(kept) = length.checked_sub(end.chars().count()) else {
        let message = format!("`length` is {length}, which is less than that of `end`");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    };
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let cut = text.char_indices().nth(kept).map_or(text.len(), |(place, _)| place);
    let cut = &text[..cut];
    let words = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
    Ok(format!("{}{end}", if killwords { cut } else { words }))
}

/// An argument by its place or its name, or its default.
fn argument<T>(given: Option<T>, named: &Kwargs, name: &str, default: T) -> Result<T, Error>
where
    Option<T>: for<'a> ArgType<'a, Output = Option<T>>,
{
    match given {
        Some(given) => Ok(given),
        None => Ok(named.get::<Option<T>>(name)?.unwrap_or(default)),
    }
}

/// The filter `attr`: as in Jinja, entries of a map are none of its attributes.
fn attr(value: &Value, name: &Value) -> Result<Value, Error> {
    let has_attributes = value.kind() != ValueKind::Map || has_attributes(value);
    if has_attributes { value.get_item(name) } else { Ok(Value::UNDEFINED) }
}

/// The test `callable`: functions, macros and what they make that can be called.
fn is_callable(value: &Value) -> bool {
    value.as_object().is_some_and(|object| {
        let name = object.type_name();
        let is_cycler = || name.ends_with("Cycler");
        name.ends_with("Macro") || value.kind() == ValueKind::Plain && !is_cycler()
    })
}

/// Whether a map is no dictionary but a namespace, a loop or a macro.
fn has_attributes(value: &Value) -> bool {
    let is_macro = |object: &DynObject| object.type_name().ends_with("Macro");
    can_change(value) || value.as_object().is_some_and(is_macro)
}

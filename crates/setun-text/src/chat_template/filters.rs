//! Filters, tests and functions, each with what it costs.
//!
//! The environment starts empty, so that nothing can be called which is not in these tables.

use minijinja::value::{DynObject, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions, tests};

use super::budget::{Budget, ENTRY, PAIR, can_change, flat};
use super::{costs, operators};

/// Adds what the language has of its own; `dialect` adds the rest.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    add_filters_of_texts(environment);
    add_filters_of_lists(environment);
    add_filters_of_numbers(environment);
    add_tests(environment);
    environment.add_function("range", range);
    for (name, function) in [
        ("dict", Value::from_function(functions::dict)),
        ("namespace", Value::from_function(functions::namespace)),
    ] {
        let function = move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
            let arguments = arguments.into_values();
            let budget = Budget::of(state);
            for argument in &arguments {
                operators::built(budget, argument, PAIR)?;
                if name == "namespace" {
                    operators::entry_of_namespace(budget, argument)?;
                }
            }
            function.call(state, &arguments)
        };
        environment.add_function(name, function);
    }
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
    add("trim", Value::from_function(filters::trim), costs::trim);
    add("split", Value::from_function(filters::split), costs::split);
    add("lines", Value::from_function(filters::lines), costs::lines);
    add("join", Value::from_function(filters::join), costs::join);
    add("indent", Value::from_function(filters::indent), costs::indent);
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
    add("attr", Value::from_function(filters::attr), costs::read);
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

/// Most entries of a range.
const MAX_RANGE: u64 = 100_000;

/// The function `range(stop)` or `range(start, stop, step)`.
fn range(
    state: &mut State<'_, '_>,
    start: i64,
    stop: Option<i64>,
    step: Option<i64>,
) -> Result<Value, Error> {
    let (start, stop) = stop.map_or((0, start), |stop| (start, stop));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "the step of a range is zero"));
    }
    let (from, to) = (i128::from(start), i128::from(stop));
    let distance = if step > 0 { to - from } else { from - to };
    let length = distance.max(0).unsigned_abs().div_ceil(u128::from(step.unsigned_abs()));
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    if length > MAX_RANGE {
        return Err(super::budget::exceeded("entries of a range", MAX_RANGE, length));
    }
    Budget::of(state).bytes(ENTRY * length)?;
    let length = i64::try_from(length).unwrap_or(0);
    // No entry is beyond `stop`, so that what wraps on the way there wraps back.
    let entry = |index: i64| start.wrapping_add(index.wrapping_mul(step));
    Ok((0..length).map(entry).collect())
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

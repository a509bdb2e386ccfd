//! Charges of operators, as filters that the compiled template applies to their operands.
//!
//! An operator itself cannot be replaced, but a filter can stand before it: it gets the operands as a
//! list, charges for what the operator will read and make, and gives them back in reverse, the order
//! in which they are unpacked. Their names cannot be spelled as filters, and `map` refuses them.

use minijinja::value::{ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::budget::{Budget, ENTRY, PAIR, can_change, entries, flat};
use super::slices;

/// What the names begin with.
pub(super) const MARK: char = '!';

/// Before what reads all of its operands.
pub(super) const READ: &str = "!read";
/// Before `in`.
pub(super) const IN: &str = "!in";
/// Before `+`.
pub(super) const ADD: &str = "!+";
/// Before `*`.
pub(super) const MULTIPLY: &str = "!*";
/// In place of `%`.
pub(super) const REMAINDER: &str = "!%";
/// Before `~`.
pub(super) const CONCATENATE: &str = "!~";
/// Before `value[key]`.
pub(super) const ITEM: &str = "!item";
/// In place of slices.
pub(super) const SLICE: &str = "!slice";
/// In place of maps in braces.
pub(super) const MAP: &str = "!map";
/// After lists in brackets, and tuples.
pub(super) const LIST: &str = "!list";
/// After `+` and `*`.
pub(super) const FLAT: &str = "!flat";
/// Before the lists of `f(*list)` are unpacked.
pub(super) const ARGUMENTS: &str = "!arguments";
/// Before an entry of a namespace is set.
pub(super) const ENTRY_SET: &str = "!entry";
/// Before what a loop keeps to compare it with the next.
pub(super) const CHANGED: &str = "!changed";
/// Before an iteration and at the start of a macro.
pub(super) const TICK: &str = "!tick";
/// Before a macro is made.
pub(super) const MACRO: &str = "!macro";
/// After a macro is made that takes more arguments than it names.
pub(super) const OPEN_MACRO: &str = "!open_macro";

/// Adds the filters.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    before(environment, READ, |budget, operands| {
        operands.iter().try_for_each(|operand| budget.read(operand).map(|_| ()))
    });
    before(environment, IN, membership);
    before(environment, ADD, addition);
    before(environment, MULTIPLY, multiplication);
    before(environment, CONCATENATE, |budget, operands| {
        for operand in operands {
            let bytes = budget.printed(operand)?;
            budget.bytes(bytes)?;
        }
        Ok(())
    });
    before(environment, ITEM, |budget, operands| {
        let [value, key] = operands else { return Ok(()) };
        // The character at an index is looked for from the start.
        budget.scan(value.as_str().map_or(0, str::len))?;
        budget.read(key).map(|_| ())
    });
    before(environment, CHANGED, |budget, operands| {
        operands.iter().skip(1).try_for_each(|kept| {
            if budget.holds_changing(kept)? { Err(kept_in_changing()) } else { Ok(()) }
        })
    });
    environment.add_filter(SLICE, slices::slice);
    environment.add_filter(MAP, map);
    environment.add_filter(LIST, |state: &mut State<'_, '_>, list: Value| {
        built(Budget::of(state), &list, ENTRY).map(|()| list)
    });
    environment.add_filter(FLAT, flat);
    environment.add_filter(ARGUMENTS, arguments);
    environment.add_filter(ENTRY_SET, |state: &mut State<'_, '_>, value: Value| {
        let budget = Budget::of(state);
        budget.bytes(PAIR)?;
        entry_of_namespace(budget, &value).map(|()| value)
    });
    environment
        .add_filter(TICK, |state: &mut State<'_, '_>, steps: u64| Budget::of(state).steps(steps));
    environment
        .add_filter(MACRO, |state: &mut State<'_, '_>, bytes: u64| Budget::of(state).bytes(bytes));
}

type Charge = fn(&mut Budget, &[Value]) -> Result<(), Error>;

/// A filter that charges for operands and gives them back in reverse.
fn before(environment: &mut Environment<'_>, name: &'static str, charge: Charge) {
    let filter = move |state: &mut State<'_, '_>, operands: ValueOrKwargs| {
        let mut operands: Vec<Value> = operands.into_value().try_iter()?.collect();
        charge(Budget::of(state), &operands)?;
        operands.reverse();
        Ok::<Value, Error>(Value::from(operands))
    };
    environment.add_filter(name, filter);
}

fn membership(budget: &mut Budget, operands: &[Value]) -> Result<(), Error> {
    let [value, container] = operands else { return Ok(()) };
    budget.read(value)?;
    if container.kind() == ValueKind::String && value.kind() != ValueKind::String {
        let bytes = budget.printed(value)?; // it is looked for as it is printed
        budget.bytes(bytes)?;
    }
    match container.kind() {
        ValueKind::Map => Ok(()),
        _ => budget.read(container).map(|_| ()),
    }
}

fn addition(budget: &mut Budget, operands: &[Value]) -> Result<(), Error> {
    let bytes = |operand: &Value| match operand.as_str() {
        Some(text) => text.len() as u64,
        None if operand.is_tuple() => ENTRY * entries(operand),
        None => 0, // a sum of lists is charged when it is made
    };
    budget.bytes(operands.iter().map(bytes).fold(0, u64::saturating_add))
}

fn multiplication(budget: &mut Budget, operands: &[Value]) -> Result<(), Error> {
    let [left, right] = operands else { return Ok(()) };
    for (value, times) in [(left, right), (right, left)] {
        let (Some(times), Some(len)) = (times.as_usize(), value.len()) else { continue };
        let entry = if value.kind() == ValueKind::String { 1 } else { ENTRY };
        let len = value.as_str().map_or(len, str::len) as u64;
        budget.bytes(len.saturating_mul(entry).saturating_mul(times as u64))?;
    }
    Ok(())
}

/// `{key: value}` of the keys and values in turn.
fn map(state: &mut State<'_, '_>, list: &Value) -> Result<Value, Error> {
    let budget = Budget::of(state);
    let parts: Vec<Value> = list.try_iter()?.collect();
    let mut pairs = Vec::with_capacity(parts.len() / 2);
    for pair in parts.chunks_exact(2) {
        budget.read(&pair[0])?;
        pairs.push((pair[0].clone(), pair[1].clone()));
    }
    let map = Value::from_pairs(pairs);
    built(budget, &map, PAIR).map(|()| map)
}

/// Charges a list or map that was just made, with the bytes of each entry.
pub(super) fn built(budget: &mut Budget, value: &Value, entry: u64) -> Result<(), Error> {
    budget.bytes(entry * entries(value))?;
    budget.can_hold_changing |= budget.holds_changing(value)?;
    Ok(())
}

/// An error if something that is put into a namespace is one, or a loop, or has such in it: they
/// change, and a namespace could come to contain itself.
pub(super) fn entry_of_namespace(budget: &mut Budget, value: &Value) -> Result<(), Error> {
    if can_change(value) || budget.can_hold_changing && budget.holds_changing(value)? {
        return Err(kept_in_changing());
    }
    Ok(())
}

fn kept_in_changing() -> Error {
    let message = "a namespace or a loop is put into what may change";
    Error::new(ErrorKind::InvalidOperation, message)
}

/// One list of all entries of lists.
fn arguments(state: &mut State<'_, '_>, lists: &Value) -> Result<Value, Error> {
    let budget = Budget::of(state);
    let mut all = Vec::new();
    for list in lists.try_iter()? {
        budget.bytes(2 * ENTRY * entries(&list))?;
        all.extend(list.try_iter()?);
    }
    Ok(Value::from(all))
}

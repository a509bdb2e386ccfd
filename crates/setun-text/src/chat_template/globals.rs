//! Functions that Jinja has everywhere.

#![expect(clippy::needless_pass_by_value, reason = "arguments come by value")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minijinja::value::{Kwargs, Object, ObjectRepr, Rest, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value, functions};

use super::budget::{Budget, ENTRY, PAIR, exceeded};
use super::operators;

/// Adds the functions.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment.add_function("range", range);
    environment.add_function("joiner", joiner);
    environment.add_function("cycler", cycler);
    environment.add_function("lipsum", lipsum);
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
        return Err(refused("the step of a range is zero"));
    }
    let (from, to) = (i128::from(start), i128::from(stop));
    let distance = if step > 0 { to - from } else { from - to };
    let length = distance.max(0).unsigned_abs().div_ceil(u128::from(step.unsigned_abs()));
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    if length > MAX_RANGE {
        return Err(exceeded("entries of a range", MAX_RANGE, length));
    }
    Budget::of(state).bytes(ENTRY * length)?;
    let length = i64::try_from(length).unwrap_or(0);
    // No entry is beyond `stop`, so that what wraps on the way there wraps back.
    let entry = |index: i64| start.wrapping_add(index.wrapping_mul(step));
    Ok((0..length).map(entry).collect())
}

/// The function `lipsum`, which is there and makes no text: a prompt is the same each time.
fn lipsum(_arguments: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    Err(refused("`lipsum` makes random text, which no prompt has here"))
}

/// The object that `joiner(separator)` makes: it gives nothing at the first call, its separator at all others.
struct Joiner {
    separator: Value,
    is_used: AtomicBool,
}

fn joiner(
    state: &mut State<'_, '_>,
    separator: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let separator = match separator {
        Some(separator) => separator,
        None => named.get::<Option<Value>>("sep")?.unwrap_or_else(|| Value::from(", ")),
    };
    named.assert_all_used()?;
    keep(state, &separator)?;
    Ok(Value::from_object(Joiner { separator, is_used: AtomicBool::new(false) }))
}

impl Object for Joiner {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        from_args::<()>(args)?;
        Budget::of(state).steps(1)?;
        let is_used = self.is_used.swap(true, Ordering::Relaxed);
        Ok(if is_used { self.separator.clone() } else { Value::from("") })
    }
}

/// The object that `cycler(a, b)` makes: it gives its entries in turn.
struct Cycler {
    entries: Vec<Value>,
    place: AtomicUsize,
}

fn cycler(state: &mut State<'_, '_>, entries: Rest<Value>) -> Result<Value, Error> {
    if entries.is_empty() {
        return Err(refused("a cycler has one entry or more"));
    }
    for entry in entries.iter() {
        keep(state, entry)?;
    }
    Ok(Value::from_object(Cycler { entries: entries.0, place: AtomicUsize::new(0) }))
}

impl Cycler {
    fn current(&self) -> Value {
        let place = self.place.load(Ordering::Relaxed);
        self.entries.get(place).cloned().unwrap_or_default()
    }
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (key.as_str() == Some("current")).then(|| self.current())
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        from_args::<()>(args)?;
        Budget::of(state).steps(1)?;
        match method {
            "next" => {
                let current = self.current();
                let next = (self.place.load(Ordering::Relaxed) + 1) % self.entries.len().max(1);
                self.place.store(next, Ordering::Relaxed);
                Ok(current)
            }
            "reset" => {
                self.place.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

/// Charges what a function keeps. A namespace or a loop could come to contain what keeps it.
fn keep(state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let budget = Budget::of(state);
    budget.bytes(PAIR)?;
    operators::entry_of_namespace(budget, value)
}

impl fmt::Debug for Joiner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<joiner>")
    }
}

impl fmt::Debug for Cycler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<cycler>")
    }
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

//! The budget of one rendering: bytes that it makes, and steps that it takes.
//!
//! A template may come from anybody. Whatever it does is charged before it is done: filters, methods,
//! functions and operators by what they read and make, loops and macros by their instructions, and the
//! output by its length. Bytes are never given back, so they bound the memory as well as the copying.

use std::fmt::{self, Write};
use std::sync::Arc;

use minijinja::value::{Object, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// Bytes of all texts and lists that one rendering makes, its output among them: 128 MiB.
const MAX_BYTES: u64 = 128 << 20;

/// Instructions, entries of lists and pieces of text that one rendering goes through: 50 million.
const MAX_STEPS: u64 = 50_000_000;

/// How deep values are nested: messages and schemas of tools are, some ten times.
pub(super) const MAX_DEPTH: u64 = 64;

/// Bytes of an entry of a list.
pub(super) const ENTRY: u64 = 24;

/// Bytes of an entry of a map or of a list of pairs.
pub(super) const PAIR: u64 = 96;

/// Bytes of text that are read in a step.
const STEP_BYTES: u64 = 64;

/// Steps between two looks at whether to go on.
const POLL: u64 = 1 << 16;

/// What a rendering may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MAX_BYTES, steps: MAX_STEPS }
    }
}

/// A question that a rendering asks from time to time: whether to stop.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// One that stops a rendering once `is_over` is true, such as a deadline.
    pub fn new(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_over))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Interrupt")
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{found} {what}, at most {limit} are allowed")]
pub(super) struct Exceeded {
    pub(super) what: &'static str,
    pub(super) limit: u64,
    pub(super) found: u64,
}

/// The caller wants no more of it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("its time is over")]
pub(super) struct Interrupted;

/// What a rendering begins with, as a variable that no template can spell.
#[derive(Debug)]
struct Start {
    limits: Limits,
    interrupt: Option<Interrupt>,
}

impl Object for Start {}

const START: &str = "setun budget";

/// The variable that has the budget of one rendering.
pub(super) fn start(limits: Limits, interrupt: Option<Interrupt>) -> Value {
    Value::from_pairs([(START, Value::from_object(Start { limits, interrupt }))])
}

/// What one rendering has taken so far.
#[derive(Debug)]
pub(super) struct Budget {
    limits: Limits,
    bytes: u64,
    steps: u64,
    polled: u64, // steps at the last look
    interrupt: Option<Interrupt>,
    /// Whether some list or map may have something in it that changes.
    pub(super) can_hold_changing: bool,
    /// Whether the value that was read has that in it.
    saw_changing: bool,
}

impl Budget {
    /// The budget of the rendering that has this state.
    pub(super) fn of<'a>(state: &'a mut State<'_, '_>) -> &'a mut Self {
        if state.get_extension::<Self>().is_none() {
            let start = state.lookup(START);
            let budget = match start.as_ref().and_then(Value::downcast_object_ref::<Start>) {
                Some(Start { limits, interrupt }) => Self::new(*limits, interrupt.clone()),
                None => Self::new(Limits::default(), None),
            };
            return state.get_or_insert_extension(budget);
        }
        state.get_or_insert_extension_with(|| Self::new(Limits::default(), None))
    }

    fn new(limits: Limits, interrupt: Option<Interrupt>) -> Self {
        let (can_hold_changing, saw_changing) = (false, false);
        Self { limits, bytes: 0, steps: 0, polled: 0, interrupt, can_hold_changing, saw_changing }
    }

    /// Charges bytes of texts and lists that are about to be made.
    pub(super) fn bytes(&mut self, bytes: u64) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            return Err(exceeded("bytes of text and lists", self.limits.bytes, self.bytes));
        }
        self.steps(1 + bytes / STEP_BYTES)
    }

    /// Charges steps, and stops if the caller wants no more.
    pub(super) fn steps(&mut self, steps: u64) -> Result<(), Error> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limits.steps {
            return Err(exceeded("steps", self.limits.steps, self.steps));
        }
        if self.steps - self.polled >= POLL {
            self.polled = self.steps;
            if self.interrupt.as_ref().is_some_and(|Interrupt(is_over)| is_over()) {
                self.steps = u64::MAX; // whatever drops this error meets the next
                let error = Error::new(ErrorKind::InvalidOperation, Interrupted.to_string());
                return Err(error.with_source(Interrupted));
            }
        }
        Ok(())
    }

    /// Charges the steps of a text that is read.
    pub(super) fn scan(&mut self, bytes: usize) -> Result<(), Error> {
        self.steps(1 + bytes as u64 / STEP_BYTES)
    }

    /// Charges the steps of reading all of a value, and returns the bytes of its texts.
    pub(super) fn read(&mut self, value: &Value) -> Result<u64, Error> {
        self.read_at(value, 0)
    }

    /// Whether there is something in a value that changes; charged as reading it.
    pub(super) fn holds_changing(&mut self, value: &Value) -> Result<bool, Error> {
        self.saw_changing = false;
        self.read(value)?;
        Ok(self.saw_changing)
    }

    fn read_at(&mut self, value: &Value, depth: u64) -> Result<u64, Error> {
        let text = value.as_bytes().map_or(0, <[u8]>::len);
        self.scan(text)?;
        if depth > MAX_DEPTH {
            return Err(exceeded("levels of nested values", MAX_DEPTH, depth));
        }
        let mut bytes = text as u64;
        let Some(object) = value.as_object() else { return Ok(bytes) };
        match value.kind() {
            ValueKind::Map => {
                self.saw_changing |= can_change(value);
                for (key, entry) in object.try_iter_pairs().into_iter().flatten() {
                    let pair = self.read_at(&key, depth + 1)? + self.read_at(&entry, depth + 1)?;
                    bytes = bytes.saturating_add(pair);
                }
            }
            ValueKind::Seq | ValueKind::Iterable => {
                for entry in object.try_iter().into_iter().flatten() {
                    bytes = bytes.saturating_add(self.read_at(&entry, depth + 1)?);
                }
            }
            _ => {}
        }
        Ok(bytes)
    }

    /// The bytes of a value that is printed, which are charged as steps alone.
    pub(super) fn printed(&mut self, value: &Value) -> Result<u64, Error> {
        if let Some(text) = value.as_str() {
            return Ok(text.len() as u64);
        }
        self.count(format_args!("{value}"))
    }

    /// The bytes of something that is printed; an error as soon as they are beyond the budget.
    pub(super) fn count(&mut self, printed: fmt::Arguments<'_>) -> Result<u64, Error> {
        let mut counter = Counter { bytes: 0, most: self.limits.bytes.saturating_sub(self.bytes) };
        if counter.write_fmt(printed).is_err() {
            self.bytes(counter.bytes)?;
        }
        self.steps(1 + counter.bytes / STEP_BYTES)?;
        Ok(counter.bytes)
    }
}

/// What counts bytes in place of writing them.
struct Counter {
    bytes: u64,
    most: u64,
}

impl Write for Counter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes += text.len() as u64;
        if self.bytes > self.most { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Whether a value is of a kind that changes: a namespace, or a loop with its entries.
pub(super) fn can_change(value: &Value) -> bool {
    value.as_object().is_some_and(|object| {
        let name = object.type_name();
        name.ends_with("::Namespace") || name.ends_with("::Loop")
    })
}

/// The entries of a value: of a text its bytes, which are no fewer than its characters.
pub(super) fn entries(value: &Value) -> u64 {
    let entries = value.as_str().map(str::len).or_else(|| value.len());
    entries.map_or(0, |entries| entries as u64)
}

/// A list in place of what makes its entries each time it is looked at: such things are not nested.
pub(super) fn flat(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Iterable {
        return Ok(value);
    }
    let budget = Budget::of(state);
    let charged = entries(&value);
    budget.bytes(ENTRY * charged)?;
    let mut list = Vec::new();
    for (entry, count) in value.try_iter()?.zip(1..) {
        // Some do not know their number.
        if count > charged {
            budget.bytes(ENTRY)?;
        } else {
            budget.steps(1)?;
        }
        list.push(entry);
    }
    Ok(Value::from(list))
}

/// An error with its type, so that the rendering can name the limit.
pub(super) fn exceeded(what: &'static str, limit: u64, found: u64) -> Error {
    let exceeded = Exceeded { what, limit, found };
    Error::new(ErrorKind::InvalidOperation, exceeded.to_string()).with_source(exceeded)
}

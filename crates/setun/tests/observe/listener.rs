//! A subscriber that keeps what it hears.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Mutex, MutexGuard, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_core::span::Current;

/// A span, and what happened in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) name: &'static str,
    pub(crate) parent: Option<u64>,
    pub(crate) fields: Fields,
    /// Messages, and their other fields.
    pub(crate) events: Vec<(String, Fields)>,
    pub(crate) closed: bool,
    handles: usize,
    metadata: Option<&'static Metadata<'static>>,
}

/// As they are shown.
pub(crate) type Fields = BTreeMap<&'static str, String>;

static SPANS: Mutex<BTreeMap<u64, Heard>> = Mutex::new(BTreeMap::new());

/// The spans so far, by number. The first call begins to listen.
pub(crate) fn spans() -> MutexGuard<'static, BTreeMap<u64, Heard>> {
    static LISTENING: OnceLock<()> = OnceLock::new();
    LISTENING.get_or_init(|| {
        tracing::subscriber::set_global_default(Listener).expect("the only listener");
    });
    SPANS.lock().expect("no panic in a listener")
}

thread_local! {
    static ENTERED: std::cell::RefCell<Vec<Id>> = const { std::cell::RefCell::new(vec![]) };
}

struct Listener;

struct Shown<'a>(&'a mut Fields);

impl Visit for Shown<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

fn current() -> Option<Id> {
    ENTERED.with_borrow(|entered| entered.last().cloned())
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("setun") || metadata.target().starts_with("observe")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        let parent = if span.is_contextual() { current() } else { span.parent().cloned() };
        let parent = parent.map(|id| id.into_u64());
        let (name, metadata) = (span.metadata().name(), Some(span.metadata()));
        let mut heard = Heard { name, parent, metadata, handles: 1, ..Heard::default() };
        span.record(&mut Shown(&mut heard.fields));
        spans().insert(id, heard);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(heard) = spans().get_mut(&span.into_u64()) {
            values.record(&mut Shown(&mut heard.fields));
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Shown(&mut fields));
        let parent = event.parent().cloned().or_else(current).map_or(0, |id| id.into_u64());
        if let Some(heard) = spans().get_mut(&parent) {
            heard.events.push((fields.remove("message").unwrap_or_default(), fields));
        }
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.clone()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.retain(|id| id != span));
    }

    fn try_close(&self, span: Id) -> bool {
        let mut spans = spans();
        let Some(heard) = spans.get_mut(&span.into_u64()) else { return false };
        heard.handles -= 1;
        heard.closed = heard.handles == 0;
        heard.closed
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(heard) = spans().get_mut(&span.into_u64()) {
            heard.handles += 1;
        }
        span.clone()
    }

    fn current_span(&self) -> Current {
        let Some(id) = current() else { return Current::none() };
        let metadata = spans().get(&id.into_u64()).and_then(|heard| heard.metadata);
        metadata.map_or_else(Current::none, |metadata| Current::new(id, metadata))
    }
}

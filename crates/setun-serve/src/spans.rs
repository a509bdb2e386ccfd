//! Spans of requests by OpenTelemetry's conventions for generative models, exported in batches.
//!
//! They have names, numbers and times, never texts.

mod otlp;
mod request;

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use tracing::{debug, warn};

pub(crate) use request::RequestSpan;

/// Most spans that wait to be sent. Further ones are dropped, so that no request waits for a collector.
const MAX_WAITING: usize = 4096;

/// Most spans of a batch.
const MAX_BATCH: usize = 512;

/// Longest time that a span waits for others.
const BATCH_TIME: Duration = Duration::from_secs(2);

/// Why spans cannot be sent.
pub type ExportError = Box<dyn std::error::Error + Send + Sync>;

/// Exports spans of requests on a thread of its own. Clones share it.
#[derive(Clone)]
pub struct SpanExporter(Arc<Mutex<Option<Exporting>>>);

struct Exporting {
    spans: SyncSender<Span>,
    thread: JoinHandle<()>,
}

/// A span that has ended.
#[derive(Debug)]
struct Span {
    trace_id: String,
    id: String,
    /// That of the client's span, if there is one.
    parent_id: Option<String>,
    name: String,
    begin: SystemTime,
    end: SystemTime,
    attributes: Vec<(&'static str, Attribute)>,
    /// The code of the error that ended it.
    error: Option<String>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
enum Attribute {
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    Texts(Vec<String>),
}

impl SpanExporter {
    /// `send` gets bodies of requests to a collector's `/v1/traces`, as OTLP in JSON. What it cannot send is
    /// lost, with a warning in the log.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn new(
        send: impl FnMut(Vec<u8>) -> Result<(), ExportError> + Send + 'static,
    ) -> io::Result<Self> {
        let (spans, receiver) = sync_channel(MAX_WAITING);
        let thread = thread::Builder::new().name("setun-spans".to_owned());
        let thread = thread.spawn(move || export_all(&receiver, send))?;
        Ok(Self(Arc::new(Mutex::new(Some(Exporting { spans, thread })))))
    }

    /// Sends what waits, and ends. Later spans are dropped.
    pub fn close(&self) {
        let exporting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Exporting { spans, thread }) = exporting {
            drop(spans);
            let _ = thread.join(); // one that panicked has ended, too
        }
    }

    fn export(&self, span: Span) {
        let exporting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = |exporting: &Exporting| exporting.spans.try_send(span).is_ok();
        if !exporting.as_ref().is_some_and(has_room) {
            debug!(target: "setun_serve", "a span is dropped: too many wait, or the end has come");
        }
    }
}

impl fmt::Debug for SpanExporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SpanExporter").finish_non_exhaustive()
    }
}

fn export_all(spans: &Receiver<Span>, mut send: impl FnMut(Vec<u8>) -> Result<(), ExportError>) {
    while let Ok(first) = spans.recv() {
        let (mut batch, begun) = (vec![first], Instant::now());
        while batch.len() < MAX_BATCH {
            let left = BATCH_TIME.saturating_sub(begun.elapsed());
            let Ok(span) = spans.recv_timeout(left) else { break };
            batch.push(span);
        }
        if let Err(error) = send(otlp::body(&batch)) {
            let spans = batch.len();
            warn!(target: "setun_serve", spans, %error, "spans are lost: the collector did not take them");
        }
    }
}

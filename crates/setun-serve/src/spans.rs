//! Spans of requests by OpenTelemetry's conventions for generative models, exported in batches.
//!
//! They have names, numbers and times, never texts.

mod otlp;
mod request;

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use tracing::warn;

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
pub struct SpanExporter {
    exporting: Arc<Mutex<Option<Exporting>>>,
    progress: Arc<Progress>,
}

struct Exporting {
    spans: SyncSender<Span>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Spans that found no room since the last batch.
    dropped: AtomicUsize,
    is_closing: AtomicBool,
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
        let progress = Arc::<Progress>::default();
        let thread = thread::Builder::new().name("setun-spans".to_owned());
        let thread = thread.spawn({
            let progress = Arc::clone(&progress);
            move || export_all(&receiver, &progress, send)
        })?;
        Ok(Self { exporting: Arc::new(Mutex::new(Some(Exporting { spans, thread }))), progress })
    }

    /// Sends what waits, up to the first failure, and ends. Later spans are dropped.
    pub fn close(&self) {
        self.progress.is_closing.store(true, Ordering::Relaxed);
        let exporting = self.exporting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Exporting { spans, thread }) = exporting {
            drop(spans);
            let _ = thread.join(); // one that panicked has ended, too
        }
    }

    /// Never waits.
    fn export(&self, span: Span) {
        let exporting = self.exporting.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = |exporting: &Exporting| exporting.spans.try_send(span).is_ok();
        if !exporting.as_ref().is_some_and(has_room) {
            self.progress.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for SpanExporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SpanExporter").finish_non_exhaustive()
    }
}

fn export_all(
    spans: &Receiver<Span>,
    progress: &Progress,
    mut send: impl FnMut(Vec<u8>) -> Result<(), ExportError>,
) {
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
            if progress.is_closing.load(Ordering::Relaxed) {
                return; // it does not hold up the end
            }
        }
        let spans = progress.dropped.swap(0, Ordering::Relaxed);
        if spans > 0 {
            warn!(target: "setun_serve", spans, "spans are lost: too many waited for the collector");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn span() -> Span {
        let (id, name) = (String::new(), String::new());
        let time = SystemTime::UNIX_EPOCH;
        let (parent_id, error, attributes) = (None, None, vec![]);
        let trace_id = String::new();
        Span { trace_id, id, parent_id, name, begin: time, end: time, attributes, error }
    }

    #[test]
    fn a_collector_that_does_not_answer_holds_up_neither_requests_nor_the_end() {
        let (answer, answers) = channel::<()>();
        let (sent, bodies) = channel();
        let exporter = SpanExporter::new(move |body| {
            let spans = serde_json::from_slice::<serde_json::Value>(&body)?;
            sent.send(spans["resourceSpans"][0]["scopeSpans"][0]["spans"].clone())?;
            answers.recv().map_err(Into::into)
        });
        let exporter = exporter.expect("a thread");
        (0..MAX_BATCH).for_each(|_| exporter.export(span()));
        let first = bodies.recv().expect("a batch");
        let rest = MAX_WAITING + 3;
        (0..rest).for_each(|_| exporter.export(span()));
        let dropped = exporter.progress.dropped.load(Ordering::Relaxed);
        exporter.progress.is_closing.store(true, Ordering::Relaxed);
        drop(answer); // which fails
        exporter.close();
        let count = |spans: serde_json::Value| spans.as_array().map_or(0, Vec::len);
        let first = count(first);
        assert_eq!(first + MAX_WAITING + dropped, MAX_BATCH + rest);
        assert_eq!(bodies.iter().count(), 0, "the end tries no further batch");
    }
}

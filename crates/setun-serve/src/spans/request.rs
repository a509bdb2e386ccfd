//! The span of a request: what is asked of a model, and what comes of it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use axum::http::HeaderMap;
use setun::{Done, GenerateOptions};

use super::{Attribute, Span, SpanExporter};
use crate::{error::ApiError, request_id::new_id, trace_context::TraceContext};

/// The operations of routes, by the names of the conventions.
const OPERATIONS: [(&str, &str); 9] = [
    ("/v1/chat/completions", "chat"),
    ("/v1/responses", "chat"),
    ("/v1/messages", "chat"),
    ("/api/chat", "chat"),
    ("/v1/completions", "text_completion"),
    ("/api/generate", "text_completion"),
    ("/v1/embeddings", "embeddings"),
    ("/api/embed", "embeddings"),
    ("/api/embeddings", "embeddings"),
];

/// The error of a request whose client left before its end.
const CANCELLED: &str = "cancelled";

/// A span under way. It ends where it is dropped, if it has reached a model.
#[derive(Debug)]
pub(crate) struct RequestSpan {
    exporter: SpanExporter,
    operation: &'static str,
    trace: Option<TraceContext>,
    begin: SystemTime,
    begun: Instant,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    model: Option<String>,
    attributes: Vec<(&'static str, Attribute)>,
    /// Texts that have not ended.
    open: usize,
    finish_reasons: Vec<String>,
    usage: [usize; 3],
    first_token_seconds: Option<f64>,
    error: Option<&'static str>,
}

impl RequestSpan {
    /// Of a request that runs a model, unless its client samples it out.
    pub(crate) fn begin(exporter: &SpanExporter, path: &str, headers: &HeaderMap) -> Option<Self> {
        let &(_, operation) = OPERATIONS.iter().find(|(route, _)| *route == path)?;
        let trace = TraceContext::of(headers);
        if trace.as_ref().is_some_and(|trace| !trace.is_sampled()) {
            return None;
        }
        Some(Self {
            exporter: exporter.clone(),
            operation,
            trace,
            begin: SystemTime::now(),
            begun: Instant::now(),
            record: Mutex::default(),
        })
    }

    /// A model is to run for this many texts of each prompt. None of them has ended.
    pub(crate) fn record_request(&self, model: &str, options: &GenerateOptions, samples: usize) {
        let mut record = self.lock();
        record.model = Some(model.to_owned());
        record.open = samples;
        record.attributes = request_attributes(options);
        if samples != 1 {
            let samples = Attribute::count(samples);
            record.attributes.push(("gen_ai.request.choice.count", samples));
        }
    }

    /// This many texts are under way.
    pub(crate) fn record_texts(&self, texts: usize) {
        self.lock().open = texts;
    }

    /// The answer comes in events.
    pub(crate) fn record_stream(&self) {
        self.lock().attributes.push(("gen_ai.request.stream", Attribute::Flag(true)));
    }

    /// A text has ended; the first of its prompt counts the prompt.
    pub(crate) fn record_done(&self, done: &Done, is_first: bool) {
        let mut record = self.lock();
        record.open = record.open.saturating_sub(1);
        record.finish_reasons.push(done.finish_reason.as_str().to_owned());
        let setun::Usage { prompt_tokens, completion_tokens, cached_tokens, .. } = done.usage;
        let prompt = if is_first { [prompt_tokens, cached_tokens] } else { [0, 0] };
        let more = [prompt[0], completion_tokens, prompt[1]];
        record.usage.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        let first = done.timings.first_token_seconds;
        record.first_token_seconds =
            Some(record.first_token_seconds.map_or(first, |least| least.min(first)));
    }

    /// Prompts without texts have ended.
    pub(crate) fn record_prompts(&self, tokens: usize) {
        let mut record = self.lock();
        record.open = 0;
        record.usage[0] = tokens;
    }

    /// It ends with an error.
    pub(crate) fn record_error(&self, error: &ApiError) {
        self.lock().error = Some(error.code());
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        let record = std::mem::take(&mut *self.lock());
        let Some(model) = record.model.clone() else { return };
        let error = record.error.or_else(|| (record.open > 0).then_some(CANCELLED));
        let ids = self.trace.as_ref().map(|trace| (trace.trace_id(), trace.parent_id()));
        self.exporter.export(Span {
            trace_id: ids.map_or_else(|| new_id("") + &new_id("")[..8], |(id, _)| id.to_owned()),
            id: new_id("")[8..].to_owned(),
            parent_id: ids.map(|(_, id)| id.to_owned()),
            name: format!("{} {model}", self.operation),
            begin: self.begin,
            end: self.begin + self.begun.elapsed(),
            attributes: record.into_attributes(self.operation, model, error),
            error: error.map(str::to_owned),
        });
    }
}

impl Record {
    fn into_attributes(
        self,
        operation: &str,
        model: String,
        error: Option<&str>,
    ) -> Vec<(&'static str, Attribute)> {
        let text = |text: &str| Attribute::Text(text.to_owned());
        let mut attributes = vec![
            ("gen_ai.operation.name", text(operation)),
            ("gen_ai.provider.name", text("setun")),
            ("gen_ai.request.model", text(&model)),
            ("gen_ai.response.model", Attribute::Text(model)),
        ];
        attributes.extend(self.attributes);
        let [input, output, cached] = self.usage.map(Attribute::count);
        attributes.push(("gen_ai.usage.input_tokens", input));
        if operation != "embeddings" {
            attributes.push(("gen_ai.usage.output_tokens", output));
            attributes.push(("gen_ai.usage.cache_read.input_tokens", cached));
            let reasons = Attribute::Texts(self.finish_reasons);
            attributes.push(("gen_ai.response.finish_reasons", reasons));
        }
        if let Some(seconds) = self.first_token_seconds {
            attributes.push(("gen_ai.response.time_to_first_chunk", Attribute::Number(seconds)));
        }
        attributes.extend(error.map(|error| ("error.type", text(error))));
        attributes
    }
}

impl Attribute {
    fn count(count: usize) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A number as it was written, which one of single precision is not.
    fn decimal(number: f32) -> Self {
        Self::Number(number.to_string().parse().unwrap_or_else(|_| number.into()))
    }
}

/// The options that the conventions have a name for, as far as they are given. Stop strings are texts.
fn request_attributes(options: &GenerateOptions) -> Vec<(&'static str, Attribute)> {
    let numbers = [
        ("gen_ai.request.temperature", options.temperature),
        ("gen_ai.request.top_p", options.top_p),
        ("gen_ai.request.frequency_penalty", options.frequency_penalty),
        ("gen_ai.request.presence_penalty", options.presence_penalty),
    ];
    let given = |(name, number): (_, Option<f32>)| Some((name, Attribute::decimal(number?)));
    let mut attributes: Vec<_> = numbers.into_iter().filter_map(given).collect();
    #[expect(clippy::cast_precision_loss, reason = "the convention has a floating-point number")]
    let top_k = options.top_k.map(|top_k| Attribute::Number(top_k as f64));
    let seed = options.seed.and_then(|seed| i64::try_from(seed).ok()).map(Attribute::Integer);
    let max_tokens = options.max_tokens.map(Attribute::count);
    let more = [
        ("gen_ai.request.top_k", top_k),
        ("gen_ai.request.seed", seed),
        ("gen_ai.request.max_tokens", max_tokens),
    ];
    attributes.extend(more.into_iter().filter_map(|(name, value)| Some((name, value?))));
    attributes
}

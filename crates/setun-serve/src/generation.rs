//! Generations of a request: the one form that every API's request becomes.

use std::{collections::BTreeMap, convert::Infallible, iter, time::Instant};

use axum::{body::Bytes, response::Response};
use futures::{
    StreamExt,
    future::try_join_all,
    stream::{self, BoxStream, SelectAll, select_all},
};
use setun::{
    Completion, EngineError, Event, GenerateOptions, GenerationStream, Prompt,
    grammar::GrammarError, text::TextError,
};

use crate::{
    blocking::beside,
    compat::Format,
    error::ApiError,
    lifecycle::RequestGuard,
    limits::{Limiter, StreamGuard},
    response_format, sampling,
    served_model::ServedModel,
    sse,
    streamed::streamed,
    tokenizing::prompt_bytes,
};

/// Most texts of a request: prompts, and samples of each.
pub(crate) const MAX_CHOICES: usize = 128;

/// A request to generate, whatever its API.
#[derive(Debug)]
pub(crate) struct GenerationRequest {
    pub(crate) prompts: Vec<Prompt>,
    /// Texts of each prompt.
    pub(crate) samples: usize,
    pub(crate) options: GenerateOptions,
    /// Whether the prompts are computed and nothing follows them.
    pub(crate) is_prompt_only: bool,
    pub(crate) format: Option<Format>,
    /// Whether the tokens that end the model's texts may not come.
    pub(crate) ignores_eos: bool,
    /// The field that has the prompt, for errors.
    pub(crate) prompt_field: &'static str,
    /// The fields of tools' schemas by the names of the tools, where they are not in a `function`.
    pub(crate) schema_fields: BTreeMap<String, String>,
}

/// Generations under way. Dropped, they end and free their blocks.
pub(crate) struct Running {
    model: ServedModel,
    streams: Vec<GenerationStream>,
    samples: usize,
    changes_logits: bool,
    begun: Instant,
    guard: RequestGuard,
}

/// Writes the events of generations as those of an API.
pub(crate) trait Encoder: Send + 'static {
    /// The type of the answer.
    const CONTENT_TYPE: &'static str = sse::CONTENT_TYPE;

    /// Adds what an event of a choice becomes, if anything.
    fn event(&mut self, index: usize, event: &Event, events: &mut Vec<u8>);

    /// Adds the end, after the last event of all choices.
    fn end(&mut self, events: &mut Vec<u8>);

    /// Adds an error, after which nothing comes.
    fn error(&mut self, error: &ApiError, events: &mut Vec<u8>) {
        sse::push_error(events, error);
    }
}

impl GenerationRequest {
    /// Starts the generations. Tokenizing and compiling take some time, so that they run beside
    /// those who serve connections.
    pub(crate) async fn start(
        self,
        model: ServedModel,
        guard: RequestGuard,
    ) -> Result<Running, ApiError> {
        let begun = Instant::now();
        let (mut request, mut guard) = (self, guard);
        request.options.cache_salt = guard.cache_salt(request.options.cache_salt);
        let changes_logits = sampling::changes_logits(&request.options);
        let taken = guard.take_texts(&model.engine, request.prompts.len(), request.samples);
        taken.map_err(|error| guard.failed(error))?;
        let (samples, engine) = (request.samples, guard.of_tenant(&model.engine));
        let task_model = model.clone().with_engine(engine);
        model.used_by(guard.key());
        if let Some(span) = &guard.span {
            span.record_request(&model.name, &request.options, samples);
        }
        // Before the turn: others would wait for it.
        if request.format.is_some() || !request.options.tools.is_empty() {
            let model = task_model.clone();
            (request, guard) = beside(move || {
                let compiled = request.compile(&model).map_err(|error| guard.failed(error))?;
                Ok((compiled, guard))
            })
            .await?;
        }
        let bytes: Vec<_> = request.prompts.iter().map(prompt_bytes).collect();
        let turn = guard.limiter.tokenizing.turn_of(&model.engine, bytes, request.prompt_field);
        let turn = turn.await.map_err(|error| guard.failed(error))?;
        // A client may leave before they are returned: its request ends after its generations.
        let (streams, mut guard) = beside(move || {
            let _turn = turn;
            let streams = request.streams(&task_model, &guard.limiter);
            Ok((streams.map_err(|error| guard.failed(error))?, guard))
        })
        .await?;
        if let Some(stream) = streams.first() {
            guard.warn(stream.warnings());
        }
        guard.list(&model.name, &streams);
        Ok(Running { model, streams, samples, changes_logits, begun, guard })
    }

    /// Tokens of the first prompt, with the tools that the options offer.
    pub(crate) async fn count_tokens(
        self,
        model: &ServedModel,
        limiter: &Limiter,
    ) -> Result<usize, ApiError> {
        let Self { prompts, options, prompt_field, .. } = self;
        let Some(prompt) = prompts.into_iter().next() else { return Ok(0) };
        let engine = model.engine.clone();
        let bytes = [prompt_bytes(&prompt)];
        let turn = limiter.tokenizing.turn_of(&engine, bytes, prompt_field).await?;
        beside(move || {
            let _turn = turn;
            let count = engine.count_tokens(prompt, &options);
            count.map_err(|error| ApiError::of_request(&error, prompt_field))
        })
        .await
    }

    /// The same with its format and its tools compiled.
    fn compile(mut self, model: &ServedModel) -> Result<Self, ApiError> {
        if self.ignores_eos {
            let reason = "a format, and calls of tools, end by it";
            return Err(ApiError::unsupported("ignore_eos", reason));
        }
        let (prompt_field, engine) = (self.prompt_field, &model.engine);
        let Some(prompt) = self.prompts.first().filter(|_| !self.is_prompt_only) else {
            return Ok(self);
        };
        if let Some(Format { field, spec }) = self.format.take() {
            let compiled = response_format::compile(engine, &spec, self.options.timeout);
            let refused = |error: EngineError| ApiError::of_request(&error, prompt_field);
            let refused = |error| refused(error).renamed(response_format::FIELD, &field);
            let constraint = compiled.map_err(refused)?;
            self.options.constraint = Some(constraint);
        }
        let compiled = engine.compile_tools(prompt, &self.options);
        compiled.map_err(|error| of_tools(&error, prompt_field, &self.schema_fields))?;
        Ok(self)
    }

    fn streams(
        self,
        model: &ServedModel,
        limiter: &Limiter,
    ) -> Result<Vec<GenerationStream>, ApiError> {
        let Self { prompts, samples, mut options, is_prompt_only, ignores_eos, .. } = self;
        let Self { prompt_field, schema_fields, .. } = self;
        options.max_tokens = options.max_tokens.or(limiter.most_tokens());
        if ignores_eos {
            options.banned_tokens.extend_from_slice(model.engine.end_tokens());
        }
        let check = |prompt| limiter.check_prompt(&model.engine, prompt, &options, prompt_field);
        prompts.iter().try_for_each(check)?;
        let refused = |error: EngineError| ApiError::of_request(&error, prompt_field);
        if options.logprobs == Some(true) || options.prompt_logprobs == Some(true) {
            model.token_words.load(&model.engine).map_err(refused)?;
        }
        if is_prompt_only {
            let prompts = prompts.iter().flat_map(|prompt| iter::repeat_n(prompt, samples));
            let start = |prompt: &Prompt| model.engine.prefill(prompt.clone(), options.clone());
            return prompts.map(start).collect::<Result<_, _>>().map_err(refused);
        }
        let refused = |error: EngineError| of_tools(&error, prompt_field, &schema_fields);
        let start = |prompt| model.engine.generate_many(prompt, options.clone(), samples);
        let streams: Result<Vec<_>, _> = prompts.into_iter().map(start).collect();
        Ok(streams.map_err(refused)?.into_iter().flatten().collect())
    }
}

/// The error of a request whose format has been compiled: another grammar is that of its tools.
fn of_tools(
    error: &EngineError,
    prompt_field: &str,
    schema_fields: &BTreeMap<String, String>,
) -> ApiError {
    let refused = ApiError::of_request(error, prompt_field);
    match error {
        EngineError::Grammar(GrammarError::Tool { tool, name, .. }) => {
            let field = || format!("tools[{tool}].function.parameters");
            refused.at(&schema_fields.get(name).cloned().unwrap_or_else(field))
        }
        EngineError::Grammar(_) => refused.at("tools"),
        _ => refused,
    }
}

impl Running {
    /// All texts, each at its end.
    pub(crate) async fn finish(self) -> Result<Vec<Completion>, ApiError> {
        let Self { model, streams, samples, changes_logits, begun, guard } = self;
        let all = try_join_all(streams.into_iter().map(GenerationStream::finish)).await;
        let all = all.map_err(|error| guard.failed(of_run(&error, changes_logits)))?;
        if all.iter().any(|completion| guard.was_cut_off(&completion.done)) {
            return Err(guard.failed(ApiError::draining()));
        }
        for (index, Completion { done, .. }) in all.iter().enumerate() {
            let is_first = index % samples == 0;
            model.metrics.add_done(done, is_first, begun.elapsed());
            if let Some(span) = &guard.span {
                span.record_done(done, is_first);
            }
        }
        drop(guard);
        Ok(all)
    }

    /// An answer of events, once there is a first: what fails before it has a status of its own.
    ///
    /// Events are written as the client reads them. One that does not read stops its generations
    /// alone, as their queues are bounded.
    pub(crate) async fn respond<E: Encoder>(self, encoder: E) -> Result<Response, ApiError> {
        let Self { model, streams, samples, changes_logits, begun, guard } = self;
        if let Some(span) = &guard.span {
            span.record_stream();
        }
        let opened = guard.limiter.open_stream().map_err(|error| guard.failed(error))?;
        let streams = numbered(streams);
        let mut events =
            Events { model, streams, samples, changes_logits, begun, guard, _opened: opened };
        let Some(first) = events.next().await else {
            return Err(ApiError::internal("there is no text"));
        };
        let answer = Answer { events, first: Some(first?), encoder };
        Ok(streamed(stream::unfold(Some(answer), Answer::<E>::step), E::CONTENT_TYPE))
    }
}

/// The events of each stream with the number of its choice, as they come.
fn numbered(streams: Vec<GenerationStream>) -> SelectAll<BoxStream<'static, NumberedEvent>> {
    let numbered = |(index, stream): (usize, GenerationStream)| {
        stream.map(move |event| (index, event)).boxed()
    };
    select_all(streams.into_iter().enumerate().map(numbered))
}

type NumberedEvent = (usize, Result<Event, EngineError>);

/// Events of all choices.
struct Events {
    model: ServedModel,
    streams: SelectAll<BoxStream<'static, NumberedEvent>>,
    samples: usize,
    changes_logits: bool,
    begun: Instant,
    guard: RequestGuard,
    _opened: StreamGuard,
}

impl Events {
    async fn next(&mut self) -> Option<Result<(usize, Event), ApiError>> {
        let (index, event) = self.streams.next().await?;
        if let Ok(Event::Done(done)) = &event {
            if self.guard.was_cut_off(done) {
                return Some(Err(self.guard.failed(ApiError::draining())));
            }
            let is_first = index % self.samples == 0;
            self.model.metrics.add_done(done, is_first, self.begun.elapsed());
            if let Some(span) = &self.guard.span {
                span.record_done(done, is_first);
            }
        }
        let failed = |error| self.guard.failed(of_run(&error, self.changes_logits));
        Some(event.map(|event| (index, event)).map_err(failed))
    }
}

/// The error of a generation. A logit that options have made infinite is a fault of the request.
fn of_run(error: &EngineError, changes_logits: bool) -> ApiError {
    match error {
        EngineError::Step(cause) => of_run(cause, changes_logits),
        EngineError::Text(TextError::LogitNotFinite { found, .. })
            if changes_logits && found.is_infinite() =>
        {
            ApiError::overflow(&error.to_string())
        }
        error => ApiError::of_run(error),
    }
}

/// An answer that is being written.
struct Answer<E> {
    events: Events,
    first: Option<(usize, Event)>,
    encoder: E,
}

impl<E: Encoder> Answer<E> {
    /// The next bytes, and the answer unless they were its last.
    async fn step(answer: Option<Self>) -> Option<(Result<Bytes, Infallible>, Option<Self>)> {
        let mut answer = answer?;
        let mut bytes = vec![];
        loop {
            let event = match answer.first.take() {
                Some(first) => Some(Ok(first)),
                None => answer.events.next().await,
            };
            match event {
                Some(Ok((index, event))) => answer.encoder.event(index, &event, &mut bytes),
                Some(Err(error)) => {
                    answer.encoder.error(&error, &mut bytes);
                    return Some((Ok(bytes.into()), None));
                }
                None => {
                    answer.encoder.end(&mut bytes);
                    return Some((Ok(bytes.into()), None));
                }
            }
            if !bytes.is_empty() {
                return Some((Ok(bytes.into()), Some(answer)));
            }
        }
    }
}

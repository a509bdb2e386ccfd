//! `POST /v1/completions`.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::{Request, State},
    response::Response,
};
use setun::{Engine, Prompt};

use super::{
    completion_answer::{CompletionEncoder, completion},
    logprobs::MAX_TOP_LOGPROBS,
    prompts,
    streaming::{Head, Streaming},
};
use crate::{
    app::App,
    blocking::beside,
    compat::Compat,
    error::{ApiError, json},
    fields::Fields,
    generation::{GenerationRequest, MAX_CHOICES},
    response_format,
    sampling::{self, MAX_TOKENS},
    tokenizing::{Turn, prompt_bytes},
};

/// The field of the prompts.
const PROMPT: &str = "prompt";

/// A request that continues texts.
struct CompletionRequest {
    generation: GenerationRequest,
    streaming: Streaming,
    has_logprobs: bool,
    /// Whether the prompts are part of the answer.
    echo: bool,
    /// Whether texts get what the tokenizer puts before a prompt.
    adds_special_tokens: bool,
}

/// Continues prompts, whole or in events.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let request = CompletionRequest::read(&mut fields, guard.limiter.most_tokens())?;
    fields.finish(&guard.warnings)?;
    let CompletionRequest { mut generation, streaming, has_logprobs, echo, .. } = request;
    let head = Head::new("cmpl-", model.name.clone());
    let words = Arc::clone(&model.token_words);
    let echoed = if echo { echoed(&model.engine, &generation.prompts).await? } else { vec![] };
    if !request.adds_special_tokens {
        let bytes: Vec<_> = generation.prompts.iter().map(prompt_bytes).collect();
        let turn = guard.limiter.tokenizing.turn_of(&model.engine, bytes, PROMPT).await?;
        generation.prompts = plain(&model.engine, generation.prompts, turn).await?;
    }
    let samples = generation.samples;
    let running = generation.start(model, guard).await?;
    let words = has_logprobs.then_some(words);
    let encoder = CompletionEncoder::new(head, streaming, words).with_prompts(echoed, samples);
    if streaming.is_streamed {
        return running.respond(encoder).await;
    }
    Ok(json(&completion(&encoder, &running.finish().await?)))
}

impl CompletionRequest {
    fn read(fields: &mut Fields, most_tokens: Option<usize>) -> Result<Self, ApiError> {
        let mut compat = Compat::read(fields)?;
        let prompts = prompts::read(fields, PROMPT)?;
        // No tokens: an answer of the prompt alone.
        let is_prompt_only = fields.get(MAX_TOKENS).is_some_and(|count| *count == 0);
        if is_prompt_only {
            fields.take(MAX_TOKENS);
        }
        let mut options = sampling::read(fields, most_tokens)?;
        let echo = fields.flag("echo")?.unwrap_or_default();
        let top_logprobs = fields.count("logprobs", 0, MAX_TOP_LOGPROBS)?;
        let has_logprobs = top_logprobs.is_some();
        if has_logprobs {
            options.logprobs = Some(true);
            options.top_logprobs = top_logprobs;
            options.prompt_logprobs = Some(echo);
        }
        let samples = fields.count("n", 1, MAX_CHOICES)?.unwrap_or(1);
        if fields.count("best_of", 1, MAX_CHOICES)?.is_some_and(|best_of| best_of != samples) {
            return Err(ApiError::unsupported("best_of", "use n"));
        }
        if fields.text("suffix")?.is_some_and(|suffix| !suffix.is_empty()) {
            return Err(ApiError::unsupported("suffix", "the model continues texts only"));
        }
        if prompts.len() * samples > MAX_CHOICES {
            let (found, most) = (prompts.len() * samples, MAX_CHOICES);
            let reason = format!("expected at most {most} texts (prompts times n), found {found}");
            return Err(ApiError::invalid(PROMPT, reason));
        }
        let format = response_format::read(fields)?;
        let format = compat.format(response_format::FIELD, format)?;
        let generation = GenerationRequest {
            prompts,
            samples,
            options,
            is_prompt_only,
            format,
            ignores_eos: compat.ignores_eos,
            prompt_field: PROMPT,
            schema_fields: BTreeMap::new(),
        };
        let adds_special_tokens = fields.flag("add_special_tokens")?.unwrap_or(true);
        let streaming = Streaming::read(fields)?;
        Ok(Self { generation, streaming, has_logprobs, echo, adds_special_tokens })
    }
}

/// Prompts as tokens, without those that the tokenizer puts before a text.
async fn plain(engine: &Engine, prompts: Vec<Prompt>, turn: Turn) -> Result<Vec<Prompt>, ApiError> {
    let engine = engine.clone();
    let tokens = move |prompt| match prompt {
        Prompt::Text(text) => engine.tokenize_plain(&text).map(Prompt::Tokens),
        other => Ok(other),
    };
    let refused = |error| ApiError::of_request(&error, PROMPT);
    beside(move || {
        let _turn = turn;
        prompts.into_iter().map(tokens).collect::<Result<_, _>>().map_err(refused)
    })
    .await
}

/// The texts of prompts.
async fn echoed(engine: &Engine, prompts: &[Prompt]) -> Result<Vec<String>, ApiError> {
    let (engine, prompts) = (engine.clone(), prompts.to_vec());
    beside(move || {
        let text = |prompt| match prompt {
            Prompt::Text(text) => Ok(text),
            Prompt::Tokens(tokens) => {
                engine.detokenize(&tokens).map_err(|error| ApiError::of_request(&error, PROMPT))
            }
            Prompt::Chat(_) => Ok(String::new()), // completions have no conversations
        };
        prompts.into_iter().map(text).collect()
    })
    .await
}

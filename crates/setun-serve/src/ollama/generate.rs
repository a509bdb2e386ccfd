//! `POST /api/generate`.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde_json::Value;
use setun::{Engine, Message, Prompt};

use super::{
    answer::{AnswerEncoder, Shape},
    keep_alive::{self, keep},
    request::{TextRequest, begin, refuse, resolve_name},
};
use crate::{
    app::App, error::ApiError, fields::Fields, generation::GenerationRequest,
    lifecycle::RequestGuard, registry::KeepAlive, served_model::ServedModel,
};

/// The field of the prompt.
const PROMPT: &str = "prompt";

/// Answers a prompt through the chat template, or continues it as it is.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    if let Some(answer) = unload(&app, &mut fields, Shape::Generate, PROMPT)? {
        return Ok(answer);
    }
    let (model, encoder) = begin(&app, &mut fields, Shape::Generate).await?;
    let prompt = read_prompt(&mut fields, &model.engine)?;
    let request = TextRequest::read(&mut fields)?;
    fields.report_unknown();
    keep(&app, &model, request.keep_alive);
    answer(model, guard, encoder, prompt.map(|prompt| (prompt, PROMPT)), request).await
}

/// Has the model of a request unloaded once it is idle, if the request has no prompt and keeps it for no
/// time. It is not loaded for that.
pub(super) fn unload(
    app: &App,
    fields: &mut Fields,
    shape: Shape,
    prompt: &str,
) -> Result<Option<Response>, ApiError> {
    let is_empty = match fields.get(prompt) {
        None => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    };
    if !is_empty || !keep_alive::is_none(fields)? {
        return Ok(None);
    }
    resolve_name(app, fields)?;
    let name = app.keep_model(fields.text("model")?, KeepAlive::For(Duration::ZERO))?;
    Ok(Some(AnswerEncoder::new(name, shape, Duration::ZERO).without_text("unload")))
}

/// Answers a prompt of a field, or only has the model loaded.
pub(super) async fn answer(
    model: ServedModel,
    guard: RequestGuard,
    mut encoder: AnswerEncoder,
    prompt: Option<(Prompt, &'static str)>,
    request: TextRequest,
) -> Result<Response, ApiError> {
    let Some((prompt, prompt_field)) = prompt else { return Ok(encoder.without_text("load")) };
    let TextRequest { options, format, is_streamed, .. } = request;
    if options.logprobs == Some(true) {
        encoder.words = Some(Arc::clone(&model.token_words));
    }
    let (prompts, samples, is_prompt_only) = (vec![prompt], 1, false);
    let generation =
        GenerationRequest { prompts, samples, options, is_prompt_only, format, prompt_field };
    let running = generation.start(model, guard).await?;
    if is_streamed {
        return running.respond(encoder).await;
    }
    let completions = running.finish().await?;
    let completion = completions.first().ok_or_else(|| ApiError::internal("there is no text"))?;
    Ok(encoder.whole(completion))
}

/// The prompt; none where it is empty, which only has the model loaded.
fn read_prompt(fields: &mut Fields, engine: &Engine) -> Result<Option<Prompt>, ApiError> {
    refuse(fields, "suffix", "the model continues texts only")?;
    refuse(fields, "images", "prompts are text")?;
    refuse(fields, "template", "the model has its own; use raw with a whole prompt")?;
    refuse(fields, "context", "send the conversation to /api/chat")?;
    let text = fields.text(PROMPT)?.unwrap_or_default();
    let system = fields.text("system")?.filter(|system| !system.is_empty());
    let is_raw = fields.flag("raw")?.unwrap_or_default() || !engine.has_chat_template();
    if text.is_empty() {
        return Ok(None);
    }
    if !is_raw {
        let messages = system.map(Message::system).into_iter().chain([Message::user(text)]);
        return Ok(Some(Prompt::Chat(messages.collect())));
    }
    match system {
        Some(_) => Err(ApiError::unsupported("system", "the prompt has no chat template")),
        None => Ok(Some(Prompt::Text(text))),
    }
}

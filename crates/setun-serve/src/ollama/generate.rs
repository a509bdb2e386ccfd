//! `POST /api/generate`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use setun::{Engine, Message, Prompt};

use super::{
    answer::{AnswerEncoder, Shape},
    request::{TextRequest, begin, refuse},
};
use crate::{
    app::App, error::ApiError, fields::Fields, generation::GenerationRequest,
    lifecycle::RequestGuard, served_model::ServedModel,
};

/// The field of the prompt.
const PROMPT: &str = "prompt";

/// Answers a prompt through the chat template, or continues it as it is.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let (model, encoder) = begin(&app, &mut fields, Shape::Generate).await?;
    let prompt = read_prompt(&mut fields, &model.engine)?;
    let request = TextRequest::read(&mut fields)?;
    fields.report_unknown();
    answer(model, guard, encoder, prompt.map(|prompt| (prompt, PROMPT)), request).await
}

/// Answers a prompt of a field, or only has the model loaded.
pub(super) async fn answer(
    model: ServedModel,
    guard: RequestGuard,
    mut encoder: AnswerEncoder,
    prompt: Option<(Prompt, &'static str)>,
    request: TextRequest,
) -> Result<Response, ApiError> {
    let Some((prompt, prompt_field)) = prompt else { return Ok(encoder.loaded()) };
    let TextRequest { options, format, is_streamed } = request;
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

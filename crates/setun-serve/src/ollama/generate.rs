//! `POST /api/generate`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    response::Response,
};
use setun::{Engine, Message, Prompt};

use super::{
    answer::{AnswerEncoder, Shape},
    keep_alive::keep,
    request::{FORMAT, TextRequest, begin, refuse, resolve_name},
};
use crate::{
    app::App, compat::Format, error::ApiError, fields::Fields, generation::GenerationRequest,
    lifecycle::RequestGuard, registry::KeepAlive, served_model::ServedModel,
};

/// The field of the prompt.
const PROMPT: &str = "prompt";

/// Answers a prompt through the chat template, or continues it as it is.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let prompt = GeneratePrompt::read(&mut fields)?;
    let request = TextRequest::read(&mut fields, &guard)?;
    if prompt.text.is_empty() && request.is_unload() {
        return unload(&app, fields, &guard, Shape::Generate);
    }
    let (model, encoder) = begin(&app, &mut fields, Shape::Generate).await?;
    fields.finish(&guard.warnings)?;
    let prompt = prompt.resolve(&model.engine)?;
    keep(&app, &model, &guard, request.keep_alive);
    answer(model, guard, encoder, prompt.map(|prompt| (prompt, PROMPT)), request).await
}

/// Unloads the model of a request once it is idle, unless other keys use it. It is not loaded for
/// that.
pub(super) fn unload(
    app: &App,
    mut fields: Fields,
    guard: &RequestGuard,
    shape: Shape,
) -> Result<Response, ApiError> {
    resolve_name(&mut fields)?;
    let now = KeepAlive::For(Duration::ZERO);
    let name = app.keep_model(fields.text("model")?, now, guard.key())?;
    fields.report_unknown();
    Ok(AnswerEncoder::new(name, shape, Duration::ZERO).without_text("unload"))
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
    let generation = GenerationRequest {
        prompts: vec![prompt],
        samples: 1,
        options,
        is_prompt_only: false,
        format: format.map(|spec| Format { field: FORMAT.to_owned(), spec }),
        ignores_eos: false,
        prompt_field,
        schema_fields: BTreeMap::new(),
    };
    let running = generation.start(model, guard).await?;
    if is_streamed {
        return running.respond(encoder).await;
    }
    let completions = running.finish().await?;
    let completion = completions.first().ok_or_else(|| ApiError::internal("there is no text"))?;
    Ok(encoder.whole(completion))
}

/// A prompt as the request has it.
struct GeneratePrompt {
    text: String,
    system: Option<String>,
    is_raw: bool,
}

impl GeneratePrompt {
    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        refuse(fields, "suffix", "the model continues texts only")?;
        refuse(fields, "images", "prompts are text")?;
        refuse(fields, "template", "the model has its own; use raw with a whole prompt")?;
        refuse(fields, "context", "send the conversation to /api/chat")?;
        let text = fields.text(PROMPT)?.unwrap_or_default();
        let system = fields.text("system")?.filter(|system| !system.is_empty());
        let is_raw = fields.flag("raw")?.unwrap_or_default();
        Ok(Self { text, system, is_raw })
    }

    /// The prompt of a model; none where it is empty, which only has the model loaded.
    fn resolve(self, engine: &Engine) -> Result<Option<Prompt>, ApiError> {
        let Self { text, system, is_raw } = self;
        if text.is_empty() {
            return Ok(None);
        }
        if !is_raw && engine.has_chat_template() {
            let messages = system.map(Message::system).into_iter().chain([Message::user(text)]);
            return Ok(Some(Prompt::Chat(messages.collect())));
        }
        match system {
            Some(_) => Err(ApiError::unsupported("system", "the prompt has no chat template")),
            None => Ok(Some(Prompt::Text(text))),
        }
    }
}

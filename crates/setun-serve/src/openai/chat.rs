//! `POST /v1/chat/completions`.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::{Request, State},
    response::Response,
};
use setun::Prompt;

use super::{
    chat_answer::{ChatEncoder, chat_completion},
    logprobs::MAX_TOP_LOGPROBS,
    streaming::{Head, Streaming},
};
use crate::{
    app::App,
    compat::Compat,
    error::{ApiError, json},
    fields::Fields,
    generation::{GenerationRequest, MAX_CHOICES},
    messages, response_format, sampling,
};

/// A request for an answer in a conversation.
struct ChatRequest {
    generation: GenerationRequest,
    streaming: Streaming,
}

/// Answers a conversation, whole or in events.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let most_tokens = guard.limiter.most_tokens();
    let ChatRequest { generation, streaming } = ChatRequest::read(&mut fields, most_tokens)?;
    fields.finish(&guard.warnings)?;
    let head = Head::new("chatcmpl-", model.name.clone());
    let words = Arc::clone(&model.token_words);
    let has_logprobs = generation.options.logprobs == Some(true);
    let running = generation.start(model, guard).await?;
    let encoder = ChatEncoder::new(head, streaming, has_logprobs.then_some(words));
    if streaming.is_streamed {
        return running.respond(encoder).await;
    }
    Ok(json(&chat_completion(&encoder, &running.finish().await?)))
}

impl ChatRequest {
    fn read(fields: &mut Fields, most_tokens: Option<usize>) -> Result<Self, ApiError> {
        let mut compat = Compat::read(fields)?;
        let messages = messages::read(fields)?;
        let options = sampling::read(fields, most_tokens)?;
        let mut options = messages::read_tools(fields, options)?;
        options.logprobs = fields.flag("logprobs")?;
        options.top_logprobs = fields.count("top_logprobs", 0, MAX_TOP_LOGPROBS)?;
        if options.top_logprobs > Some(0) && options.logprobs != Some(true) {
            return Err(ApiError::invalid("top_logprobs", "expected logprobs to be true"));
        }
        refuse_media(fields)?;
        let generation = GenerationRequest {
            prompts: vec![Prompt::Chat(messages)],
            samples: fields.count("n", 1, MAX_CHOICES)?.unwrap_or(1),
            options,
            is_prompt_only: false,
            format: compat.format(response_format::FIELD, response_format::read(fields)?)?,
            ignores_eos: compat.ignores_eos,
            prompt_field: "messages",
            schema_fields: BTreeMap::new(),
        };
        Ok(Self { generation, streaming: Streaming::read(fields)? })
    }
}

/// Refuses answers that are no text.
fn refuse_media(fields: &mut Fields) -> Result<(), ApiError> {
    let is_text = |modality: &serde_json::Value| modality == "text";
    let modalities = fields.list("modalities")?.unwrap_or_default();
    if !modalities.iter().all(is_text) {
        return Err(ApiError::unsupported("modalities", "answers are text"));
    }
    match fields.take("audio") {
        Some(_) => Err(ApiError::unsupported("audio", "answers are text")),
        None => Ok(()),
    }
}

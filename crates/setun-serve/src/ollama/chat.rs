//! `POST /api/chat`.

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde_json::{Map, Value};
use setun::Prompt;

use super::{
    answer::Shape,
    generate::{answer, unload},
    keep_alive::keep,
    request::{TextRequest, begin},
};
use crate::{app::App, error::ApiError, fields::Fields, messages};

/// The field of the messages.
const MESSAGES: &str = "messages";

/// Answers a conversation, or only has the model loaded.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let prompt = read_messages(&mut fields)?;
    let mut request = TextRequest::read(&mut fields, &guard)?;
    request.options = messages::read_tools(&mut fields, request.options)?;
    if let Some(parallel) = fields.flag("parallel_tool_calls")? {
        request.options = request.options.parallel_tool_calls(parallel);
    }
    if prompt.is_none() && request.is_unload() {
        return unload(&app, fields, &guard, Shape::Chat);
    }
    let (model, encoder) = begin(&app, &mut fields, Shape::Chat).await?;
    fields.finish(&guard.warnings)?;
    keep(&app, &model, &guard, request.keep_alive);
    answer(model, guard, encoder, prompt.map(|prompt| (prompt, MESSAGES)), request).await
}

fn read_messages(fields: &mut Fields) -> Result<Option<Prompt>, ApiError> {
    let list = fields.list(MESSAGES)?.unwrap_or_default();
    if list.is_empty() {
        return Ok(None);
    }
    Ok(Some(Prompt::Chat(messages::read_list(list, translate)?)))
}

/// A message in the shape of the `OpenAI` API.
fn translate(path: &str, mut message: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    // As in Ollama, null and a content that is not there are empty.
    message.retain(|_, value| !value.is_null());
    if !message.contains_key("tool_calls") {
        message.entry("content").or_insert_with(|| "".into());
    }
    let images = message.shift_remove("images");
    if images.is_some_and(|images| images.as_array().is_none_or(|list| !list.is_empty())) {
        return Err(ApiError::unsupported(&format!("{path}.images"), "messages are text"));
    }
    if let Some(name) = message.shift_remove("tool_name") {
        message.entry("name").or_insert(name);
    }
    Ok(message)
}

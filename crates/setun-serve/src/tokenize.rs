//! Tokens of texts and conversations, and texts of tokens.

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde::Serialize;
use setun::{GenerateOptions, Prompt};

use crate::{
    app::App,
    blocking::beside,
    error::{ApiError, json},
    fields::Fields,
    messages,
    openai::prompts::tokens_of,
};

/// Tokens, as vLLM answers them.
#[derive(Serialize)]
struct Tokenized {
    count: usize,
    max_model_len: usize,
    tokens: Vec<u32>,
}

/// A text, as vLLM answers it.
#[derive(Serialize)]
struct Detokenized {
    prompt: String,
}

/// `POST /tokenize`: a `prompt`, or `messages` through the chat template.
pub(crate) async fn tokenize(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut fields, _guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let (prompt, options) = read(&mut fields)?;
    fields.report_unknown();
    let engine = model.engine.clone();
    let tokens = move || match prompt {
        Prompt::Chat(messages) => engine
            .tokenize_chat(&messages, &options)
            .map_err(|error| ApiError::of_request(&error, "messages")),
        Prompt::Text(text) => {
            engine.tokenize(&text).map_err(|error| ApiError::of_request(&error, "prompt"))
        }
        Prompt::Tokens(tokens) => Ok(tokens),
    };
    let tokens = beside(tokens).await?;
    let max_model_len = model.engine.context_length();
    Ok(json(&Tokenized { count: tokens.len(), max_model_len, tokens }))
}

/// `POST /detokenize`: the text of `tokens`.
pub(crate) async fn detokenize(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut fields, _guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let list = fields.list("tokens")?;
    let list = list.ok_or_else(|| ApiError::missing("tokens", "a list of token ids"))?;
    let tokens = tokens_of("tokens", &list)?;
    fields.report_unknown();
    let engine = model.engine.clone();
    let text =
        move || engine.detokenize(&tokens).map_err(|error| ApiError::of_request(&error, "tokens"));
    Ok(json(&Detokenized { prompt: beside(text).await? }))
}

fn read(fields: &mut Fields) -> Result<(Prompt, GenerateOptions), ApiError> {
    let mut options = GenerateOptions::new();
    if let Some(text) = fields.text("prompt")? {
        if fields.flag("add_special_tokens")? == Some(false) {
            let reason = "the tokenizer adds its own special tokens";
            return Err(ApiError::unsupported("add_special_tokens", reason));
        }
        return Ok((Prompt::Text(text), options));
    }
    let messages = messages::read(fields)?;
    options = messages::read_tools(fields, options)?;
    if let Some(continues) = fields.flag("continue_final_message")? {
        options = options.continue_final_message(continues);
    }
    Ok((Prompt::Chat(messages), options))
}

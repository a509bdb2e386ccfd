//! `POST /v1/responses` and `POST /v1/responses/input_tokens`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde::Serialize;

use super::{encoder::ResponseEncoder, request::ResponseRequest};
use crate::{
    app::App,
    error::{ApiError, json},
    openai::streaming::Head,
};

/// Names of fields that the API has for others.
const RENAMED: [(&str, &str); 2] =
    [("response_format", "text.format"), ("max_tokens", "max_output_tokens")];

#[derive(Serialize)]
struct InputTokens {
    object: &'static str,
    input_tokens: usize,
}

/// Answers a conversation, whole or in events.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let most_tokens = guard.limiter.most_tokens();
    let ResponseRequest { generation, settings, is_streamed } =
        ResponseRequest::read(&mut fields, most_tokens)?;
    fields.finish(&guard.warnings)?;
    let head = Head::new("resp_", model.name.clone());
    let words = settings.has_logprobs.then(|| Arc::clone(&model.token_words));
    let running = generation.start(model, guard).await.map_err(renamed)?;
    let encoder = ResponseEncoder::new(head, settings, words);
    if is_streamed {
        return running.respond(encoder).await;
    }
    encoder.whole(&running.finish().await?)
}

/// Counts the tokens of a conversation.
pub(crate) async fn input_tokens(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let request = ResponseRequest::read(&mut fields, None)?;
    fields.finish(&guard.warnings)?;
    let generation = request.generation;
    let input_tokens = generation.count_tokens(&model, &guard.limiter).await?;
    Ok(json(&InputTokens { object: "response.input_tokens", input_tokens }))
}

fn renamed(error: ApiError) -> ApiError {
    RENAMED.iter().fold(error, |error, (field, name)| error.renamed(field, name))
}

//! `POST /v1/messages` and `POST /v1/messages/count_tokens`.

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde::Serialize;

use super::{
    answer::Message,
    encoder::MessageEncoder,
    request::{MessageRequest, read_generation},
};
use crate::{
    answer_parts::Parts,
    app::App,
    error::{ApiError, json},
    openai::streaming::Head,
    request_id::RequestId,
};

#[derive(Serialize)]
struct TokenCount {
    input_tokens: usize,
}

/// Answers a conversation, whole or in events.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let id = request.extensions().get::<RequestId>().cloned();
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let most_tokens = guard.limiter.most_tokens();
    let MessageRequest { generation, is_streamed } =
        MessageRequest::read(&mut fields, most_tokens)?;
    fields.finish(&guard.warnings)?;
    let head = Head::new("msg_", model.name.clone());
    let running = generation.start(model, guard).await?;
    if is_streamed {
        return running.respond(MessageEncoder::new(head, id)).await;
    }
    let completions = running.finish().await?;
    let [completion] = &completions[..] else {
        return Err(ApiError::internal("a message has one text"));
    };
    Ok(json(&Message::whole(&head, &Parts::of(completion), &completion.done)))
}

/// Counts the tokens of a conversation.
pub(crate) async fn count_tokens(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let generation = read_generation(&mut fields, None)?;
    fields.finish(&guard.warnings)?;
    let input_tokens = generation.count_tokens(&model, &guard.limiter).await?;
    Ok(json(&TokenCount { input_tokens }))
}

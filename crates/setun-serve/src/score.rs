//! `POST /score`: log-probabilities of texts as continuations of a prompt.

use std::{pin::pin, sync::Arc};

use axum::{
    extract::{Request, State},
    response::Response,
};
use futures::{
    channel::oneshot,
    future::{Either, select},
};
use serde::Serialize;
use serde_json::Value;
use setun::{Engine, GenerateOptions, Prompt, Score, TextDelta};
use tokio::runtime::Handle;

use crate::{
    app::App,
    blocking::beside,
    cache_salt,
    error::{ApiError, json},
    fields::Fields,
    messages,
    openai::prompts::tokens_of,
    tokenizing::prompt_bytes,
};

/// The field of the continuations.
const CONTINUATIONS: &str = "continuations";

/// Most continuations of a prompt.
pub(crate) const MAX_CONTINUATIONS: usize = 128;

#[derive(Serialize)]
struct Scores<'a> {
    model: &'a str,
    scores: Vec<Scored<'a>>,
}

/// A score, as `setun score --json` prints it.
#[derive(Serialize)]
struct Scored<'a> {
    text: &'a str,
    logprob: f64,
    mean_logprob: f64,
    tokens: &'a [TextDelta],
}

/// Scores continuations of a `prompt`, or of `messages` through the chat template.
pub(crate) async fn score(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let (prompt, prompt_field) = read_prompt(&mut fields)?;
    let texts = read_continuations(&mut fields)?;
    let salt = cache_salt::read(&mut fields)?;
    fields.report_unknown();
    let engine = guard.salted(&model.engine, salt);
    model.used_by(guard.key());
    let limiter = Arc::clone(&guard.limiter);
    let bytes = [prompt_bytes(&prompt), texts.iter().map(String::len).sum()];
    let turn = limiter.tokenizing.turn_of(&engine, bytes, prompt_field).await?;
    let check = move |engine: &Engine, prompt: &Prompt| {
        let _turn = turn;
        limiter.check_prompt(engine, prompt, &GenerateOptions::new(), prompt_field)
    };
    let scores = scores(engine, prompt, prompt_field, texts.clone(), check).await?;
    let scores = texts.iter().zip(&scores).map(|(text, score)| Scored::new(text, score));
    Ok(json(&Scores { model: &model.name, scores: scores.collect() }))
}

impl<'a> Scored<'a> {
    fn new(text: &'a str, score: &'a Score) -> Self {
        let (logprob, mean_logprob) = (score.logprob, score.mean_logprob());
        Self { text, logprob, mean_logprob, tokens: &score.tokens }
    }
}

fn read_prompt(fields: &mut Fields) -> Result<(Prompt, &'static str), ApiError> {
    const PROMPT: &str = "prompt";
    messages::refuse_beside(fields, PROMPT)?;
    match fields.take(PROMPT) {
        Some(Value::String(text)) => Ok((Prompt::Text(text), PROMPT)),
        Some(Value::Array(list)) => Ok((Prompt::Tokens(tokens_of(PROMPT, &list)?), PROMPT)),
        Some(other) => Err(ApiError::wrong_type(PROMPT, "a string or token ids", &other)),
        None => Ok((Prompt::Chat(messages::read(fields)?), "messages")),
    }
}

fn read_continuations(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    let expected = format!("a list of 1 to {MAX_CONTINUATIONS} strings");
    let list = fields.list(CONTINUATIONS)?;
    let list = list.ok_or_else(|| ApiError::missing(CONTINUATIONS, &expected))?;
    if !(1..=MAX_CONTINUATIONS).contains(&list.len()) {
        let reason = format!("expected {expected}, found {}", list.len());
        return Err(ApiError::invalid(CONTINUATIONS, reason));
    }
    let text = |(index, value)| match value {
        Value::String(text) => Ok(text),
        other => {
            let name = format!("{CONTINUATIONS}[{index}]");
            Err(ApiError::wrong_type(&name, "a string", &other))
        }
    };
    list.into_iter().enumerate().map(text).collect()
}

/// The scores of texts, computed until they are there or nobody waits any more. Tokenizing takes
/// some time, so that all of it runs beside those who serve connections.
async fn scores(
    engine: Engine,
    prompt: Prompt,
    prompt_field: &'static str,
    texts: Vec<String>,
    check: impl FnOnce(&Engine, &Prompt) -> Result<(), ApiError> + Send + 'static,
) -> Result<Vec<Score>, ApiError> {
    let (waiting, left) = oneshot::channel::<()>();
    let scores = beside(move || {
        check(&engine, &prompt)?;
        let scores = pin!(engine.score(prompt, &texts));
        match Handle::current().block_on(select(scores, left)) {
            Either::Left((scores, _)) => {
                scores.map_err(|error| ApiError::of_request(&error, prompt_field))
            }
            Either::Right(_) => Err(ApiError::internal("the client has left")),
        }
    });
    let scores = scores.await;
    drop(waiting); // it ends the work where this is dropped before
    scores
}

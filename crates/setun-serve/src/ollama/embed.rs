//! `POST /api/embed` and the older `POST /api/embeddings`.

use std::time::Instant;

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde::Serialize;
use setun::Prompt;

use super::{
    keep_alive::{self, keep},
    request::{model, refuse},
    time::nanoseconds,
};
use crate::{
    app::App,
    embedding::Inputs,
    error::{ApiError, json},
    fields::Fields,
    lifecycle::RequestGuard,
    openai::prompts,
    served_model::ServedModel,
};

const INPUT: &str = "input";
const PROMPT: &str = "prompt";

#[derive(Serialize)]
struct Embedded {
    model: String,
    embeddings: Vec<Vec<f32>>,
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: usize,
}

#[derive(Serialize)]
struct OneEmbedded {
    embedding: Vec<f32>,
}

/// Embeds texts.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let begun = Instant::now();
    let (mut fields, guard) = app.accept(request).await?;
    let model = model(&app, &mut fields).await?;
    let load_duration = nanoseconds(begun.elapsed());
    let mut inputs = Inputs::new(prompts::read(&mut fields, INPUT)?, INPUT)?;
    inputs.is_cut = fields.flag("truncate")?.unwrap_or(true);
    if fields.take("dimensions").is_some() {
        let reason = "embeddings have the size of the model";
        return Err(ApiError::unsupported("dimensions", reason));
    }
    let embeddings = read_rest(&app, &model, &guard, fields, inputs)?.embed(&model, &guard).await?;
    let prompt_eval_count = embeddings.iter().map(|embedding| embedding.tokens).sum();
    let embeddings = embeddings.into_iter().map(|embedding| embedding.values).collect();
    let total_duration = nanoseconds(begun.elapsed());
    let model = model.name;
    Ok(json(&Embedded { model, embeddings, total_duration, load_duration, prompt_eval_count }))
}

/// Embeds one text, whose vector is as long as the model makes it.
pub(crate) async fn create_one(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = model(&app, &mut fields).await?;
    let prompt = fields.text(PROMPT)?.unwrap_or_default();
    let prompts = if prompt.is_empty() { vec![] } else { vec![Prompt::Text(prompt)] };
    let mut inputs = Inputs::new(prompts, PROMPT)?;
    (inputs.is_cut, inputs.is_normalised) = (true, false);
    let embeddings = read_rest(&app, &model, &guard, fields, inputs)?.embed(&model, &guard).await?;
    let embedding = embeddings.into_iter().next().map(|embedding| embedding.values);
    Ok(json(&OneEmbedded { embedding: embedding.unwrap_or_default() }))
}

/// Reads what both requests have, and keeps the model as long as it is said there.
fn read_rest(
    app: &App,
    model: &ServedModel,
    guard: &RequestGuard,
    mut fields: Fields,
    mut inputs: Inputs,
) -> Result<Inputs, ApiError> {
    let keep_alive = keep_alive::read(&mut fields)?;
    refuse(&mut fields, "images", "inputs are text")?;
    inputs = inputs.read_pooling(&mut fields)?;
    if let Some(mut options) = fields.object("options")? {
        inputs = inputs.read_salt(&mut options)?;
        options.report_unknown();
    }
    fields.report_unknown();
    keep(app, model, guard, keep_alive);
    Ok(inputs)
}

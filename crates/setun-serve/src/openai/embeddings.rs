//! `POST /v1/embeddings`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use setun::{Embedding, Engine, GenerateOptions, Pooling, Prompt};

use super::prompts;
use crate::{
    app::App,
    blocking::beside,
    error::{ApiError, json},
    fields::Fields,
    limits::Limiter,
};

/// The field of the texts.
const INPUT: &str = "input";

/// Most texts of a request, as `OpenAI` has it.
const MAX_INPUTS: usize = 2048;

/// A request for vectors.
struct EmbeddingRequest {
    inputs: Vec<Prompt>,
    is_base64: bool,
    pooling: Pooling,
    is_normalised: bool,
}

#[derive(Serialize)]
struct EmbeddingList<'a> {
    object: &'static str,
    data: Vec<EmbeddingItem>,
    model: &'a str,
    usage: EmbeddingUsage,
}

#[derive(Serialize)]
struct EmbeddingItem {
    object: &'static str,
    index: usize,
    embedding: Values,
}

#[derive(Serialize)]
struct EmbeddingUsage {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// A vector: numbers, or their bytes, the lowest first.
#[derive(Serialize)]
#[serde(untagged)]
enum Values {
    Float(Vec<f32>),
    Base64(String),
}

/// Embeds texts.
pub(crate) async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (mut fields, guard) = app.accept(request).await?;
    let model = app.model(&mut fields).await?;
    let request = EmbeddingRequest::read(&mut fields)?;
    fields.report_unknown();
    let EmbeddingRequest { inputs, is_base64, pooling, is_normalised } = request;
    let engine = model.engine.clone();
    let limiter = Arc::clone(&guard.limiter);
    let tokens = beside(move || tokens(&engine, inputs, &limiter)).await?;
    let embeddings = model.engine.embed(tokens, pooling, is_normalised).await;
    let embeddings = embeddings.into_iter().collect::<Result<Vec<_>, _>>();
    let embeddings = embeddings.map_err(|error| ApiError::of_request(&error, INPUT))?;
    for embedding in &embeddings {
        model.metrics.add_prompt(embedding.tokens);
    }
    Ok(json(&list(&model.name, embeddings, is_base64)))
}

impl EmbeddingRequest {
    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let inputs = prompts::read(fields, INPUT)?;
        if inputs.len() > MAX_INPUTS {
            let reason = format!("expected at most {MAX_INPUTS} texts, found {}", inputs.len());
            return Err(ApiError::invalid(INPUT, reason));
        }
        let is_base64 = match fields.text("encoding_format")?.as_deref() {
            None | Some("float") => false,
            Some("base64") => true,
            Some(other) => {
                let reason = format!("expected float or base64, found {other:?}");
                return Err(ApiError::invalid("encoding_format", reason));
            }
        };
        if fields.take("dimensions").is_some() {
            let reason = "embeddings have the size of the model";
            return Err(ApiError::unsupported("dimensions", reason));
        }
        let pooling = match fields.text("pooling")?.as_deref() {
            None | Some("last") => Pooling::Last,
            Some("mean") => Pooling::Mean,
            Some(other) => {
                let reason = format!("expected last or mean, found {other:?}");
                return Err(ApiError::invalid("pooling", reason));
            }
        };
        let is_normalised = fields.flag("normalize")?.unwrap_or(true);
        Ok(Self { inputs, is_base64, pooling, is_normalised })
    }
}

/// The tokens of texts.
fn tokens(
    engine: &Engine,
    inputs: Vec<Prompt>,
    limiter: &Limiter,
) -> Result<Vec<Prompt>, ApiError> {
    let tokens = |input| match input {
        Prompt::Text(text) => engine.tokenize(&text).map(Prompt::Tokens),
        other => Ok(other),
    };
    let tokens: Result<Vec<_>, _> = inputs.into_iter().map(tokens).collect();
    let tokens = tokens.map_err(|error| ApiError::of_request(&error, INPUT))?;
    let check = |prompt| limiter.check_prompt(engine, prompt, &GenerateOptions::new(), INPUT);
    tokens.iter().try_for_each(check)?;
    Ok(tokens)
}

fn list(model: &str, embeddings: Vec<Embedding>, is_base64: bool) -> EmbeddingList<'_> {
    let prompt_tokens = embeddings.iter().map(|embedding| embedding.tokens).sum();
    let item = |(index, embedding): (usize, Embedding)| {
        let embedding = Values::new(embedding.values, is_base64);
        EmbeddingItem { object: "embedding", index, embedding }
    };
    EmbeddingList {
        object: "list",
        data: embeddings.into_iter().enumerate().map(item).collect(),
        model,
        usage: EmbeddingUsage { prompt_tokens, total_tokens: prompt_tokens },
    }
}

impl Values {
    fn new(values: Vec<f32>, is_base64: bool) -> Self {
        if !is_base64 {
            return Self::Float(values);
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::Base64(STANDARD.encode(bytes))
    }
}

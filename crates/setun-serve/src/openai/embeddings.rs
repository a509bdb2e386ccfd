//! `POST /v1/embeddings`.

use axum::{
    extract::{Request, State},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use setun::Embedding;

use super::prompts;
use crate::{
    app::App,
    embedding::Inputs,
    error::{ApiError, json},
    excerpt::excerpt,
    fields::Fields,
};

/// The field of the texts.
const INPUT: &str = "input";

/// A request for vectors.
struct EmbeddingRequest {
    inputs: Inputs,
    is_base64: bool,
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
    let embeddings = request.inputs.embed(&model, &guard).await?;
    Ok(json(&list(&model.name, embeddings, request.is_base64)))
}

impl EmbeddingRequest {
    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let inputs = Inputs::new(prompts::read(fields, INPUT)?, INPUT)?;
        let is_base64 = match fields.text("encoding_format")?.as_deref() {
            None | Some("float") => false,
            Some("base64") => true,
            Some(other) => {
                let reason = format!(
                    "expected float or base64, found {}",
                    excerpt(format_args!("{other:?}"))
                );
                return Err(ApiError::invalid("encoding_format", reason));
            }
        };
        if fields.take("dimensions").is_some() {
            let reason = "embeddings have the size of the model";
            return Err(ApiError::unsupported("dimensions", reason));
        }
        Ok(Self { inputs: inputs.read_pooling(fields)?.read_salt(fields)?, is_base64 })
    }
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

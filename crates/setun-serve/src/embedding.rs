//! Vectors of texts, whatever the API.

use std::sync::Arc;

use setun::{Embedding, Engine, EngineError, GenerateOptions, Pooling, Prompt};

use crate::{
    blocking::beside,
    cache_salt,
    error::ApiError,
    excerpt::excerpt,
    fields::Fields,
    lifecycle::RequestGuard,
    served_model::ServedModel,
    tokenizing::{max_bytes, prompt_bytes},
};

/// Most texts of a request, as `OpenAI` has it.
pub(crate) const MAX_INPUTS: usize = 2048;

/// Texts to embed, and how.
pub(crate) struct Inputs {
    prompts: Vec<Prompt>,
    /// The field that has them, for errors.
    field: &'static str,
    pooling: Pooling,
    /// Of the prefix cache.
    salt: Option<String>,
    pub(crate) is_normalised: bool,
    /// Whether texts that are too long are cut to the context.
    pub(crate) is_cut: bool,
}

impl Inputs {
    pub(crate) fn new(prompts: Vec<Prompt>, field: &'static str) -> Result<Self, ApiError> {
        if prompts.len() > MAX_INPUTS {
            let reason = format!("expected at most {MAX_INPUTS} texts, found {}", prompts.len());
            return Err(ApiError::invalid(field, reason));
        }
        let (pooling, salt, is_normalised, is_cut) = (Pooling::Last, None, true, false);
        Ok(Self { prompts, field, pooling, salt, is_normalised, is_cut })
    }

    /// With what a request says of the vectors, in setun's own fields.
    pub(crate) fn read_pooling(self, fields: &mut Fields) -> Result<Self, ApiError> {
        let pooling = match fields.text("pooling")?.as_deref() {
            None => self.pooling,
            Some("last") => Pooling::Last,
            Some("mean") => Pooling::Mean,
            Some(other) => {
                let reason =
                    format!("expected last or mean, found {}", excerpt(format_args!("{other:?}")));
                return Err(ApiError::invalid("pooling", reason));
            }
        };
        let is_normalised = fields.flag("normalize")?.unwrap_or(self.is_normalised);
        Ok(Self { pooling, is_normalised, ..self })
    }

    /// With the salt that a request has in the prefix cache.
    pub(crate) fn read_salt(self, fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { salt: cache_salt::read(fields)?, ..self })
    }

    /// The vector of each text, in their order.
    pub(crate) async fn embed(
        self,
        model: &ServedModel,
        guard: &RequestGuard,
    ) -> Result<Vec<Embedding>, ApiError> {
        let Self { mut prompts, field, pooling, salt, is_normalised, is_cut } = self;
        let salted = guard.salted(&model.engine, salt);
        model.used_by(guard.key());
        if let Some(span) = &guard.span {
            span.record_request(&model.name, &GenerateOptions::new(), 1);
            span.record_texts(prompts.len());
        }
        let refused = move |error: EngineError| ApiError::of_request(&error, field);
        let (engine, limiter) = (salted.clone(), Arc::clone(&guard.limiter));
        if is_cut {
            for prompt in &mut prompts {
                cut(prompt, max_bytes(&engine));
            }
        }
        let bytes: Vec<_> = prompts.iter().map(prompt_bytes).collect();
        let turn = limiter.tokenizing.turn_of(&engine, bytes, field).await;
        let turn = turn.map_err(|error| guard.failed(error))?;
        let tokens = move || {
            let _turn = turn;
            let tokens = tokens(&engine, prompts, is_cut).map_err(refused)?;
            let options = GenerateOptions::new();
            let check = |prompt| limiter.check_prompt(&engine, prompt, &options, field);
            tokens.iter().try_for_each(check).map(|()| tokens)
        };
        let tokens = beside(tokens).await.map_err(|error| guard.failed(error))?;
        let embeddings = salted.embed(tokens, pooling, is_normalised).await;
        let embeddings = embeddings.into_iter().collect::<Result<Vec<_>, _>>();
        let embeddings = embeddings.map_err(|error| guard.failed(refused(error)))?;
        if let Some(span) = &guard.span {
            span.record_prompts(embeddings.iter().map(|embedding| embedding.tokens).sum());
        }
        for embedding in &embeddings {
            model.metrics.add_prompt(embedding.tokens);
            if pooling == Pooling::Last {
                model.metrics.add_lookup(embedding.tokens, embedding.cached_tokens);
            }
        }
        Ok(embeddings)
    }
}

/// Cuts a text that is far longer than the context to what may be tokenized.
fn cut(prompt: &mut Prompt, most: usize) {
    if let Prompt::Text(text) = prompt {
        text.truncate(text.floor_char_boundary(most));
    }
}

/// The tokens of texts.
fn tokens(engine: &Engine, prompts: Vec<Prompt>, is_cut: bool) -> Result<Vec<Prompt>, EngineError> {
    let tokens = |prompt| match prompt {
        Prompt::Text(text) => {
            let mut tokens = engine.tokenize(&text)?;
            if is_cut {
                tokens.truncate(engine.context_length());
            }
            Ok(Prompt::Tokens(tokens))
        }
        other => Ok(other),
    };
    prompts.into_iter().map(tokens).collect()
}

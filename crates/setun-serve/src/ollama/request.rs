//! Fields that requests for texts share.

use std::time::{Duration, Instant};

use serde_json::Value;
use setun::{GenerateOptions, GrammarSpec};

use super::{
    answer::{AnswerEncoder, Shape},
    keep_alive,
};
use crate::{
    app::App,
    compat,
    error::ApiError,
    excerpt::excerpt,
    fields::Fields,
    lifecycle::RequestGuard,
    openai::logprobs::MAX_TOP_LOGPROBS,
    registry::{KeepAlive, LATEST},
    sampling,
    served_model::ServedModel,
};

/// The field of the format.
pub(super) const FORMAT: &str = "format";

/// Target surprise of Mirostat where a request turns it on and names none, as Ollama has it.
const MIROSTAT_TAU: f64 = 5.0;

/// How a text is to be made and answered.
pub(super) struct TextRequest {
    pub(super) options: GenerateOptions,
    pub(super) format: Option<GrammarSpec>,
    pub(super) is_streamed: bool,
    /// How long the model stays from then on.
    pub(super) keep_alive: Option<KeepAlive>,
}

/// The model that a request names, or the only one.
pub(super) async fn model(app: &App, fields: &mut Fields) -> Result<ServedModel, ApiError> {
    resolve_name(fields)?;
    app.model(fields).await
}

/// Leaves the name of a model as `model`, of which `name` is an older name.
pub(super) fn resolve_name(fields: &mut Fields) -> Result<(), ApiError> {
    let older = fields.text("name")?;
    let name = fields.text("model")?.or(older).filter(|name| !name.is_empty());
    if let Some(name) = name {
        fields.set_default("model", name);
    }
    Ok(())
}

/// A model's name with its tag.
pub(super) fn tagged(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    if last.contains(':') { name.to_owned() } else { format!("{name}{LATEST}") }
}

/// The model of a request, and what writes its answer.
pub(super) async fn begin(
    app: &App,
    fields: &mut Fields,
    shape: Shape,
) -> Result<(ServedModel, AnswerEncoder), ApiError> {
    let begun = Instant::now();
    let model = model(app, fields).await?;
    let encoder = AnswerEncoder::new(model.name.clone(), shape, begun.elapsed());
    Ok((model, encoder))
}

impl TextRequest {
    /// Options are checked here, as a request without a prompt generates nothing and is refused for them all the same.
    pub(super) fn read(fields: &mut Fields, guard: &RequestGuard) -> Result<Self, ApiError> {
        compat::refuse(fields, "use format")?;
        let mut options = read_options(fields, guard)?;
        options.logprobs = fields.flag("logprobs")?;
        options.top_logprobs = fields.count("top_logprobs", 0, MAX_TOP_LOGPROBS)?;
        options = read_thinking(fields, options)?;
        let keep_alive = keep_alive::read(fields)?;
        let format = read_format(fields)?;
        let is_streamed = fields.flag("stream")?.unwrap_or(true);
        Ok(Self { options, format, is_streamed, keep_alive })
    }

    /// Whether a request without a prompt has its model unloaded.
    pub(super) fn is_unload(&self) -> bool {
        self.keep_alive == Some(KeepAlive::For(Duration::ZERO))
    }
}

fn read_options(fields: &mut Fields, guard: &RequestGuard) -> Result<GenerateOptions, ApiError> {
    let mut given = fields.object("options")?.unwrap_or_default();
    compat::refuse(&given, "use format")?;
    let version = given.count("mirostat", 0, 2)?;
    match version {
        Some(2) => given.set_default("mirostat_tau", MIROSTAT_TAU),
        Some(1) => {
            let name = given.name("mirostat");
            return Err(ApiError::unsupported(&name, "use version 2 of Mirostat"));
        }
        _ => {}
    }
    let mut options = sampling::read(&mut given, guard.limiter.most_tokens())?;
    if version != Some(2) {
        (options.mirostat_tau, options.mirostat_eta) = (None, None); // they say nothing then
    }
    given.finish_gently(&guard.warnings); // as Ollama has it
    Ok(options)
}

/// JSON, or a schema.
fn read_format(fields: &mut Fields) -> Result<Option<GrammarSpec>, ApiError> {
    match fields.take(FORMAT) {
        None => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text == "json" => Ok(Some(GrammarSpec::JsonObject)),
        Some(schema @ Value::Object(_)) => Ok(Some(GrammarSpec::JsonSchema(schema))),
        Some(other) => {
            let reason = format!("expected \"json\" or a JSON schema, found {}", excerpt(other));
            Err(ApiError::invalid(FORMAT, reason))
        }
    }
}

/// Whether the model thinks, or how much.
fn read_thinking(
    fields: &mut Fields,
    options: GenerateOptions,
) -> Result<GenerateOptions, ApiError> {
    match fields.take("think") {
        None => Ok(options),
        Some(Value::Bool(thinks)) => Ok(options.enable_thinking(thinks)),
        Some(Value::String(level)) => sampling::with_effort(options, "think", level),
        Some(other) => Err(ApiError::wrong_type("think", "true, false or a level", &other)),
    }
}

/// Refuses a field that would change the answer, unless it is empty.
pub(super) fn refuse(fields: &mut Fields, field: &str, reason: &str) -> Result<(), ApiError> {
    match fields.take(field) {
        None => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(Value::Array(list)) if list.is_empty() => Ok(()),
        Some(_) => Err(ApiError::unsupported(&fields.name(field), reason)),
    }
}

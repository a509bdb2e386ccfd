//! Requests of the Responses API.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use setun::{GenerateOptions, Prompt};

use super::input;
use crate::{
    compat::Compat, contents, error::ApiError, fields::Fields, generation::GenerationRequest,
    openai::logprobs::MAX_TOP_LOGPROBS, response_format, sampling, tool_choice,
};

/// What asks for log-probabilities in `include`.
const LOGPROBS: &str = "message.output_text.logprobs";

/// Fields of a server that keeps responses.
pub(super) const REFUSED: [(&str, &str); 4] = [
    ("previous_response_id", "the server keeps no responses: send the whole conversation as input"),
    ("conversation", "the server keeps no conversations: send the whole conversation as input"),
    ("prompt", "the server keeps no prompts: send instructions and input"),
    ("background", "the server keeps no responses"),
];

/// A request for a response.
pub(super) struct ResponseRequest {
    pub(super) generation: GenerationRequest,
    pub(super) settings: Settings,
    pub(super) is_streamed: bool,
}

/// Settings of a request, which its response repeats.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) instructions: Option<String>,
    pub(super) metadata: Map<String, Value>,
    /// As they were given, without those that are no functions.
    pub(super) tools: Vec<Value>,
    pub(super) tool_choice: Value,
    pub(super) format: Value,
    pub(super) options: GenerateOptions,
    pub(super) has_logprobs: bool,
}

impl ResponseRequest {
    pub(super) fn read(fields: &mut Fields, most_tokens: Option<usize>) -> Result<Self, ApiError> {
        refuse_state(fields)?;
        let mut compat = Compat::read(fields)?;
        let instructions = fields.text("instructions")?;
        let messages = input::read(fields, instructions.clone())?;
        let mut options = sampling::read(fields, most_tokens)?;
        if let Some(mut reasoning) = fields.object("reasoning")? {
            options = sampling::read_effort(&mut reasoning, options)?;
        }
        let has_logprobs = read_logprobs(fields, &mut options)?;
        let mut schema_fields = BTreeMap::new();
        let tools = read_tools(fields, &mut options, &mut schema_fields)?;
        let tool_choice = fields.take("tool_choice").unwrap_or_else(|| "auto".into());
        let choice = tool_choice::read(&tool_choice, &tool_choice::FLAT, &mut options.tools)?;
        options.tool_choice = Some(choice);
        let mut text = fields.object("text")?.unwrap_or_default();
        let format = text.get("format").cloned().unwrap_or_else(|| json!({"type": "text"}));
        let own = response_format::read_field(&mut text, "format", "schema")?;
        let grammar = compat.format("text.format", own)?;
        let metadata = fields.object("metadata")?.map(Fields::into_map).unwrap_or_default();
        let is_streamed = fields.flag("stream")?.unwrap_or_default();
        // The first events come while the prompt is computed, however long it is.
        options.prompt_progress = Some(is_streamed);
        let settings = Settings {
            instructions,
            metadata,
            tools,
            tool_choice,
            format,
            options: options.clone(),
            has_logprobs,
        };
        let generation = GenerationRequest {
            prompts: vec![Prompt::Chat(messages)],
            samples: 1,
            options,
            is_prompt_only: false,
            format: grammar,
            ignores_eos: compat.ignores_eos,
            prompt_field: input::INPUT,
            schema_fields,
        };
        Ok(Self { generation, settings, is_streamed })
    }
}

fn refuse_state(fields: &mut Fields) -> Result<(), ApiError> {
    for (field, reason) in REFUSED {
        let is_default = |value| field == "background" && value == Value::Bool(false);
        if fields.take(field).is_some_and(|value| !is_default(value)) {
            return Err(ApiError::unsupported(field, reason));
        }
    }
    Ok(())
}

/// Whether the response has log-probabilities.
fn read_logprobs(fields: &mut Fields, options: &mut GenerateOptions) -> Result<bool, ApiError> {
    let top_logprobs = fields.count("top_logprobs", 0, MAX_TOP_LOGPROBS)?;
    let include = fields.list("include")?.unwrap_or_default();
    let has_logprobs = top_logprobs > Some(0) || include.iter().any(|one| one == LOGPROBS);
    if has_logprobs {
        options.logprobs = Some(true);
        options.top_logprobs = top_logprobs;
    }
    Ok(has_logprobs)
}

/// Takes the functions among the tools. Servers run the others themselves; this one has none.
fn read_tools(
    fields: &mut Fields,
    options: &mut GenerateOptions,
    schema_fields: &mut BTreeMap<String, String>,
) -> Result<Vec<Value>, ApiError> {
    let mut given = vec![];
    for mut tool in fields.objects("tools")?.unwrap_or_default() {
        let kind = tool.required_text("type")?;
        if kind != "function" {
            contents::ignore_tool(fields, &tool, &kind);
            continue;
        }
        let mut shown = json!({"type": kind, "strict": null, "parameters": null});
        if let Value::Object(shown) = &mut shown {
            shown.extend(tool.map().clone());
        }
        given.push(shown);
        options.tools.push(contents::tool(&mut tool, "parameters", schema_fields)?);
    }
    Ok(given)
}

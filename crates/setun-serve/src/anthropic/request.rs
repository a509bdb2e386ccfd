//! Requests of the Messages API.

use std::collections::BTreeMap;

use setun::{GenerateOptions, Prompt, ToolChoice};

use super::blocks;
use crate::{
    compat::Compat, contents, error::ApiError, fields::Fields, generation::GenerationRequest,
    response_format, sampling,
};

/// The field of the conversation.
const MESSAGES: &str = "messages";

/// A request for a message.
pub(super) struct MessageRequest {
    pub(super) generation: GenerationRequest,
    pub(super) is_streamed: bool,
}

impl MessageRequest {
    pub(super) fn read(fields: &mut Fields, most_tokens: Option<usize>) -> Result<Self, ApiError> {
        let is_streamed = fields.flag("stream")?.unwrap_or_default();
        let mut generation = read_generation(fields, most_tokens)?;
        if generation.options.max_tokens.is_none() {
            return Err(ApiError::missing("max_tokens", "an integer of 1 or more"));
        }
        // The first event of a message has the number of the prompt's tokens.
        generation.options.prompt_progress = Some(is_streamed);
        Ok(Self { generation, is_streamed })
    }
}

/// Takes the conversation and what it is answered with.
pub(super) fn read_generation(
    fields: &mut Fields,
    most_tokens: Option<usize>,
) -> Result<GenerationRequest, ApiError> {
    let mut compat = Compat::read(fields)?;
    let conversation = blocks::read(fields, MESSAGES)?;
    let mut options = sampling::read(fields, most_tokens)?;
    let schema_fields = read_tools(fields, &mut options)?;
    if conversation.ends_in_answer() {
        options.continue_final_message = Some(true);
    }
    let own = match fields.object("output_config")? {
        Some(mut config) => response_format::read_field(&mut config, "format", "schema")?,
        None => None,
    };
    read_thinking(fields, &mut options)?;
    Ok(GenerationRequest {
        prompts: vec![Prompt::Chat(conversation.into_messages())],
        samples: 1,
        options,
        is_prompt_only: false,
        format: compat.format("output_config.format", own)?,
        ignores_eos: compat.ignores_eos,
        prompt_field: MESSAGES,
        schema_fields,
    })
}

/// Whether the model thinks, and how many tokens.
fn read_thinking(fields: &mut Fields, options: &mut GenerateOptions) -> Result<(), ApiError> {
    let Some(mut thinking) = fields.object("thinking")? else { return Ok(()) };
    let kind = thinking.required_text("type")?;
    options.enable_thinking = Some(match kind.as_str() {
        "enabled" | "adaptive" => true,
        "disabled" => false,
        other => {
            let reason = format!("expected enabled, adaptive or disabled, found {other:?}");
            return Err(ApiError::invalid(&thinking.name("type"), reason));
        }
    });
    if let Some(budget) = thinking.count("budget_tokens", 0, usize::MAX)? {
        options.max_thinking_tokens = Some(budget);
    }
    Ok(())
}

/// Takes the tools and their choice; the fields of the tools' schemas.
fn read_tools(
    fields: &mut Fields,
    options: &mut GenerateOptions,
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut schema_fields = BTreeMap::new();
    for mut tool in fields.objects("tools")?.unwrap_or_default() {
        match tool.text("type")?.as_deref() {
            None | Some("custom") => {
                options.tools.push(contents::tool(&mut tool, "input_schema", &mut schema_fields)?);
            }
            // Servers run the others themselves, or know their schemas; this one does neither.
            Some(kind) => contents::ignore_tool(fields, &tool, kind),
        }
    }
    let Some(mut choice) = fields.object("tool_choice")? else { return Ok(schema_fields) };
    let kind = choice.required_text("type")?;
    options.tool_choice = Some(match kind.as_str() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Function(choice.required_text("name")?),
        other => {
            let reason = format!("expected auto, any, tool or none, found {other:?}");
            return Err(ApiError::invalid(&choice.name("type"), reason));
        }
    });
    if let Some(is_single) = choice.flag("disable_parallel_tool_use")? {
        options.parallel_tool_calls = Some(!is_single);
    }
    Ok(schema_fields)
}

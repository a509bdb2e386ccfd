//! Schemas and routes of the Messages API.

use serde_json::{Value, json};

use crate::{
    compat,
    description::{
        components::{OPEN_OBJECTS, STRICT, TOOL_NAME, formats, json_schema},
        operation::{Api, RouteShape},
        options::options,
        schema::{
            AnySchema, ObjectShape, any_of, count, flag, list, list_within, named, nullable,
            object, of_form, one_of, size, text, with_example,
        },
    },
    limits::Limits,
    openai::description::MODEL,
    sampling::MAX_TOKENS,
    sse,
};

/// Schemas of messages, blocks and errors.
pub(crate) fn schemas() -> Vec<(&'static str, AnySchema)> {
    vec![
        ("AnthropicError", error()),
        ("AnthropicMessage", message()),
        ("TextBlock", kind("text").required("text", text(), "").into()),
        ("ContentBlock", block()),
        ("AnthropicTool", tool()),
        ("Message", answer()),
        ("AnswerBlock", answer_block()),
    ]
}

/// `POST /v1/messages`.
pub(crate) fn messages(limits: &Limits) -> RouteShape {
    let most = limits.output_tokens.unwrap_or(usize::MAX);
    let body = body(limits)
        .required(MAX_TOKENS, count(1, most), "Most tokens to generate.")
        .optional("stream", flag(), "Whether the answer comes in events. Default: false.");
    route("messages", "Generates the next message of a conversation", body).streams(
        "The answer. A stream has the events of the API, from `message_start` to `message_stop`.",
        named("Message"),
        sse::CONTENT_TYPE,
    )
}

/// `POST /v1/messages/count_tokens`. Nothing is generated that would have a limit.
pub(crate) fn count_tokens() -> RouteShape {
    let count = ObjectShape::new().with([("input_tokens", size())]);
    route("count_tokens", "Counts the tokens of a conversation", body(&Limits::default()))
        .answers("The tokens.", count)
}

fn route(id: &str, summary: &str, body: ObjectShape) -> RouteShape {
    let example = json!({
        "max_tokens": 2, "messages": [{"role": "user", "content": "Why is the sky blue?"}],
    });
    RouteShape::with_body(Api::Anthropic, id, summary, body, example)
}

fn body(limits: &Limits) -> ObjectShape {
    let schema = kind("json_schema").required("schema", json_schema(), "").optional(
        "open_objects",
        flag(),
        OPEN_OBJECTS,
    );
    let config = ObjectShape::new().optional("format", formats(schema), "The format of the text.");
    let message = list_within(named("AnthropicMessage"), 1, usize::MAX);
    let message = with_example(message, history());
    ObjectShape::new()
        .optionals(options(limits))
        .optionals(compat::described())
        .required("messages", message, "The conversation.")
        .optional("model", text(), MODEL)
        .optional("system", texts(), "The system message.")
        .optional("tools", tools(), "Functions; tools that servers run are ignored.")
        .optional("tool_choice", tool_choice(), "Whether the model calls them.")
        .optional("output_config", config.into(), "")
        .optional("thinking", thinking(), "Whether the model thinks, and at most how long.")
}

fn thinking() -> AnySchema {
    ObjectShape::new()
        .required("type", one_of(&["enabled", "adaptive", "disabled"]), "")
        .optional("budget_tokens", count(0, usize::MAX), "As `max_thinking_tokens`.")
        .into()
}

/// A conversation with a call.
fn history() -> Value {
    let call = json!({"type": "tool_use", "id": "1", "name": "weather", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "1", "content": "sunny"});
    json!([
        {"role": "system", "content": "You are a cat."},
        {"role": "user", "content": [{"type": "text", "text": "How is the weather?"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Ask."}, call]},
        {"role": "user", "content": [result]},
    ])
}

fn kind(kind: &str) -> ObjectShape {
    ObjectShape::new().required("type", one_of(&[kind]), "")
}

/// A text, or parts that each begin a line.
fn texts() -> AnySchema {
    any_of([text(), list(named("TextBlock"))])
}

fn message() -> AnySchema {
    let system = ObjectShape::new().required("role", one_of(&["system"]), "").optional(
        "content",
        texts(),
        "",
    );
    let other = ObjectShape::new().required("role", one_of(&["user", "assistant"]), "").required(
        "content",
        any_of([text(), list(named("ContentBlock"))]),
        "",
    );
    any_of([system, other].map(Into::into))
}

fn block() -> AnySchema {
    let call = kind("tool_use").with([("id", text()), ("name", text())]).optional(
        "input",
        object(),
        "Its arguments.",
    );
    let call: AnySchema = call.into();
    let result = kind("tool_result")
        .required("tool_use_id", text(), "")
        .optional("content", texts(), "")
        .optional("is_error", flag(), "");
    let thinking = kind("thinking").optional("thinking", text(), "What the model thought.");
    let redacted = kind("redacted_thinking").into();
    any_of([named("TextBlock"), call, result.into(), thinking.into(), redacted])
}

fn tools() -> AnySchema {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let example = json!([{"name": "weather", "input_schema": city}]);
    let other = ObjectShape::new().required("type", of_form("^(?!custom$)"), "Ignored.");
    with_example(list(any_of([named("AnthropicTool"), other.into()])), example)
}

fn tool() -> AnySchema {
    ObjectShape::new()
        .optional("type", one_of(&["custom"]), "")
        .required("name", of_form(TOOL_NAME), "")
        .optional("description", text(), "What it does.")
        .optional("input_schema", object(), "The JSON schema of its arguments.")
        .optional("strict", flag(), STRICT)
        .into()
}

fn tool_choice() -> AnySchema {
    let single = |shape: ObjectShape| {
        shape.optional("disable_parallel_tool_use", flag(), "At most one call.").into()
    };
    let plain = single(ObjectShape::new().required("type", one_of(&["auto", "any", "none"]), ""));
    let tool = single(kind("tool").required("name", text(), ""));
    any_of([plain, with_example(tool, json!({"type": "tool", "name": "weather"}))])
}

fn answer() -> AnySchema {
    let reasons = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"];
    let usage = ObjectShape::new().with([
        ("input_tokens", size()),
        ("cache_creation_input_tokens", size()),
        ("cache_read_input_tokens", size()),
        ("output_tokens", size()),
    ]);
    ObjectShape::new()
        .with([
            ("id", text()),
            ("type", one_of(&["message"])),
            ("role", one_of(&["assistant"])),
            ("model", text()),
            ("content", list(named("AnswerBlock"))),
            ("stop_reason", nullable(one_of(&reasons))),
            ("stop_sequence", nullable(text())),
            ("usage", usage.into()),
        ])
        .sometimes("unfinished", flag(), "True where a call, or the text of a format, was cut off.")
        .into()
}

fn answer_block() -> AnySchema {
    let words = kind("text").required("text", text(), "");
    let call = kind("tool_use").with([("id", text()), ("name", text()), ("input", object())]);
    let call =
        call.sometimes("unfinished", flag(), "True where the input was cut off, and is empty.");
    let thinking = kind("thinking").with([("thinking", text()), ("signature", text())]);
    any_of([thinking, words, call].map(Into::into))
}

fn error() -> AnySchema {
    let kinds = [
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
        "rate_limit_error",
        "overloaded_error",
        "api_error",
    ];
    let error = ObjectShape::new().required("type", one_of(&kinds), "").required(
        "message",
        text(),
        "What is wrong, with the field at fault.",
    );
    ObjectShape::new()
        .with([
            ("type", one_of(&["error"])),
            ("error", error.into()),
            ("request_id", nullable(text())),
        ])
        .into()
}

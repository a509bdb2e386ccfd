//! Schemas and routes of the Responses API.

use serde_json::{Value, json};
use setun::ReasoningEffort;

use super::request::REFUSED;
use crate::{
    compat,
    description::{
        components::{OPEN_OBJECTS, STRICT, TOOL_NAME, formats, json_schema},
        operation::{Api, RouteShape},
        options::options,
        schema::{
            AnySchema, ObjectShape, any_of, anything, count, flag, list, list_within, named, null,
            nullable, number, object, of_form, one_of, size, text, values, with_example,
        },
    },
    limits::Limits,
    openai::{description::MODEL, logprobs::MAX_TOP_LOGPROBS},
    sse,
};

/// Schemas of items and answers.
pub(crate) fn schemas() -> Vec<(&'static str, AnySchema)> {
    vec![
        ("InputItem", input_item()),
        ("InputPart", input_part()),
        ("ResponseTool", tool()),
        ("Response", response()),
        ("OutputItem", output_item()),
    ]
}

/// `POST /v1/responses`.
pub(crate) fn create(limits: &Limits) -> RouteShape {
    route("responses", "Generates the next items of a conversation", limits).streams(
        "The response. A stream has the events of the API, such as \
             `response.output_text.delta`, and ends with `response.completed`, \
             `response.incomplete` or `response.failed`.",
        named("Response"),
        sse::CONTENT_TYPE,
    )
}

/// `POST /v1/responses/input_tokens`. Nothing is generated that would have a limit.
pub(crate) fn input_tokens() -> RouteShape {
    let limits = Limits::default();
    let count = ObjectShape::new()
        .with([("object", one_of(&["response.input_tokens"])), ("input_tokens", size())]);
    route("response_input_tokens", "Counts the tokens of a conversation", &limits)
        .answers("The tokens.", count)
}

fn route(id: &str, summary: &str, limits: &Limits) -> RouteShape {
    let items = list_within(named("InputItem"), 1, usize::MAX);
    let input = with_example(any_of([text(), items]), history());
    let format = ObjectShape::new().optional("format", format(), "The format of the text.");
    let include = list(anything());
    let effort = one_of(ReasoningEffort::NAMES);
    let reasoning = ObjectShape::new().optional("effort", effort, "As `reasoning_effort`.");
    let body = ObjectShape::new()
        .required("input", input, "A text of the user, or items.")
        .optionals(options(limits))
        .optionals(compat::described())
        .optional("model", text(), MODEL)
        .optional("instructions", text(), "The beginning of the system message.")
        .optional("tools", tools(), "Functions; tools of other types are ignored.")
        .optional("tool_choice", tool_choice(), "Whether the model calls them. Default: `auto`.")
        .optional("text", format.into(), "")
        .optional("reasoning", reasoning.into(), "")
        .optional("top_logprobs", count(0, MAX_TOP_LOGPROBS), "Likeliest tokens for each place.")
        .optional("include", include, "`message.output_text.logprobs` is known.")
        .optional("metadata", object(), "Comes back in the response.")
        .optional("stream", flag(), "Whether the answer comes in events. Default: false.");
    let refused = |body: ObjectShape, (field, reason): &(&'static str, &'static str)| match *field {
        "background" => {
            let only = values([json!(false)]);
            body.optional(field, only, &format!("Must be false: {reason}."))
        }
        _ => body.refused(field, reason),
    };
    let body = REFUSED.iter().fold(body, refused);
    let example = json!({
        "input": "Why is the sky blue?",
        "max_output_tokens": 2,
        "text": {"format": {"type": "text"}},
    });
    RouteShape::with_body(Api::OpenAi, id, summary, body, example)
}

/// A conversation with a call.
fn history() -> Value {
    let part = json!({"type": "input_text", "text": "How is the weather?"});
    json!([
        {"role": "developer", "content": "You are a cat."},
        {"type": "message", "role": "user", "content": [part]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Ask."}]},
        {"type": "function_call", "call_id": "1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "sunny"},
    ])
}

fn input_item() -> AnySchema {
    let content = any_of([text(), list(named("InputPart"))]);
    let kind = |kind| ObjectShape::new().required("type", one_of(&[kind]), "");
    let message = ObjectShape::new()
        .optional("type", one_of(&["message"]), "")
        .required("role", one_of(&["user", "assistant", "system", "developer"]), "")
        .required("content", content.clone(), "");
    let call = kind("function_call").with([("call_id", text()), ("name", text())]).optional(
        "arguments",
        any_of([text(), object(), null()]),
        "An object, or its JSON.",
    );
    let output = kind("function_call_output").with([("call_id", text()), ("output", content)]);
    // Such as `web_search_call`. An `item_reference` is refused.
    let known = "^(?!(message|reasoning|function_call|function_call_output|item_reference)$)";
    let thought = list(ObjectShape::new().optional("text", text(), "").into());
    let reasoning = kind("reasoning")
        .optional("content", thought.clone(), "What the model thought.")
        .optional("summary", thought, "The same in short.");
    let other = ObjectShape::new().required("type", of_form(known), "Ignored.");
    any_of([message, reasoning, call, output, other].map(Into::into))
}

fn input_part() -> AnySchema {
    let texts = one_of(&["input_text", "output_text", "text"]);
    let part = ObjectShape::new().with([("type", texts), ("text", text())]);
    let refusal = ObjectShape::new().with([("type", one_of(&["refusal"])), ("refusal", text())]);
    any_of([part, refusal].map(Into::into))
}

fn tools() -> AnySchema {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let example = json!([{"type": "function", "name": "weather", "parameters": city}]);
    let other = ObjectShape::new().required("type", of_form("^(?!function$)"), "Ignored.");
    with_example(list(any_of([named("ResponseTool"), other.into()])), example)
}

fn tool() -> AnySchema {
    ObjectShape::new()
        .required("type", one_of(&["function"]), "")
        .required("name", of_form(TOOL_NAME), "")
        .optional("description", text(), "What it does.")
        .optional("parameters", object(), "The JSON schema of its arguments.")
        .optional("strict", flag(), STRICT)
        .into()
}

fn tool_choice() -> AnySchema {
    let kind = |kind| ObjectShape::new().required("type", one_of(&[kind]), "");
    let function = kind("function").required("name", text(), "");
    let function = with_example(function.into(), json!({"type": "function", "name": "weather"}));
    let modes = || one_of(&["none", "auto", "required"]);
    let name = ObjectShape::new().required("name", text(), "");
    let allowed = kind("allowed_tools").required("mode", modes(), "").required(
        "tools",
        list(name.into()),
        "Those that are offered.",
    );
    let weather = json!([{"type": "function", "name": "weather"}]);
    let example = json!({"type": "allowed_tools", "mode": "auto", "tools": weather});
    any_of([modes(), function, with_example(allowed.into(), example)])
}

fn format() -> AnySchema {
    let schema = ObjectShape::new()
        .required("type", one_of(&["json_schema"]), "")
        .optional("name", text(), "")
        .required("schema", json_schema(), "")
        .optional("open_objects", flag(), OPEN_OBJECTS);
    formats(schema)
}

fn response() -> AnySchema {
    let error = ObjectShape::new().with([("code", text()), ("message", text())]);
    let reason = one_of(&["max_output_tokens", "content_filter"]);
    let details = ObjectShape::new().required("reason", reason, "");
    let effort = nullable(one_of(ReasoningEffort::NAMES));
    let reasoning = ObjectShape::new().with([("effort", effort), ("summary", null())]);
    let settings = ObjectShape::new().required("format", object(), "");
    ObjectShape::new()
        .with([
            ("id", text()),
            ("object", one_of(&["response"])),
            ("created_at", size()),
            ("status", status()),
            ("background", flag()),
            ("error", nullable(error.into())),
            ("incomplete_details", nullable(details.into())),
            ("instructions", nullable(text())),
            ("max_output_tokens", nullable(size())),
            ("metadata", object()),
            ("model", text()),
        ])
        .with([
            ("output", list(named("OutputItem"))),
            ("parallel_tool_calls", flag()),
            ("previous_response_id", null()),
            ("reasoning", reasoning.into()),
            ("store", flag()),
            ("temperature", nullable(number())),
            ("text", settings.into()),
            ("tool_choice", any_of([text(), object()])),
            ("tools", list(object())),
            ("top_logprobs", size()),
            ("top_p", nullable(number())),
            ("truncation", one_of(&["disabled"])),
            ("usage", nullable(usage())),
        ])
        .into()
}

fn status() -> AnySchema {
    one_of(&["in_progress", "completed", "incomplete", "failed"])
}

fn usage() -> AnySchema {
    let input =
        ObjectShape::new().with([("cached_tokens", size()), ("cache_write_tokens", size())]);
    let output = ObjectShape::new().with([("reasoning_tokens", size())]);
    ObjectShape::new()
        .with([
            ("input_tokens", size()),
            ("input_tokens_details", input.into()),
            ("output_tokens", size()),
            ("output_tokens_details", output.into()),
            ("total_tokens", size()),
        ])
        .into()
}

fn output_item() -> AnySchema {
    let head = |kind| {
        ObjectShape::new().with([("type", one_of(&[kind])), ("id", text()), ("status", status())])
    };
    let part = ObjectShape::new().with([
        ("type", one_of(&["output_text"])),
        ("text", text()),
        ("annotations", list(anything())),
        ("logprobs", list(named("TokenLogprob"))),
    ]);
    let message =
        head("message").with([("role", one_of(&["assistant"])), ("content", list(part.into()))]);
    let call =
        head("function_call").with([("call_id", text()), ("name", text()), ("arguments", text())]);
    let thought =
        ObjectShape::new().with([("type", one_of(&["reasoning_text"])), ("text", text())]);
    let reasoning =
        head("reasoning").with([("summary", list(anything())), ("content", list(thought.into()))]);
    any_of([reasoning, message, call].map(Into::into))
}

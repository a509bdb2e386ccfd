//! Schemas and routes of Ollama's API.

use serde_json::json;
use setun::ReasoningEffort;

use super::keep_alive::{DURATION, MAX_SECONDS};
use crate::{
    description::{
        operation::{Api, RouteShape},
        options::options,
        schema::{
            AnySchema, ObjectShape, any_of, anything, count, flag, integer, list, list_within,
            named, number, number_to, object, of_form, one_of, size, text, text_from, values,
            with_example,
        },
    },
    limits::Limits,
    openai::{
        description::{CACHE_SALT, pooled, tools},
        logprobs::MAX_TOP_LOGPROBS,
    },
};

/// The type of an answer in lines.
pub(super) const LINES: &str = "application/x-ndjson";

/// Schemas of messages, answers and errors.
pub(crate) fn schemas() -> Vec<(&'static str, AnySchema)> {
    let error = ObjectShape::new().required("error", text(), "What is wrong, with the field.");
    vec![
        ("OllamaError", error.into()),
        ("OllamaMessage", message()),
        ("OllamaToolCall", tool_call()),
        ("OllamaAnswerCall", answer_call()),
        ("OllamaGenerated", line(generated())),
        ("OllamaChat", line(ObjectShape::new().required("message", answer_message(), ""))),
        ("OllamaDetails", details()),
        ("OllamaModel", listed(ObjectShape::new().required("modified_at", text(), ""))),
        ("OllamaLoadedModel", listed(loaded())),
    ]
}

/// `POST /api/generate`.
pub(crate) fn generate(limits: &Limits) -> RouteShape {
    let body = text_request(limits)
        .optional("prompt", text(), "Sent through the chat template, if the model has one.")
        .optional("system", text(), "The system message.")
        .optional("raw", flag(), "The prompt is continued as it is.")
        .optional("suffix", nothing(), "Must be empty: texts are continued only.")
        .optional("images", nothing(), "Must be empty: prompts are text.")
        .optional("template", nothing(), "Must be empty: the model has its own.")
        .optional("context", nothing(), "Must be empty: send the conversation to /api/chat.");
    let example = json!({"prompt": "Once upon a time", "options": {"num_predict": 2}});
    RouteShape::with_body(
        Api::Ollama,
        "ollama_generate",
        "Generates the answer to a prompt",
        body,
        example,
    )
    .streams(ANSWER, named("OllamaGenerated"), LINES)
}

/// What answers are.
const ANSWER: &str = "The answer. A stream, which is the default, has such an object in each line.";

/// `POST /api/chat`.
pub(crate) fn chat(limits: &Limits) -> RouteShape {
    let body = text_request(limits)
        .optional("messages", messages(), "The conversation.")
        .optional("tools", tools(), "Functions that the model may call.")
        .optional("tool_choice", named("ToolChoice"), "Whether it calls them. Default: `auto`.")
        .optional("parallel_tool_calls", flag(), "Whether an answer may have several calls.")
        .refused("functions", "use tools")
        .refused("function_call", "use tool_choice");
    let message = json!({"role": "user", "content": "Why is the sky blue?"});
    let example = json!({"messages": [message], "options": {"num_predict": 2}});
    RouteShape::with_body(
        Api::Ollama,
        "ollama_chat",
        "Generates the next message of a conversation",
        body,
        example,
    )
    .streams(ANSWER, named("OllamaChat"), LINES)
}

/// `POST /api/embed`.
pub(crate) fn embed() -> RouteShape {
    let body = vector_request()
        .required("input", named("Prompts"), "A text or several.")
        .optional("truncate", flag(), "A text beyond the context is cut. Default: true.")
        .refused("dimensions", "embeddings have the size of the model");
    let answer = ObjectShape::new().with([
        ("model", text()),
        ("embeddings", list(list(number()))),
        ("total_duration", size()),
        ("load_duration", size()),
        ("prompt_eval_count", size()),
    ]);
    let example = json!({"input": "A cat"});
    RouteShape::with_body(Api::Ollama, "ollama_embed", "Embeds texts", body, example)
        .answers("The vectors in the order of the texts.", answer)
}

/// `POST /api/embeddings`.
pub(crate) fn embed_one() -> RouteShape {
    let body = vector_request().optional("prompt", text(), "The text.");
    let answer = ObjectShape::new().required("embedding", list(number()), "");
    let example = json!({"prompt": "A cat"});
    RouteShape::with_body(Api::Ollama, "ollama_embeddings", "Embeds a text", body, example)
        .answers("The vector as the model makes it.", answer)
}

/// `GET /api/tags`.
pub(crate) fn tags() -> RouteShape {
    let models = ObjectShape::new().with([("models", list(named("OllamaModel")))]);
    RouteShape::without_body(Api::Ollama, "ollama_tags", "Lists the models")
        .answers("The models by each of their names.", models)
}

/// `GET /api/ps`.
pub(crate) fn running() -> RouteShape {
    let models = ObjectShape::new().with([("models", list(named("OllamaLoadedModel")))]);
    RouteShape::without_body(Api::Ollama, "ollama_ps", "Lists the loaded models")
        .answers("The models.", models)
}

/// `POST /api/show`.
pub(crate) fn show() -> RouteShape {
    let body = model_request().optional("verbose", anything(), "Ignored.");
    let answer = ObjectShape::new().with([
        ("modelfile", text()),
        ("parameters", text()),
        ("template", text()),
        ("details", named("OllamaDetails")),
        ("model_info", object()),
        ("capabilities", list(text())),
        ("modified_at", text()),
    ]);
    RouteShape::with_body(Api::Ollama, "ollama_show", "Describes a model", body, json!({}))
        .answers("Sizes, chat template, capabilities and sampling defaults.", answer)
}

/// `GET /api/version`.
pub(crate) fn version() -> RouteShape {
    let version = ObjectShape::new().with([("version", text())]);
    RouteShape::without_body(Api::Ollama, "ollama_version", "Version of the server")
        .answers("The version.", version)
}

/// `GET /`.
pub(crate) fn root() -> RouteShape {
    RouteShape::without_body(Api::Ollama, "root", "Says that the server runs").open().answers_with(
        "200",
        "It runs.",
        &[("text/plain; charset=utf-8", Some(text()))],
    )
}

/// A route that would change models.
pub(crate) fn refusal(id: &str) -> RouteShape {
    RouteShape::without_body(Api::Ollama, id, "Not supported")
        .refuses("403", "Models are managed where the server runs.")
        .refuses("429", "A limit is full.")
}

/// A route that would take a part of a model.
pub(crate) fn blob_refusal(id: &str) -> RouteShape {
    refusal(id).path_parameter("digest", "Its SHA-256.")
}

fn model_request() -> ObjectShape {
    ObjectShape::new()
        .optional("model", text(), "With or without the tag `latest`. Default: the first model.")
        .optional("name", text(), "Another name of `model`.")
}

fn vector_request() -> ObjectShape {
    let salted = ObjectShape::new().optional("cache_salt", text_from(1), CACHE_SALT);
    pooled(model_request())
        .optional("keep_alive", keep_alive(), "How long the model stays loaded; 0 unloads it.")
        .optional("images", nothing(), "Must be empty: inputs are text.")
        .optional("options", salted.into(), "The others are ignored.")
}

fn text_request(limits: &Limits) -> ObjectShape {
    let mirostat = "0 or 2; version 1 is not supported.";
    let given = ObjectShape::new().optionals(options(limits)).optional(
        "mirostat",
        values([json!(0), json!(2)]),
        mirostat,
    );
    let format = any_of([one_of(&["", "json"]), object()]);
    let think = any_of([flag(), one_of(ReasoningEffort::NAMES)]);
    model_request()
        .optional("options", given.into(), "Defaults are the model's.")
        .optional("format", format, "`json`, or a JSON schema.")
        .optional("stream", flag(), "Whether the answer comes in lines. Default: true.")
        .optional("logprobs", flag(), "Whether the answer has log-probabilities.")
        .optional("top_logprobs", count(0, MAX_TOP_LOGPROBS), "Likeliest tokens for each place.")
        .optional("think", think, "Whether the model thinks, or how much.")
        .optional("keep_alive", keep_alive(), "How long the model stays loaded; 0 unloads it.")
}

fn keep_alive() -> AnySchema {
    any_of([number_to(MAX_SECONDS), with_example(of_form(DURATION), json!("1m30s"))])
}

/// What a field may have that would change the answer.
fn nothing() -> AnySchema {
    any_of([one_of(&[""]), list_within(anything(), 0, 0)])
}

/// A conversation with a call.
fn messages() -> AnySchema {
    let call = json!({"function": {"name": "weather", "arguments": {}}});
    let history = json!([
        {"role": "system", "content": "You are a cat."},
        {"role": "user", "content": "How is the weather?", "images": []},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_name": "weather", "content": "sunny"},
    ]);
    with_example(list(named("OllamaMessage")), history)
}

fn message() -> AnySchema {
    ObjectShape::new()
        .required("role", text(), "`system`, `user`, `assistant`, `tool`, …")
        .optional("content", any_of([text(), list(named("TextPart"))]), "")
        .optional("thinking", text(), "What the assistant thought.")
        .optional("tool_calls", list(named("OllamaToolCall")), "Calls of the assistant.")
        .optional("tool_name", text(), "Whose result a message of the role `tool` is.")
        .optional("images", list_within(anything(), 0, 0), "Must be empty: messages are text.")
        .into()
}

fn tool_call() -> AnySchema {
    let function = ObjectShape::new().required("name", text(), "").required(
        "arguments",
        any_of([object(), text()]),
        "An object, or its JSON.",
    );
    ObjectShape::new().required("function", function.into(), "").into()
}

fn answer_call() -> AnySchema {
    let function =
        ObjectShape::new().with([("index", size()), ("name", text()), ("arguments", object())]);
    ObjectShape::new().with([("id", text()), ("function", function.into())]).into()
}

fn answer_message() -> AnySchema {
    ObjectShape::new()
        .with([("role", one_of(&["assistant"])), ("content", text())])
        .sometimes("thinking", text(), "What the model thought.")
        .sometimes("tool_calls", list(named("OllamaAnswerCall")), "")
        .into()
}

/// A line of an answer, with its text.
fn line(shape: ObjectShape) -> AnySchema {
    let reasons = one_of(&["stop", "length", "load", "unload", "content_filter"]);
    let costs = [
        "total_duration",
        "load_duration",
        "prompt_eval_count",
        "prompt_eval_duration",
        "eval_count",
        "eval_duration",
    ];
    let shape = shape
        .with([("model", text()), ("created_at", text()), ("done", flag())])
        .sometimes("done_reason", reasons, "In the last line.")
        .sometimes(
            "unfinished",
            flag(),
            "True in the last line where a call, or the text of a format, was cut off.",
        )
        .sometimes("logprobs", list(named("TokenLogprob")), "");
    let last = "In the last line; durations are in nanoseconds.";
    costs.into_iter().fold(shape, |shape, name| shape.sometimes(name, size(), last)).into()
}

fn generated() -> ObjectShape {
    ObjectShape::new().required("response", text(), "").sometimes(
        "thinking",
        text(),
        "What the model thought.",
    )
}

fn details() -> AnySchema {
    ObjectShape::new()
        .with([
            ("parent_model", text()),
            ("format", text()),
            ("family", text()),
            ("families", list(text())),
            ("parameter_size", text()),
            ("quantization_level", text()),
        ])
        .into()
}

fn loaded() -> ObjectShape {
    ObjectShape::new().with([
        ("expires_at", text()),
        ("size_vram", size()),
        ("context_length", integer(1, None)),
    ])
}

/// A model, with what one of the lists has alone.
fn listed(more: ObjectShape) -> AnySchema {
    more.with([
        ("name", text()),
        ("model", text()),
        ("size", size()),
        ("digest", text()),
        ("details", named("OllamaDetails")),
    ])
    .into()
}

//! Schemas of requests to the API, and descriptions of its routes.

use serde_json::json;

use super::logprobs::MAX_TOP_LOGPROBS;
use crate::{
    compat,
    description::{
        components::{OPEN_OBJECTS, formats, json_schema},
        operation::{Api, RouteShape},
        options::{max_tokens, options},
        schema::{
            AnySchema, ObjectShape, any_of, count, flag, list, list_within, named, object, one_of,
            text, text_from, tokens, values, with_example,
        },
    },
    embedding::MAX_INPUTS,
    generation::MAX_CHOICES,
    limits::Limits,
    sampling::MAX_TOKENS,
    sse,
};

/// What the field of the model says.
pub(crate) const MODEL: &str = "The name of a model or an alias. Default: the first model.";

/// What the field of a salt says.
pub(crate) const CACHE_SALT: &str = "Requests share prefixes with those of the same salt alone.";

/// Schemas of what is sent.
pub(crate) fn schemas() -> Vec<(&'static str, AnySchema)> {
    let call = ObjectShape::new()
        .optional("id", text(), "")
        .optional("type", one_of(&["function"]), "")
        .required("function", called(), "");
    let part = ObjectShape::new().required("type", one_of(&["text"]), "");
    let part = part.required("text", text(), "");
    vec![
        ("ChatMessage", message()),
        ("TextPart", part.into()),
        ("MessageToolCall", call.into()),
        ("ToolChoice", tool_choice()),
        ("ResponseFormat", response_format()),
        ("Prompts", prompts()),
    ]
}

/// `POST /v1/chat/completions`.
pub(crate) fn chat(limits: &Limits) -> RouteShape {
    let body = ObjectShape::new()
        .required("messages", messages(), "The conversation.")
        .optionals(options(limits))
        .optional("logprobs", flag(), "Whether the answer has log-probabilities.")
        .optional("top_logprobs", count(0, MAX_TOP_LOGPROBS), "Likeliest tokens for each place.")
        .optional("tools", tools(), "Functions that the model may call.")
        .optional("tool_choice", named("ToolChoice"), "Whether it calls them. Default: `auto`.")
        .optional("modalities", list(one_of(&["text"])), "Answers are text.")
        .refused("audio", "answers are text")
        .refused("functions", "use tools")
        .refused("function_call", "use tool_choice");
    let example = json!({
        "messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_tokens": 2,
    });
    RouteShape::with_body(
        Api::OpenAi,
        "chat_completions",
        "Generates the next message of a conversation",
        with_shared(body),
        example,
    )
    .streams(
        "The answer. A stream's events have each a `ChatCompletionChunk` as data; the last one \
             is `[DONE]`.",
        named("ChatCompletion"),
        sse::CONTENT_TYPE,
    )
}

/// `POST /v1/completions`.
pub(crate) fn completions(limits: &Limits) -> RouteShape {
    let none = "Most tokens to generate; 0 gives the prompt alone, for its log-probabilities.";
    let body = ObjectShape::new()
        .required("prompt", named("Prompts"), "What is continued.")
        .optionals(options(limits))
        .optional(MAX_TOKENS, any_of([values([json!(0)]), max_tokens(limits)]), none)
        .optional("echo", flag(), "Whether the prompt is part of the text.")
        .optional("logprobs", count(0, MAX_TOP_LOGPROBS), "Likeliest tokens for each place.")
        .optional("best_of", count(1, MAX_CHOICES), "As many as `n`.")
        .optional("suffix", values([json!("")]), "Must be empty: texts are continued only.")
        .optional(
            "add_special_tokens",
            flag(),
            "Whether a text begins with what the tokenizer puts before it. Default: true.",
        );
    let example = json!({"prompt": "Once upon a time", "max_tokens": 2});
    RouteShape::with_body(
        Api::OpenAi,
        "completions",
        "Continues prompts",
        with_shared(body),
        example,
    )
    .streams(
        "The texts. A stream's events have each a `TextCompletion` as data; the last one is \
             `[DONE]`.",
        named("TextCompletion"),
        sse::CONTENT_TYPE,
    )
}

/// `POST /v1/embeddings`.
pub(crate) fn embeddings() -> RouteShape {
    let format = one_of(&["float", "base64"]);
    let body = pooled(ObjectShape::new())
        .required("input", named("Prompts"), &format!("At most {MAX_INPUTS} texts."))
        .optional("model", text(), MODEL)
        .optional("encoding_format", format, "Numbers, or their bytes. Default: `float`.")
        .optional("cache_salt", text_from(1), CACHE_SALT)
        .refused("dimensions", "embeddings have the size of the model");
    let example = json!({"input": "A cat"});
    RouteShape::with_body(Api::OpenAi, "embeddings", "Embeds texts", body, example)
        .answers("The vectors in the order of the texts.", named("EmbeddingList"))
}

/// `GET /v1/models`.
pub(crate) fn model_list() -> RouteShape {
    RouteShape::without_body(Api::OpenAi, "models", "Lists the models, loaded or not")
        .answers("The models by each of their names.", named("ModelList"))
}

/// `GET /v1/models/{id}`.
pub(crate) fn model() -> RouteShape {
    RouteShape::without_body(Api::OpenAi, "model", "Describes a model")
        .path_parameter("id", "The name of a model or an alias.")
        .refuses("404", "There is no such model.")
        .answers("The model.", named("Model"))
}

/// With the fields of setun's own that requests for vectors have.
pub(crate) fn pooled(body: ObjectShape) -> ObjectShape {
    let pooling = one_of(&["last", "mean"]);
    body.optional("pooling", pooling, "Which hidden state is the vector. Default: `last`.")
        .optional("normalize", flag(), "Whether vectors have the length 1.")
}

/// A conversation in the shape of the API.
pub(crate) fn messages() -> AnySchema {
    let call = json!({"name": "weather", "arguments": "{}"});
    let call = json!({"id": "1", "type": "function", "function": call});
    let history = json!([
        {"role": "developer", "content": "You are a cat."},
        {"role": "user", "content": [{"type": "text", "text": "How is the weather?"}]},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "sunny"},
    ]);
    with_example(list_within(named("ChatMessage"), 1, usize::MAX), history)
}

/// Tools as the APIs of `OpenAI` and Ollama have them.
pub(crate) fn tools() -> AnySchema {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let function = json!({"name": "weather", "parameters": city});
    with_example(list(named("Tool")), json!([{"type": "function", "function": function}]))
}

/// With what chats and completions share.
fn with_shared(body: ObjectShape) -> ObjectShape {
    let usage = ObjectShape::new().optional(
        "include_usage",
        flag(),
        "Whether the last event has the usage.",
    );
    body.optionals(compat::described())
        .optional("model", text(), MODEL)
        .optional("n", count(1, MAX_CHOICES), "Texts of a prompt, in one batch. Default: 1.")
        .optional("response_format", named("ResponseFormat"), "The format of the text.")
        .optional("stream", flag(), "Whether the answer comes in events. Default: false.")
        .optional("stream_options", usage.into(), "")
}

fn message() -> AnySchema {
    let parts = list(named("TextPart"));
    ObjectShape::new()
        .required("role", text(), "`system`, `developer`, `user`, `assistant`, `tool`, …")
        .optional("content", any_of([text(), parts]), "A text, or parts that each begin a line.")
        .optional("name", text(), "")
        .optional("refusal", text(), "An answer that has no content.")
        .optional("reasoning_content", text(), "What the assistant thought; also `reasoning`.")
        .optional("tool_calls", list(named("MessageToolCall")), "Calls of the assistant.")
        .optional("tool_call_id", text(), "The call that a message of the role `tool` answers.")
        .refused("audio", "use text and tool_calls")
        .refused("function_call", "use text and tool_calls")
        .into()
}

fn called() -> AnySchema {
    let arguments = any_of([text(), object()]);
    ObjectShape::new()
        .required("name", text(), "")
        .required("arguments", arguments, "An object, or its JSON.")
        .into()
}

fn tool_choice() -> AnySchema {
    let function = ObjectShape::new().required("name", text(), "");
    let named = ObjectShape::new().required("type", one_of(&["function"]), "").required(
        "function",
        function.into(),
        "",
    );
    let weather = json!({"type": "function", "function": {"name": "weather"}});
    let named = with_example(named.into(), weather.clone());
    let modes = || one_of(&["none", "auto", "required"]);
    let allowed = ObjectShape::new().required("mode", modes(), "").required(
        "tools",
        list(named.clone()),
        "Those that are offered.",
    );
    let allowed = ObjectShape::new().required("type", one_of(&["allowed_tools"]), "").required(
        "allowed_tools",
        allowed.into(),
        "",
    );
    let among =
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [weather]}});
    any_of([modes(), named, with_example(allowed.into(), among)])
}

fn response_format() -> AnySchema {
    let inner = ObjectShape::new()
        .optional("name", text(), "")
        .optional("schema", json_schema(), "Default: any object.")
        .optional("open_objects", flag(), OPEN_OBJECTS);
    let schema = ObjectShape::new().required("type", one_of(&["json_schema"]), "").required(
        "json_schema",
        inner.into(),
        "",
    );
    formats(schema)
}

fn prompts() -> AnySchema {
    any_of([
        text(),
        list_within(any_of([text(), tokens()]), 1, usize::MAX),
        with_example(tokens(), json!([1])),
    ])
}

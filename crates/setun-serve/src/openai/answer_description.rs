//! Schemas of answers of the API.

use crate::description::schema::{
    AnySchema, ObjectShape, any_of, list, map, named, null, nullable, number, one_of, size, text,
};

/// Schemas of answers.
pub(crate) fn schemas() -> Vec<(&'static str, AnySchema)> {
    vec![
        ("ChatCompletion", chat_completion()),
        ("ChatCompletionChunk", chat_chunk()),
        ("ToolCall", tool_call()),
        ("ChatLogprobs", chat_logprobs()),
        ("TokenLogprob", token_logprob(true)),
        ("TopLogprob", token_logprob(false)),
        ("Usage", usage()),
        ("TextCompletion", text_completion()),
        ("CompletionLogprobs", completion_logprobs()),
        ("EmbeddingList", embeddings()),
        ("ModelList", models()),
        ("Model", model()),
    ]
}

/// Why a text ended.
fn finish_reason() -> AnySchema {
    one_of(&["stop", "length", "tool_calls", "content_filter"])
}

/// What an answer and its chunks begin with.
fn head(object: &'static str) -> ObjectShape {
    ObjectShape::new().with([
        ("id", text()),
        ("object", one_of(&[object])),
        ("created", size()),
        ("model", text()),
    ])
}

fn chat_completion() -> AnySchema {
    let message = ObjectShape::new()
        .required("role", one_of(&["assistant"]), "")
        .required("content", nullable(text()), "Null where there are calls alone.")
        .required("refusal", null(), "")
        .sometimes("reasoning_content", text(), "What the model thought.")
        .sometimes("reasoning", text(), "Another name of `reasoning_content`.")
        .sometimes("tool_calls", list(named("ToolCall")), "");
    let choice = ObjectShape::new().with([
        ("index", size()),
        ("message", message.into()),
        ("logprobs", nullable(named("ChatLogprobs"))),
        ("finish_reason", finish_reason()),
    ]);
    head("chat.completion")
        .with([("choices", list(choice.into())), ("usage", named("Usage"))])
        .into()
}

fn chat_chunk() -> AnySchema {
    let function = ObjectShape::new()
        .sometimes("name", text(), "In the first piece alone.")
        .required("arguments", text(), "A piece of them.");
    let call = ObjectShape::new()
        .required("index", size(), "")
        .sometimes("id", text(), "In the first piece alone.")
        .sometimes("type", one_of(&["function"]), "In the first piece alone.")
        .required("function", function.into(), "");
    let delta = ObjectShape::new()
        .sometimes("role", one_of(&["assistant"]), "In the first piece alone.")
        .sometimes("content", text(), "A piece of the text.")
        .sometimes("reasoning_content", text(), "A piece of what the model thinks.")
        .sometimes("reasoning", text(), "Another name of `reasoning_content`.")
        .sometimes("tool_calls", list(call.into()), "");
    let choice = ObjectShape::new().with([
        ("index", size()),
        ("delta", delta.into()),
        ("logprobs", nullable(named("ChatLogprobs"))),
        ("finish_reason", nullable(finish_reason())),
    ]);
    head("chat.completion.chunk")
        .with([("choices", list(choice.into()))])
        .sometimes("usage", nullable(named("Usage")), "With `include_usage`.")
        .into()
}

fn tool_call() -> AnySchema {
    let function = ObjectShape::new().required("name", text(), "").required(
        "arguments",
        text(),
        "The JSON of an object, unless it was cut.",
    );
    ObjectShape::new()
        .with([("id", text()), ("type", one_of(&["function"])), ("function", function.into())])
        .into()
}

fn chat_logprobs() -> AnySchema {
    ObjectShape::new().with([("content", list(named("TokenLogprob"))), ("refusal", null())]).into()
}

fn token_logprob(has_top: bool) -> AnySchema {
    let token = ObjectShape::new()
        .required("token", text(), "")
        .required("logprob", number(), "The natural logarithm of its probability.")
        .required("bytes", list(size()), "");
    if has_top {
        return token.required("top_logprobs", list(named("TopLogprob")), "").into();
    }
    token.into()
}

fn usage() -> AnySchema {
    let details = ObjectShape::new().required("cached_tokens", size(), "");
    let of_answer = ObjectShape::new().required("reasoning_tokens", size(), "");
    ObjectShape::new()
        .with([
            ("prompt_tokens", size()),
            ("completion_tokens", size()),
            ("total_tokens", size()),
            ("prompt_tokens_details", details.into()),
            ("completion_tokens_details", of_answer.into()),
        ])
        .into()
}

fn text_completion() -> AnySchema {
    let choice = ObjectShape::new().with([
        ("index", size()),
        ("text", text()),
        ("logprobs", nullable(named("CompletionLogprobs"))),
        ("finish_reason", nullable(finish_reason())),
    ]);
    head("text_completion")
        .with([("choices", list(choice.into()))])
        .sometimes("usage", nullable(named("Usage")), "In a stream with `include_usage`.")
        .into()
}

fn completion_logprobs() -> AnySchema {
    ObjectShape::new()
        .required("text_offset", list(size()), "In characters.")
        .required("token_logprobs", list(nullable(number())), "Null where nothing comes before.")
        .required("tokens", list(text()), "")
        .required("top_logprobs", list(nullable(map(None, number()))), "")
        .into()
}

fn embeddings() -> AnySchema {
    let values = any_of([list(number()), text()]);
    let item = ObjectShape::new()
        .with([("object", one_of(&["embedding"])), ("index", size())])
        .required("embedding", values, "Numbers, or their bytes in base64, the lowest first.");
    let usage = ObjectShape::new().with([("prompt_tokens", size()), ("total_tokens", size())]);
    ObjectShape::new()
        .with([
            ("object", one_of(&["list"])),
            ("data", list(item.into())),
            ("model", text()),
            ("usage", usage.into()),
        ])
        .into()
}

fn models() -> AnySchema {
    ObjectShape::new().with([("object", one_of(&["list"])), ("data", list(named("Model")))]).into()
}

fn model() -> AnySchema {
    ObjectShape::new()
        .with([
            ("id", text()),
            ("object", one_of(&["model"])),
            ("created", size()),
            ("owned_by", text()),
        ])
        .required("max_model_len", nullable(size()), "Null until the model has been loaded.")
        .required("root", text(), "The model's own name.")
        .required("state", one_of(&["unloaded", "loading", "loaded", "unloading"]), "")
        .into()
}

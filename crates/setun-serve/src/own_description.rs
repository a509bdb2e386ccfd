//! Schemas and routes of setun's own.

use serde_json::json;

use crate::{
    description::{
        operation::{Api, RouteShape},
        options::template_options,
        schema::{
            AnySchema, ObjectShape, any_of, flag, list, list_within, named, nullable, number,
            one_of, size, text, text_from, tokens,
        },
    },
    limits::Limits,
    openai::description::{CACHE_SALT, MODEL, messages, tools},
    score::MAX_CONTINUATIONS,
};

/// Schemas of what these routes answer.
pub(crate) fn schemas() -> Vec<(&'static str, AnySchema)> {
    vec![("Report", report()), ("Scores", scores())]
}

/// `POST /score`.
pub(crate) fn score() -> RouteShape {
    let texts = list_within(text(), 1, MAX_CONTINUATIONS);
    let prompt = any_of([text(), tokens()]);
    let body = ObjectShape::new()
        .optional("prompt", prompt, "A text or token ids.")
        .optional("messages", messages(), "In its place, through the chat template.")
        .required("continuations", texts, "What the prompt may go on with.")
        .optional("cache_salt", text_from(1), CACHE_SALT)
        .optional("model", text(), MODEL);
    let example = json!({"prompt": "The sky is", "continuations": [" blue"]});
    RouteShape::with_body(
        Api::Setun,
        "score",
        "Scores texts as continuations of a prompt",
        body,
        example,
    )
    .answers("A score for each text, in their order.", named("Scores"))
}

/// `POST /tokenize`.
pub(crate) fn tokenize(limits: &Limits) -> RouteShape {
    let body = ObjectShape::new()
        .optional("prompt", text(), "The text.")
        .optional("messages", messages(), "In its place, through the chat template.")
        .optional("tools", tools(), "With messages: the functions that are offered.")
        .optional("tool_choice", named("ToolChoice"), "With messages: whether they are.")
        .optional("continue_final_message", flag(), "With messages: whether the last one goes on.")
        .optionals(template_options(limits))
        .optional(
            "add_special_tokens",
            flag(),
            "Whether a text begins with what the tokenizer puts before it. Default: true.",
        )
        .optional("model", text(), MODEL)
        .refused("functions", "use tools")
        .refused("function_call", "use tool_choice");
    let answer = ObjectShape::new().with([
        ("count", size()),
        ("max_model_len", size()),
        ("tokens", tokens()),
    ]);
    let example = json!({"prompt": "A cat"});
    RouteShape::with_body(
        Api::Setun,
        "tokenize",
        "Tokenizes a text or a conversation",
        body,
        example,
    )
    .answers("The tokens.", answer)
}

/// `POST /detokenize`.
pub(crate) fn detokenize() -> RouteShape {
    let body = ObjectShape::new().required("tokens", tokens(), "Ids of tokens.").optional(
        "model",
        text(),
        MODEL,
    );
    let answer = ObjectShape::new().with([("prompt", text())]);
    let example = json!({"tokens": [1]});
    RouteShape::with_body(Api::Setun, "detokenize", "Decodes tokens", body, example)
        .answers("The text.", answer)
}

/// `GET /tokenizer_info`.
pub(crate) fn tokenizer_info() -> RouteShape {
    let answer = ObjectShape::new().with([
        ("bos_token", nullable(text())),
        ("eos_token", nullable(text())),
        ("model_max_length", size()),
    ]);
    RouteShape::without_body(Api::Setun, "tokenizer_info", "Special tokens of the first model")
        .refuses("400", "The model has no tokenizer.")
        .refuses("503", "The model cannot be loaded.")
        .refuses("507", "The model does not fit the memory budget.")
        .answers("The tokens.", answer)
}

/// `GET /health`.
pub(crate) fn health() -> RouteShape {
    RouteShape::without_body(Api::Setun, "health", "Liveness")
        .open()
        .answers("The server answers, and its engines run.", named("Report"))
        .answers_with("503", "An engine has ended.", &[("application/json", Some(named("Error")))])
}

/// `GET /ready`.
pub(crate) fn ready() -> RouteShape {
    let either = any_of([named("Report"), named("Error")]);
    RouteShape::without_body(Api::Setun, "ready", "Readiness")
        .open()
        .answers("They are.", named("Report"))
        .answers_with(
            "503",
            "Models load, or the server shuts down.",
            &[("application/json", Some(either))],
        )
}

/// `GET /version`.
pub(crate) fn version() -> RouteShape {
    let version = ObjectShape::new().with([("version", text())]);
    RouteShape::without_body(Api::Setun, "version", "Version of the server")
        .answers("The version.", version)
}

/// `GET /metrics`.
pub(crate) fn metrics() -> RouteShape {
    RouteShape::without_body(Api::Setun, "metrics", "Metrics").answers_with(
        "200",
        "Metrics in the text format of Prometheus.",
        &[("text/plain; version=0.0.4", Some(text()))],
    )
}

/// `GET /ui`.
pub(crate) fn page() -> RouteShape {
    RouteShape::without_body(Api::Setun, "ui", "The page")
        .open()
        .refuses("406", "The page is kept compressed with gzip.")
        .answers_with("200", "The page.", &[("text/html; charset=utf-8", Some(text()))])
}

/// `GET /ui/requests`.
pub(crate) fn requests() -> RouteShape {
    let request = ObjectShape::new().with([
        ("id", text()),
        ("request_id", text()),
        ("model", text()),
        ("api", text()),
        ("state", one_of(&["running", "waiting"])),
        ("texts", size()),
        ("tokens", size()),
        ("age_seconds", number()),
    ]);
    let answer = ObjectShape::new().with([("data", list(request.into()))]);
    RouteShape::without_body(Api::Setun, "requests", "Lists requests under way")
        .answers("Those that run and wait.", answer)
}

/// `DELETE /ui/requests/{id}`.
pub(crate) fn cancel() -> RouteShape {
    let answer = ObjectShape::new().with([("id", text()), ("cancelled", flag())]);
    RouteShape::without_body(Api::Setun, "cancel", "Cancels a request")
        .path_parameter("id", "Its `id` in the list.")
        .refuses("404", "There is no such request.")
        .answers("They have ended.", answer)
}

fn report() -> AnySchema {
    let other = ObjectShape::new()
        .with([("name", text()), ("state", one_of(&["unloaded", "loading", "unloading"]))])
        .sometimes("read_bytes", size(), "Of a load.")
        .sometimes("total_bytes", size(), "Of a load.")
        .sometimes("error", text(), "The last load failed.");
    ObjectShape::new()
        .required("status", one_of(&["ok", "ready", "loading"]), "")
        .sometimes("models", list(text()), "The models that are loaded, for those who have a key.")
        .sometimes("others", list(other.into()), "Those that are not.")
        .into()
}

fn scores() -> AnySchema {
    let token =
        ObjectShape::new().with([("text", text()), ("token", size()), ("logprob", number())]);
    let score = ObjectShape::new()
        .required("text", text(), "")
        .required("logprob", number(), "The sum of those of the tokens.")
        .required("mean_logprob", number(), "")
        .required("tokens", list(token.into()), "");
    ObjectShape::new().with([("model", text()), ("scores", list(score.into()))]).into()
}

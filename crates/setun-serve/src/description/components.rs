//! Schemas that several routes have.

use serde_json::json;
use utoipa::openapi::{Components, ComponentsBuilder};

use super::{
    operation::{Api, error_response},
    schema::{
        AnySchema, ObjectShape, any_of, flag, list_within, named, nullable, object, of_form,
        one_of, text, values, with_example,
    },
};
/// The names that functions may have.
pub(crate) const TOOL_NAME: &str = "^[A-Za-z0-9_.:/-]{1,128}$";

/// A grammar in each syntax.
const GRAMMARS: [(&str, &str); 3] =
    [("regex", "a+"), ("lark", "start: \"a\"+"), ("gbnf", "root ::= \"a\"+")];

/// Description of `strict` of a function.
pub(crate) const STRICT: &str = "Whether a schema that cannot be applied as a whole is refused. \
    Otherwise its parts that cannot be are left free, which `x-setun-warning` tells.";

/// What every API has of functions, formats and errors.
fn shared() -> Vec<(&'static str, AnySchema)> {
    vec![("Error", error()), ("Tool", tool()), ("Function", function())]
}

/// All schemas, with those of each API, and the answers of errors.
pub(super) fn components(schemas: Vec<(&'static str, AnySchema)>) -> Components {
    let schemas = shared().into_iter().chain(schemas);
    let components = ComponentsBuilder::new().schemas_from_iter(schemas);
    let with_error = |components: ComponentsBuilder, api: Api| {
        components.response(api.error(), error_response(api, named(api.error())))
    };
    [Api::OpenAi, Api::Anthropic, Api::Ollama].into_iter().fold(components, with_error).build()
}

fn error() -> AnySchema {
    let kinds = ["invalid_request_error", "rate_limit_error", "server_error"];
    let error = ObjectShape::new()
        .required("message", text(), "What is wrong.")
        .required("type", one_of(&kinds), "")
        .required("param", nullable(text()), "The field at fault.")
        .required("code", nullable(text()), "The kind of fault, such as `invalid_type`.");
    ObjectShape::new().required("error", error.into(), "").into()
}

/// A function as the APIs of `OpenAI` and Ollama offer it.
fn tool() -> AnySchema {
    ObjectShape::new()
        .required("type", one_of(&["function"]), "")
        .required("function", named("Function"), "")
        .into()
}

fn function() -> AnySchema {
    ObjectShape::new()
        .required("name", of_form(TOOL_NAME), "")
        .optional("description", text(), "What it does.")
        .optional("parameters", object(), "The JSON schema of its arguments.")
        .optional("strict", flag(), STRICT)
        .into()
}

/// The formats that a text may have to have; `json_schema` is that of a JSON schema.
pub(crate) fn formats(json_schema: ObjectShape) -> AnySchema {
    let plain = |kind| ObjectShape::new().required("type", one_of(&[kind]), "");
    let grammar = plain("grammar")
        .required("syntax", one_of(&["regex", "lark", "gbnf"]), "")
        .required("definition", text(), "");
    let example = |grammar, (syntax, definition): &(&str, &str)| {
        let example = json!({"type": "grammar", "syntax": syntax, "definition": definition});
        with_example(grammar, example)
    };
    let grammar = GRAMMARS.iter().fold(grammar.into(), example);
    let choice = plain("choice").required("choices", list_within(text(), 1, usize::MAX), "");
    let [words, object] = ["text", "json_object"].map(|kind| plain(kind).into());
    any_of([words, object, json_schema.into(), grammar, choice.into()])
}

/// Description of `open_objects` of a JSON schema.
pub(crate) const OPEN_OBJECTS: &str =
    "Allow properties that are not listed wherever `additionalProperties` is absent.";

/// A JSON schema, which is an object, or true for any value.
pub(crate) fn json_schema() -> AnySchema {
    any_of([object(), values([json!(true)])])
}

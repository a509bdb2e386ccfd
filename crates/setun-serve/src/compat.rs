//! Fields by which requests to vLLM and llama-server constrain a text and its end.

use serde_json::Value;
use setun::GrammarSpec;

use crate::{
    description::schema::{
        AnySchema, ObjectShape, any_of, flag, list_within, object, text, text_from, values,
        with_example,
    },
    error::ApiError,
    fields::Fields,
    response_format::choices,
};

/// Constraints at the top of a request, and what each is: of vLLM until 0.11, since then, and of
/// llama-server.
pub(crate) const CONSTRAINTS: [&str; 7] = [
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "grammar",
    "json_schema",
];

/// Description of `add_generation_prompt`.
const PROMPT: &str = "Whether an answer is begun. Beside `continue_final_message` it is false.";

/// A JSON schema, in words.
const SCHEMA: &str = "a JSON schema, or its text";

/// The values of these fields in a request.
#[derive(Debug, Default)]
pub(crate) struct Compat {
    /// The format and the field that has it.
    format: Option<(String, GrammarSpec)>,
    /// Whether the tokens that end the model's texts may not come.
    pub(crate) ignores_eos: bool,
}

/// The format of a text, and the field that has it.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) field: String,
    pub(crate) spec: GrammarSpec,
}

impl Compat {
    pub(crate) fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let mut compat = Self::default();
        let given = schema(fields, "guided_json")?;
        compat.add(fields, "guided_json", given)?;
        let given = fields.text("guided_regex")?.map(GrammarSpec::Regex);
        compat.add(fields, "guided_regex", given)?;
        let given = choices(fields, "guided_choice")?.map(GrammarSpec::Choice);
        compat.add(fields, "guided_choice", given)?;
        let given = fields.text("guided_grammar")?.map(grammar);
        compat.add(fields, "guided_grammar", given)?;
        if let Some(mut given) = fields.object("structured_outputs")? {
            compat.add_structured(&mut given)?;
        }
        let given = fields.text("grammar")?.filter(|text| !text.is_empty()).map(GrammarSpec::Gbnf);
        compat.add(fields, "grammar", given)?;
        let given = schema(fields, "json_schema")?;
        compat.add(fields, "json_schema", given)?;
        compat.ignores_eos = fields.flag("ignore_eos")?.unwrap_or_default();
        generation_prompt(fields)?;
        Ok(compat)
    }

    fn add_structured(&mut self, given: &mut Fields) -> Result<(), ApiError> {
        let spec = schema(given, "json")?;
        self.add(given, "json", spec)?;
        let spec = given.text("regex")?.map(GrammarSpec::Regex);
        self.add(given, "regex", spec)?;
        let spec = choices(given, "choice")?.map(GrammarSpec::Choice);
        self.add(given, "choice", spec)?;
        let spec = given.text("grammar")?.map(grammar);
        self.add(given, "grammar", spec)?;
        let object = given.flag("json_object")?.unwrap_or_default();
        self.add(given, "json_object", object.then_some(GrammarSpec::JsonObject))?;
        for (field, reason) in [
            ("structural_tag", "use tools"),
            ("whitespace_pattern", "use `x-guidance` in the schema"),
        ] {
            if given.take(field).is_some() {
                return Err(ApiError::unsupported(&given.name(field), reason));
            }
        }
        if given.flag("disable_any_whitespace")?.unwrap_or_default() {
            let reason = "use `\"x-guidance\": {\"whitespace_flexible\": false}` in the schema";
            return Err(ApiError::unsupported(&given.name("disable_any_whitespace"), reason));
        }
        Ok(())
    }

    fn add(
        &mut self,
        fields: &Fields,
        field: &str,
        spec: Option<GrammarSpec>,
    ) -> Result<(), ApiError> {
        let Some(spec) = spec else { return Ok(()) };
        let name = fields.name(field);
        match self.format.replace((name.clone(), spec)) {
            Some((other, _)) => Err(beside(&name, &other)),
            None => Ok(()),
        }
    }

    /// The format of the text, with that of the API's own field.
    pub(crate) fn format(
        &mut self,
        field: &str,
        own: Option<GrammarSpec>,
    ) -> Result<Option<Format>, ApiError> {
        match (own, self.format.take()) {
            (Some(_), Some((other, _))) => Err(beside(&other, field)),
            (Some(spec), None) => Ok(Some(Format { field: field.to_owned(), spec })),
            (None, other) => Ok(other.map(|(field, spec)| Format { field, spec })),
        }
    }
}

fn beside(name: &str, other: &str) -> ApiError {
    ApiError::invalid(name, format!("given beside {other}, expected one format"))
}

fn schema(fields: &mut Fields, field: &str) -> Result<Option<GrammarSpec>, ApiError> {
    match fields.take(field) {
        None => Ok(None),
        Some(schema @ (Value::Object(_) | Value::Bool(true))) => {
            Ok(Some(GrammarSpec::JsonSchema(schema)))
        }
        Some(Value::String(text)) => match GrammarSpec::json_schema(&text) {
            Ok(spec @ GrammarSpec::JsonSchema(Value::Object(_) | Value::Bool(true))) => {
                Ok(Some(spec))
            }
            Ok(_) => Err(ApiError::invalid(&fields.name(field), format!("expected {SCHEMA}"))),
            Err(error) => Err(ApiError::invalid(&fields.name(field), format!("{error}"))),
        },
        Some(other) => Err(fields.wrong_type(field, SCHEMA, &other)),
    }
}

/// A grammar of vLLM, which takes Lark's notation and one like GBNF.
fn grammar(text: String) -> GrammarSpec {
    if text.contains("::=") { GrammarSpec::Gbnf(text) } else { GrammarSpec::Lark(text) }
}

/// Whether the prompt ends where an answer begins, which it does unless the last message is
/// continued.
fn generation_prompt(fields: &mut Fields) -> Result<(), ApiError> {
    const FIELD: &str = "add_generation_prompt";
    let continues = fields.get("continue_final_message") == Some(&Value::Bool(true));
    match fields.flag(FIELD)? {
        Some(true) if continues => {
            Err(ApiError::invalid(FIELD, "expected false beside continue_final_message"))
        }
        Some(false) if !continues => {
            Err(ApiError::unsupported(FIELD, "prompts end where an answer begins"))
        }
        _ => Ok(()),
    }
}

/// Refuses constraints where the API has a field of its own.
pub(crate) fn refuse(fields: &Fields, reason: &str) -> Result<(), ApiError> {
    let given = CONSTRAINTS.into_iter().find(|field| fields.get(field).is_some());
    match given.or_else(|| Some("ignore_eos").filter(|field| fields.get(field).is_some())) {
        Some(field) => Err(ApiError::unsupported(&fields.name(field), reason)),
        None => Ok(()),
    }
}

/// The fields as they are described.
pub(crate) fn described() -> Vec<(&'static str, AnySchema, String)> {
    let of_text = with_example(text_from(2), "{}".into());
    let schema = || any_of([object(), values([true.into()]), of_text.clone()]);
    let gbnf = || with_example(text(), "root ::= \"a\"".into());
    let texts = || list_within(text(), 1, usize::MAX);
    let structured = ObjectShape::new()
        .optional("json", schema(), "")
        .optional("regex", text(), "")
        .optional("choice", texts(), "")
        .optional("grammar", gbnf(), "")
        .optional("json_object", flag(), "")
        .optional("disable_any_whitespace", values([false.into()]), "")
        .refused("structural_tag", "use tools")
        .refused("whitespace_pattern", "use `x-guidance` in the schema");
    let of = |server: &str, what: &str| format!("{what}, as {server} has it.");
    vec![
        ("guided_json", schema(), of("vLLM", "A JSON schema of the text")),
        ("guided_regex", text(), of("vLLM", "A regular expression of the text")),
        ("guided_choice", texts(), of("vLLM", "The texts that may come")),
        ("guided_grammar", gbnf(), of("vLLM", "A grammar of the text")),
        ("structured_outputs", structured.into(), of("vLLM", "The format of the text")),
        ("grammar", gbnf(), of("llama-server", "A grammar of the text in GBNF")),
        ("json_schema", schema(), of("llama-server", "A JSON schema of the text")),
        ("ignore_eos", flag(), of("llama-server", "Whether no token may end the text")),
        ("add_generation_prompt", values([true.into()]), PROMPT.into()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format(body: &Value, own: Option<GrammarSpec>) -> Result<Option<GrammarSpec>, ApiError> {
        let mut fields = Fields::read(body.to_string().as_bytes())?;
        let format = Compat::read(&mut fields)?.format("response_format", own)?;
        Ok(format.map(|format| format.spec))
    }

    #[test]
    fn constraints_of_other_servers_are_formats() {
        let schema = json!({"const": 7});
        let as_schema = || GrammarSpec::JsonSchema(schema.clone());
        let (lark, gbnf) = ("start: \"a\"", "root ::= \"a\"");
        let choice = || GrammarSpec::Choice(vec!["yes".to_owned()]);
        for (body, expected) in [
            (json!({"guided_json": schema}), as_schema()),
            (json!({"guided_json": schema.to_string()}), as_schema()),
            (json!({"guided_regex": "a+"}), GrammarSpec::Regex("a+".to_owned())),
            (json!({"guided_choice": ["yes"]}), choice()),
            (json!({"guided_grammar": lark}), GrammarSpec::Lark(lark.to_owned())),
            (json!({"guided_grammar": gbnf}), GrammarSpec::Gbnf(gbnf.to_owned())),
            (json!({"structured_outputs": {"json": schema, "json_object": null}}), as_schema()),
            (json!({"structured_outputs": {"regex": "a+"}}), GrammarSpec::Regex("a+".to_owned())),
            (json!({"structured_outputs": {"choice": ["yes"]}}), choice()),
            (json!({"structured_outputs": {"grammar": gbnf}}), GrammarSpec::Gbnf(gbnf.to_owned())),
            (json!({"structured_outputs": {"json_object": true}}), GrammarSpec::JsonObject),
            (json!({"grammar": gbnf, "json_schema": null}), GrammarSpec::Gbnf(gbnf.to_owned())),
            (json!({"json_schema": schema, "grammar": ""}), as_schema()),
        ] {
            assert_eq!(format(&body, None), Ok(Some(expected)), "{body}");
            assert!(format(&body, Some(GrammarSpec::JsonObject)).is_err(), "{body}");
        }
        assert_eq!(format(&json!({"structured_outputs": {}, "grammar": null}), None), Ok(None));
        let own = format(&json!({}), Some(GrammarSpec::JsonObject));
        assert_eq!(own, Ok(Some(GrammarSpec::JsonObject)));
    }

    #[test]
    fn faults_name_the_field() {
        for (body, message) in [
            (json!({"guided_json": 3}), "guided_json: expected a JSON schema"),
            (json!({"guided_json": "{"}), "guided_json: the schema cannot be followed"),
            (json!({"json_schema": "0"}), "json_schema: expected a JSON schema"),
            (json!({"guided_choice": []}), "guided_choice: expected one or more strings"),
            (json!({"guided_choice": "a"}), "guided_choice: expected a list"),
            (json!({"guided_regex": ["a"]}), "guided_regex: expected a string"),
            (json!({"grammar": "a", "json_schema": {}}), "json_schema: given beside grammar"),
            (json!({"structured_outputs": {"json": {}, "regex": "a"}}), "structured_outputs.regex"),
            (
                json!({"structured_outputs": {"structural_tag": "{}"}}),
                "structured_outputs.structural_tag: not supported: use tools",
            ),
            (json!({"structured_outputs": {"disable_any_whitespace": true}}), "not supported"),
            (json!({"ignore_eos": 1}), "ignore_eos: expected true or false"),
            (json!({"add_generation_prompt": false}), "add_generation_prompt: not supported"),
            (
                json!({"add_generation_prompt": true, "continue_final_message": true}),
                "add_generation_prompt: expected false beside continue_final_message",
            ),
        ] {
            let error = format!("{:?}", format(&body, None).expect_err(message));
            assert!(error.contains(message), "{error}");
        }
        let continued = json!({"add_generation_prompt": false, "continue_final_message": true});
        assert_eq!(format(&continued, None), Ok(None));
    }
}

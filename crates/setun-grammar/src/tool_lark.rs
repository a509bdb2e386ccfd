//! Grammars of tool calls in Lark, from the schemas of the tools.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use setun_text::{Tool, ToolChoice, ToolFormat};

use crate::limits::at_most;
use crate::{GrammarError, GrammarLimits, ToolGrammar, Vocabulary, lark, schema, size};

/// Any text.
const TEXT: &str = "TEXT: /(.|\\n)*/\n";

impl ToolGrammar {
    /// Refuses schemas that are larger than the limit together.
    pub(crate) fn check(&self, limits: &GrammarLimits) -> Result<(), GrammarError> {
        let mut bytes = 0;
        for tool in &self.tools {
            for value in tool.parameters.iter().flat_map(Map::values) {
                // Before anything goes into them.
                size::check_json(value, limits).map_err(|error| of_tool(tool, error.into()))?;
            }
            bytes += tool.name.len() + parameters(tool).to_string().len();
        }
        Ok(at_most("bytes of the tools", limits.text, bytes)?)
    }

    /// The grammar in Lark.
    pub(crate) fn to_lark(
        &self,
        vocabulary: &Vocabulary,
        limits: &GrammarLimits,
    ) -> Result<String, GrammarError> {
        Tool::check_all(&self.tools).map_err(|error| refused(&error))?;
        let ToolFormat { marker, opening, separator, closing, .. } = self.format;
        let literal = |text: &str| literal(text, vocabulary);
        let mut grammar = String::new();
        let calls = match separator.filter(|_| self.parallel) {
            Some(separator) => format!("call ({} call)*", literal(separator)),
            None => "call".to_owned(),
        };
        let calls = format!("{} {calls} {}", literal(opening), literal(closing));
        if self.choice.begins_with_call() {
            let _ = writeln!(grammar, "start: {} {calls}", literal(marker));
        } else {
            // A marker that is complete ends the text at once; at the start alone it is all of it.
            let before = if self.format.at_start { "" } else { "TEXT " };
            let _ = writeln!(grammar, "start: TEXT | lead {calls}");
            let special = special(marker, vocabulary).map(|token| format!("{before}{token} | "));
            let _ = writeln!(grammar, "lead: {}spelt", special.unwrap_or_default());
            let _ = writeln!(grammar, "spelt[lazy]: {before}{}\n{TEXT}", lark::string(marker));
        }
        self.add_calls(&mut grammar, &literal, limits)?;
        Ok(grammar)
    }

    /// Adds the rules of a call, from its name on.
    fn add_calls(
        &self,
        grammar: &mut String,
        literal: &dyn Fn(&str) -> String,
        limits: &GrammarLimits,
    ) -> Result<(), GrammarError> {
        let is_allowed = |tool: &&Tool| match &self.choice {
            ToolChoice::Function(name) => *name == tool.name,
            _ => true,
        };
        let (mut names, mut schemas) = (String::new(), String::new());
        let ToolFormat { middle, after, .. } = self.format;
        for (index, tool) in self.tools.iter().filter(is_allowed).enumerate() {
            let parameters = parameters(tool);
            if parameters["type"] != "object" {
                let reason = "`type` is not `object`, as arguments are".to_owned();
                return Err(of_tool(tool, GrammarError::Schema { reason }));
            }
            let prepared = schema::prepare(&parameters, limits);
            let prepared = prepared.map_err(|error| of_tool(tool, error))?;
            let bar = if index == 0 { "" } else { " | " };
            let head = literal(&format!("{}{middle}", tool.name));
            let _ = write!(names, "{bar}{head} arguments_{index}");
            let _ = writeln!(schemas, "arguments_{index}: %json {prepared}");
        }
        if names.is_empty() {
            return Err(GrammarError::NoTool);
        }
        let _ = writeln!(grammar, "call: ({names}) {}\n{schemas}", literal(after));
        Ok(())
    }
}

/// The schema of a tool's arguments, which are an object.
fn parameters(tool: &Tool) -> Value {
    let none = || json!({"type": "object", "additionalProperties": false});
    let Some(mut schema) = tool.parameters.clone() else { return none() };
    schema.shift_remove("x-guidance"); // white space is the format's
    let is_object = |value: &Value| value == "object";
    let may_be_object = schema.get("type").is_none_or(|kind| match kind {
        Value::Array(kinds) => kinds.iter().any(is_object),
        kind => is_object(kind),
    });
    if may_be_object {
        schema.insert("type".to_owned(), "object".into());
    }
    Value::Object(schema)
}

fn of_tool(tool: &Tool, error: GrammarError) -> GrammarError {
    GrammarError::Tool { name: tool.name.clone(), error: Box::new(error) }
}

fn refused(error: &setun_text::TextError) -> GrammarError {
    GrammarError::Tools { reason: error.to_string() }
}

/// A text in Lark, in which a tag is spelt or the special token.
fn literal(text: &str, vocabulary: &Vocabulary) -> String {
    let tag = |tag: &&str| text.contains(tag);
    let Some(tag) = ToolFormat::tags().into_iter().find(tag) else { return plain(text) };
    let Some(token) = special(tag, vocabulary) else { return plain(text) };
    let (before, after) = text.split_once(tag).unwrap_or((text, ""));
    format!("{} ({token} | {}) {}", plain(before), lark::string(tag), plain(after))
}

fn plain(text: &str) -> String {
    if text.is_empty() { String::new() } else { lark::string(text) }
}

/// The special token of a text in Lark, if there is one.
fn special(text: &str, vocabulary: &Vocabulary) -> Option<String> {
    vocabulary.special_token(text).map(|token| format!("<[{token}]>"))
}

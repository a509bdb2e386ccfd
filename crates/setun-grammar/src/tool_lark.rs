//! Grammars of tool calls in Lark, from the schemas of the tools.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use setun_text::{ArgumentForm, Tool, ToolChoice, ToolFormat};

use crate::limits::at_most;
use crate::tool_note::ToolNote;
use crate::{GrammarError, GrammarLimits, ToolGrammar, Vocabulary, lark, schema, size, tool_xml};

/// Any text.
const TEXT: &str = "TEXT: /(.|\\n)*/\n";

/// The name of the grammar of an answer without calls.
pub(crate) const FORMAT: &str = "format";

/// The arguments of a tool that may be called.
pub(crate) struct Arguments<'a> {
    place: usize,
    tool: &'a Tool,
    form: ArgumentForm,
    /// Their schema as the parser takes it.
    schema: Value,
}

impl ToolGrammar {
    /// Refuses schemas that are larger than the limit together.
    pub(crate) fn check(&self, limits: &GrammarLimits) -> Result<(), GrammarError> {
        let mut bytes = 0;
        for (place, tool) in self.tools.iter().enumerate() {
            for value in tool.parameters.iter().flat_map(Map::values) {
                // Before anything goes into them.
                size::check_json(value, limits)
                    .map_err(|error| of_tool(place, tool, error.into()))?;
            }
            bytes += tool.name.len() + parameters(tool).to_string().len();
        }
        at_most("bytes of the tools", limits.text, bytes)?;
        self.text.as_deref().map_or(Ok(()), |text| size::check(text, limits))
    }

    /// The arguments of the tools that may be called, and what is left free in them.
    pub(crate) fn arguments(
        &self,
        limits: &GrammarLimits,
    ) -> Result<(Vec<Arguments<'_>>, Vec<ToolNote>), GrammarError> {
        Tool::check_all(&self.tools).map_err(|error| refused(&error))?;
        let is_allowed = |(_, tool): &(usize, &Tool)| match &self.choice {
            ToolChoice::Function(name) => *name == tool.name,
            _ => true,
        };
        let (mut all, mut notes) = (vec![], vec![]);
        for (place, tool) in self.tools.iter().enumerate().filter(is_allowed) {
            let form = self.format.arguments;
            let mut arguments = Arguments { place, tool, form, schema: Value::Null };
            arguments.prepare(limits, &mut notes)?;
            all.push(arguments);
        }
        if all.is_empty() { Err(GrammarError::NoTool) } else { Ok((all, notes)) }
    }

    /// The grammar in Lark. That of an answer without calls is beside it.
    pub(crate) fn to_lark(&self, vocabulary: &Vocabulary, all: &[Arguments<'_>]) -> String {
        let ToolFormat { marker, opening, separator, closing, .. } = self.format;
        let literal = |text: &str| literal(text, vocabulary);
        let mut grammar = String::new();
        let calls = match separator.filter(|_| self.parallel) {
            Some(separator) => format!("call ({} call)*", literal(separator)),
            None => "call".to_owned(),
        };
        let calls = format!("{} {calls} {}", literal(opening), literal(closing));
        let special = |before| {
            let token = special(marker, vocabulary);
            token.map(|token| format!("{before}{token} | ")).unwrap_or_default()
        };
        let spelt = lark::string(marker);
        if self.choice.begins_with_call() {
            let _ = writeln!(grammar, "start: {} {calls}", literal(marker));
        } else if self.is_joint() {
            let _ = writeln!(grammar, "start: @{FORMAT} | {calls}");
        } else if self.text().is_some() {
            let _ =
                writeln!(grammar, "start: @{FORMAT} | lead {calls}\nlead: {}spelt", special(""));
            let _ = writeln!(grammar, "spelt[lazy]: {spelt}");
        } else {
            // A marker that is complete ends the text at once; at the start alone it is all of it.
            let before = if self.format.at_start { "" } else { "TEXT " };
            let _ = writeln!(grammar, "start: TEXT | lead {calls}\nlead: {}spelt", special(before));
            let _ = writeln!(grammar, "spelt[lazy]: {before}{spelt}\n{TEXT}");
        }
        self.add_calls(&mut grammar, &literal, all);
        grammar
    }

    /// Whether calls and other answers are both JSON, of which the parser reads the same parts.
    pub(crate) fn is_joint(&self) -> bool {
        self.format.at_start && self.text().is_some_and(crate::GrammarSpec::is_json)
    }

    /// Adds the rules of a call, from its name on.
    fn add_calls(
        &self,
        grammar: &mut String,
        literal: &dyn Fn(&str) -> String,
        all: &[Arguments<'_>],
    ) {
        let (mut names, mut schemas) = (String::new(), String::new());
        let ToolFormat { marker, middle, after, .. } = self.format;
        if all.first().is_some_and(Arguments::is_xml) {
            schemas.push_str(tool_xml::RULES);
        }
        for (index, arguments) in all.iter().enumerate() {
            let tool = arguments.tool;
            let bar = if index == 0 { "" } else { " | " };
            let head = if self.is_joint() {
                pieces(&format!("{marker}{}{middle}", tool.name))
            } else {
                literal(&format!("{}{middle}", tool.name))
            };
            let _ = write!(names, "{bar}{head} arguments_{index}");
            arguments.add_rules(&mut schemas, index);
        }
        let _ = writeln!(grammar, "call: ({names}) {}\n{schemas}", literal(after));
    }
}

impl Arguments<'_> {
    fn prepare(
        &mut self,
        limits: &GrammarLimits,
        notes: &mut Vec<ToolNote>,
    ) -> Result<(), GrammarError> {
        let parameters = parameters(self.tool);
        if parameters["type"] != "object" {
            let reason = "`type` is not `object`, as arguments are".to_owned();
            return Err(self.refused(GrammarError::Schema { reason }));
        }
        if self.tool.strict {
            let prepared = schema::prepare(&parameters, limits);
            self.schema = prepared.map_err(|error| self.refused(error))?;
            let refusal = self.refusal_in_xml();
            return refusal.map_or(Ok(()), |(_, error)| Err(self.refused(error)));
        }
        match schema::prepare_freely(&parameters, limits) {
            Ok((prepared, reasons)) => {
                self.schema = prepared;
                notes.extend(reasons.into_iter().map(|reason| self.note(reason)));
                if let Some((is_free, reason)) = self.refusal_in_xml() {
                    notes.push(if is_free {
                        self.free(reason, limits)?
                    } else {
                        self.note(reason)
                    });
                }
                Ok(())
            }
            Err(error) => {
                notes.push(self.free(error, limits)?);
                Ok(())
            }
        }
    }

    fn is_xml(&self) -> bool {
        ArgumentForm::HAS_XML && self.form == ArgumentForm::Xml
    }

    fn refusal_in_xml(&self) -> Option<(bool, GrammarError)> {
        if self.is_xml() { tool_xml::refusal(self.tool, &self.schema) } else { None }
    }

    /// Leaves all of them free, unless the tool is strict.
    pub(crate) fn free(
        &mut self,
        reason: GrammarError,
        limits: &GrammarLimits,
    ) -> Result<ToolNote, GrammarError> {
        if self.tool.strict {
            return Err(self.refused(reason));
        }
        let free = json!({"type": "object", "additionalProperties": true});
        self.schema = schema::prepare(&free, limits)?;
        Ok(self.note(reason))
    }

    /// Makes the parser take `oneOf` as `anyOf`. False for a strict tool.
    pub(crate) fn take_one_of_as_any_of(&mut self) -> bool {
        schema::take_one_of_as_any_of(&mut self.schema);
        !self.tool.strict
    }

    pub(crate) fn name(&self) -> &str {
        &self.tool.name
    }

    /// Their schema as the parser takes it.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// A grammar of these alone.
    pub(crate) fn to_lark(&self) -> String {
        let mut grammar = "start: arguments_0\n".to_owned();
        if self.is_xml() {
            grammar.push_str(tool_xml::RULES);
        }
        self.add_rules(&mut grammar, 0);
        grammar
    }

    fn add_rules(&self, rules: &mut String, index: usize) {
        if self.is_xml() {
            tool_xml::add(rules, index, self.tool, &self.schema);
        } else {
            let _ = writeln!(rules, "arguments_{index}: %json {}", self.schema);
        }
    }

    pub(crate) fn note(&self, reason: GrammarError) -> ToolNote {
        ToolNote { tool: self.place, name: self.tool.name.clone(), reason }
    }

    fn refused(&self, error: GrammarError) -> GrammarError {
        of_tool(self.place, self.tool, error)
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

fn of_tool(place: usize, tool: &Tool, error: GrammarError) -> GrammarError {
    GrammarError::Tool { tool: place, name: tool.name.clone(), error: Box::new(error) }
}

fn refused(error: &setun_text::TextError) -> GrammarError {
    GrammarError::Tools { reason: error.words_of_tools() }
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

/// A beginning of JSON in Lark, cut where the parser cuts JSON.
fn pieces(json: &str) -> String {
    let mut pieces = String::new();
    for (index, part) in json.split('"').enumerate() {
        let piece = if index % 2 == 1 { format!("\"{part}\"") } else { part.to_owned() };
        pieces += &plain(&piece);
        pieces.push(' ');
    }
    pieces
}

/// The special token of a text in Lark, if there is one.
fn special(text: &str, vocabulary: &Vocabulary) -> Option<String> {
    vocabulary.special_token(text).map(|token| format!("<[{token}]>"))
}

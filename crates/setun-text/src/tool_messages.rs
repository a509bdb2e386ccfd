//! Conversations with tools as a chat template takes them.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{ChatTemplate, MarkedMessages, Message, MessageFault, TextError, Tool, ToolFormat};

/// What describes the tools to a model whose template has none, before them and after.
const BEFORE_TOOLS: &str = "You can call functions. These are the functions, each as JSON:\n";
const AFTER_TOOLS: &str = r#"
To call a function, write its name and its arguments as JSON, like this:
<tool_call>
{"name": "NAME", "arguments": {"ARGUMENT": "VALUE"}}
</tool_call>
Its result comes between <tool_response> and </tool_response>. If you need no function, answer in plain text."#;

/// What the tools are called among the fields of a message.
const TOOLS: &str = "tools";

/// A conversation and its tools for a template.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedTools {
    /// The messages. Arguments of calls are objects in them.
    pub messages: Vec<Message>,
    /// For [`RenderOptions::tools`](crate::RenderOptions::tools).
    pub tools: Option<Vec<Value>>,
}

impl ChatTemplate {
    /// Prepares a conversation with these tools, of which there may be none.
    ///
    /// Where the template has no tools, or calls in a form that is not known, the tools are
    /// described in the system message, and calls and results are written as text.
    ///
    /// # Errors
    ///
    /// [`TextError::Message`] if the arguments of a call are no JSON object.
    pub fn prepare_tools(
        &self,
        messages: &[Message],
        tools: &[Tool],
    ) -> Result<PreparedTools, TextError> {
        let mut messages = messages.to_vec();
        for (index, message) in messages.iter_mut().enumerate() {
            read_arguments(message).map_err(|fault| TextError::Message { index, fault })?;
            fill_content(message);
        }
        let mut tools: Vec<Value> = tools.iter().map(Tool::to_json).collect();
        if self.joins_descriptions() {
            tools.iter_mut().for_each(fill_description);
        }
        if self.tool_format().is_none() && !(tools.is_empty() && self.writes_calls()) {
            return Ok(PreparedTools { messages: as_text(messages, &tools), tools: None });
        }
        Ok(PreparedTools { messages, tools: Some(tools).filter(|tools| !tools.is_empty()) })
    }
}

impl PreparedTools {
    /// Marks the spellings of special tokens in messages and tools, as [`MarkedMessages`] says; the
    /// mark, if there are any.
    ///
    /// # Errors
    ///
    /// As [`MarkedMessages::new`].
    pub fn mark(&mut self, special_tokens: &[String]) -> Result<Option<char>, TextError> {
        let mut all = self.messages.clone();
        let mut tools = Message { content: None, ..Message::system("") };
        tools.fields.insert(TOOLS.to_owned(), self.tools.clone().into());
        all.push(tools);
        let Some(marked) = MarkedMessages::new(&all, special_tokens)? else { return Ok(None) };
        self.messages = marked.messages;
        let tools = self.messages.pop().and_then(|mut tools| tools.fields.shift_remove(TOOLS));
        if let Some(Value::Array(tools)) = tools {
            self.tools = Some(tools);
        }
        Ok(Some(marked.mark))
    }
}

/// Arguments become objects. Clients leave them out or empty for functions without parameters.
fn read_arguments(message: &mut Message) -> Result<(), MessageFault> {
    let Some(Value::Array(calls)) = message.fields.get_mut("tool_calls") else { return Ok(()) };
    for (call, value) in calls.iter_mut().enumerate() {
        let Some(Value::Object(function)) = value.get_mut("function") else { continue };
        let arguments = function.entry("arguments").or_insert(Value::Null);
        match arguments {
            Value::Object(_) => {}
            Value::Null => *arguments = Value::Object(Map::new()),
            Value::String(text) if text.trim().is_empty() => {
                *arguments = Value::Object(Map::new());
            }
            Value::String(text) => {
                let read = serde_json::from_str::<Map<String, Value>>(text);
                *arguments = Value::Object(read.map_err(|_| MessageFault::Arguments { call })?);
            }
            _ => return Err(MessageFault::Arguments { call }),
        }
    }
    Ok(())
}

/// An answer without calls, or the result of a call, that has no content is an empty text.
fn fill_content(message: &mut Message) {
    let calls = message.fields.get("tool_calls").and_then(Value::as_array);
    let has_calls = calls.is_some_and(|calls| !calls.is_empty());
    if matches!(message.role.as_str(), "assistant" | "tool") && !has_calls {
        message.content.get_or_insert_default();
    }
}

fn fill_description(tool: &mut Value) {
    if let Some(Value::Object(function)) = tool.get_mut("function") {
        function.entry("description").or_insert_with(|| "".into());
    }
}

/// The same conversation without tools, calls and roles of their own, in the generic format.
fn as_text(messages: Vec<Message>, tools: &[Value]) -> Vec<Message> {
    let mut written: Vec<Message> = vec![];
    let mut after_result = false;
    for mut message in messages {
        let is_result = message.role == "tool";
        if is_result {
            let result = message.content.take().unwrap_or_default();
            let result = format!("<tool_response>\n{result}\n</tool_response>");
            // Templates may refuse two messages of one role.
            match written.last_mut().filter(|_| after_result) {
                Some(Message { content: Some(results), .. }) => {
                    results.push('\n');
                    results.push_str(&result);
                }
                _ => written.push(Message::user(result)),
            }
        } else {
            if let Some(Value::Array(calls)) = message.fields.shift_remove("tool_calls") {
                let content = message.content.get_or_insert_default();
                for call in calls {
                    write_call(content, &call["function"]);
                }
            }
            written.push(message);
        }
        after_result = is_result;
    }
    if !tools.is_empty() {
        describe(&mut written, tools);
    }
    written
}

/// A call as the model writes it.
fn write_call(content: &mut String, function: &Value) {
    let ToolFormat { marker, opening, middle, after, .. } = ToolFormat::HERMES;
    let line = if content.is_empty() { "" } else { "\n" };
    let (name, arguments) = (function["name"].as_str().unwrap_or_default(), &function["arguments"]);
    let _ = write!(content, "{line}{marker}{opening}{name}{middle}{arguments}{after}");
}

/// Describes tools in the system message, which is the first one.
fn describe(messages: &mut Vec<Message>, tools: &[Value]) {
    let mut text = BEFORE_TOOLS.to_owned();
    for tool in tools {
        let _ = writeln!(text, "{}", tool["function"]);
    }
    text += AFTER_TOOLS;
    match messages.first_mut().filter(|message| message.role == "system") {
        Some(system) => {
            let own = system.content.take().unwrap_or_default();
            system.content = Some(format!("{own}\n\n{text}"));
        }
        None => messages.insert(0, Message::system(text)),
    }
}

#[cfg(test)]
mod tests;

//! Functions that a model may call, and which of them it has to.

use serde_json::{Map, Value, json};

use crate::TextError;

/// The most tools of a request, as `OpenAI` has it.
const MAX_TOOLS: usize = 128;

/// The most characters of a tool's name.
const MAX_NAME: usize = 128;

/// Characters of a name besides letters and digits of ASCII.
const NAME_MARKS: [char; 5] = ['_', '-', '.', ':', '/'];

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name: 1 to 128 of the characters `A-Z a-z 0-9 _ - . : /`.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, an object. Without one a function has no arguments.
    pub parameters: Option<Map<String, Value>>,
    /// Whether a schema is refused that calls cannot be held to. Otherwise a keyword that cannot be
    /// applied leaves its part of the arguments free.
    pub strict: bool,
}

impl Tool {
    /// A function without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, parameters: None, strict: false }
    }

    /// What it does.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn parameters(self, schema: Map<String, Value>) -> Self {
        Self { parameters: Some(schema), ..self }
    }

    /// Whether its schema has to be applied as a whole.
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// Tools as chat APIs have them: `[{"type": "function", "function": {"name": …, "description":
    /// …, "parameters": …, "strict": …}}, …]`. Other fields are left out.
    ///
    /// # Errors
    ///
    /// [`TextError::Tool`] for the first that is none, or whose name is taken.
    pub fn from_json(list: Vec<Value>) -> Result<Vec<Self>, TextError> {
        let read = |(index, value)| Self::read(index, value);
        let tools = list.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        Self::check_all(&tools)?;
        Ok(tools)
    }

    fn read(index: usize, mut tool: Value) -> Result<Self, TextError> {
        let refused = |field, expected, found: &Value| fault(index, field, expected, &shown(found));
        if tool["type"] != "function" {
            return Err(refused("type", "\"function\"", &tool["type"]));
        }
        let mut function = match tool["function"].take() {
            Value::Object(function) => function,
            other => return Err(refused("function", "an object", &other)),
        };
        let mut take = |field| function.shift_remove(field).unwrap_or_default();
        let name = match take("name") {
            Value::String(name) => name,
            other => return Err(refused("function.name", "a string", &other)),
        };
        let description = match take("description") {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => return Err(refused("function.description", "a string", &other)),
        };
        let parameters = match take("parameters") {
            Value::Null => None,
            Value::Object(schema) => Some(schema),
            other => return Err(refused("function.parameters", "a JSON Schema object", &other)),
        };
        let strict = match take("strict") {
            Value::Null => false,
            Value::Bool(strict) => strict,
            other => return Err(refused("function.strict", "true or false", &other)),
        };
        Ok(Self { name, description, parameters, strict })
    }

    /// Checks the number of tools and their names, no two of which may be the same.
    ///
    /// # Errors
    ///
    /// [`TextError::Tool`] for the first at fault.
    pub fn check_all(tools: &[Self]) -> Result<(), TextError> {
        if tools.len() > MAX_TOOLS {
            return Err(fault(MAX_TOOLS, "type", "no more tools", &tools.len().to_string()));
        }
        for (index, tool) in tools.iter().enumerate() {
            let is_of_name =
                |letter: char| letter.is_ascii_alphanumeric() || NAME_MARKS.contains(&letter);
            if !(1..=MAX_NAME).contains(&tool.name.len()) || !tool.name.chars().all(is_of_name) {
                let expected = "1 to 128 of A-Z a-z 0-9 _ - . : /";
                let found = shown(&tool.name.as_str().into());
                return Err(fault(index, "function.name", expected, &found));
            }
            if tools[..index].iter().any(|other| other.name == tool.name) {
                let found = format!("`{}` twice", tool.name);
                return Err(fault(index, "function.name", "a name of its own", &found));
            }
        }
        Ok(())
    }

    /// The tool as templates get it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut function = Map::from_iter([("name".to_owned(), self.name.clone().into())]);
        if let Some(description) = &self.description {
            function.insert("description".to_owned(), description.clone().into());
        }
        let none = || json!({"type": "object", "properties": {}});
        let parameters = self.parameters.clone().map_or_else(none, Value::Object);
        function.insert("parameters".to_owned(), parameters);
        json!({"type": "function", "function": function})
    }
}

fn fault(index: usize, field: &'static str, expected: &'static str, found: &str) -> TextError {
    TextError::Tool { index, field, expected, found: found.to_owned() }
}

/// The beginning of a value, for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string().chars().take(60).collect(),
    }
}

/// Whether a model calls tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It answers in text, or calls tools.
    #[default]
    Auto,
    /// It is offered no tools.
    None,
    /// It calls a tool.
    Required,
    /// It calls the tool of this name.
    Function(String),
}

impl ToolChoice {
    /// As chat APIs have it: `"auto"`, `"none"`, `"required"` or `{"type": "function", "function":
    /// {"name": …}}`; none for anything else.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        match value.as_str() {
            Some("auto") => Some(Self::Auto),
            Some("none") => Some(Self::None),
            Some("required") => Some(Self::Required),
            Some(_) => None,
            None => value["function"]["name"].as_str().map(|name| Self::Function(name.to_owned())),
        }
    }

    /// Tools and choice from the JSON text of an object with `tools` and `toolChoice`, and that
    /// object.
    ///
    /// # Errors
    ///
    /// [`TextError::Tool`] or [`TextError::ToolChoice`] if one of them is not as chat APIs have it.
    pub fn read_request(text: &str) -> Result<(Vec<Tool>, Self, Value), TextError> {
        let read = serde_json::from_str::<Value>(text);
        let mut request = read.map_err(|error| {
            fault(0, "function", "JSON of at most 127 levels", &error.to_string())
        })?;
        let tools = match request["tools"].take() {
            Value::Array(tools) => Tool::from_json(tools)?,
            other => return Err(fault(0, "type", "a list of tools", &shown(&other))),
        };
        let choice = Self::from_json(&request["toolChoice"]);
        let unknown = || TextError::ToolChoice { found: shown(&request["toolChoice"]) };
        let choice = choice.ok_or_else(unknown)?;
        Ok((tools, choice, request))
    }

    /// The tools that a model is offered by this choice.
    ///
    /// # Errors
    ///
    /// [`TextError::ToolChoice`] if it needs a tool that is not there.
    pub fn offered<'a>(&self, tools: &'a [Tool]) -> Result<&'a [Tool], TextError> {
        let (found, is_there) = match self {
            Self::None => return Ok(&[]),
            Self::Auto => return Ok(tools),
            Self::Required => ("required", !tools.is_empty()),
            Self::Function(name) => (name.as_str(), tools.iter().any(|tool| tool.name == *name)),
        };
        if is_there { Ok(tools) } else { Err(TextError::ToolChoice { found: found.to_owned() }) }
    }

    /// Whether the answer begins with a call.
    #[must_use]
    pub fn begins_with_call(&self) -> bool {
        matches!(self, Self::Required | Self::Function(_))
    }
}

crate::structured_options!(Tool, ToolChoice);

#[cfg(test)]
mod tests;

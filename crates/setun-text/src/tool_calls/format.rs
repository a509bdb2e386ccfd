//! Formats of tool calls by model family.

use super::read::{Read, array, named, object};
use crate::ToolCall;

/// How a family writes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolFormat {
    /// Llama 3.1 and later: `{"name": "f", "parameters": {…}}` and nothing else, perhaps after
    /// `<|python_tag|>`; several with `;` between them.
    Llama,
    /// Hermes, Qwen 2.5 and 3: `<tool_call>{"name": "f", "arguments": {…}}</tool_call>`.
    Hermes,
    /// Mistral: `[TOOL_CALLS][{"name": "f", "arguments": {…}, "id": "…"}]`, and later
    /// `[TOOL_CALLS]f[CALL_ID]…[ARGS]{…}`, the id being optional.
    Mistral,
    /// Functionary 3.1: `<function=f>{…}</function>`.
    Functionary,
}

const PYTHON_TAG: &str = "<|python_tag|>";

impl ToolFormat {
    /// The format that a chat template writes calls in; `None` if it is none of these.
    #[must_use]
    pub(crate) fn of_template(source: &str) -> Option<Self> {
        let has = |part: &str| source.contains(part);
        if has("<parameter=") || has("<arg_key>") {
            None // Arguments that are no JSON.
        } else if has("[TOOL_CALLS]") {
            Some(Self::Mistral)
        } else if has("<function=") && has("</function>") {
            Some(Self::Functionary)
        } else if has("<tool_call>") && has("\"arguments\"") && !has("<tool_calls>") {
            Some(Self::Hermes)
        } else if has("ipython") && has("\"parameters\"") && has("tool_calls") {
            Some(Self::Llama)
        } else {
            None
        }
    }

    /// What a call begins with.
    fn marker(self) -> &'static str {
        match self {
            Self::Llama => "{",
            Self::Hermes => "<tool_call>",
            Self::Mistral => "[TOOL_CALLS]",
            Self::Functionary => "<function=",
        }
    }

    /// Bytes of text before what may be a call.
    pub(super) fn text_before(self, text: &str, at_start: bool, ended: bool) -> usize {
        if self == Self::Llama {
            return if at_start { 0 } else { text.len() };
        }
        let marker = self.marker();
        text.find(marker).unwrap_or_else(|| {
            let beginning = |length: &usize| text.ends_with(&marker[..*length]);
            let held = (1..marker.len()).rev().find(beginning).filter(|_| !ended);
            text.len() - held.unwrap_or(0)
        })
    }

    /// The calls that `text` begins with.
    pub(super) fn read(self, text: &str, ended: bool) -> Read {
        if self == Self::Llama {
            return llama(text, ended);
        }
        let Some(body) = text.strip_prefix(self.marker()) else {
            return Read::Unfinished; // A part of the marker.
        };
        match self {
            Self::Mistral => mistral(text, body, ended),
            Self::Functionary => functionary(text, body, ended),
            Self::Llama | Self::Hermes => {
                let call = object(body, ended, |value| named(value, "arguments"));
                closed(call, text, body, "</tool_call>", ended)
            }
        }
    }
}

/// A call, or what stands between calls.
fn llama(text: &str, ended: bool) -> Read {
    let body =
        text.trim_start_matches(|character: char| character.is_whitespace() || character == ';');
    let body = body.strip_prefix(PYTHON_TAG).unwrap_or(body).trim_start();
    if body.is_empty() || PYTHON_TAG.starts_with(body) {
        return if ended { Read::Nothing } else { Read::Unfinished };
    }
    let call = object(body, ended, |value| named(value, "parameters"));
    call.shifted(text.len() - body.len())
}

/// A call in `body` that ends with a marker, which may be missing where the text ends.
fn closed(call: Read, text: &str, body: &str, end: &str, ended: bool) -> Read {
    let Read::Calls(calls, length) = call else { return call };
    let rest = &body[length..];
    let after = rest.trim_start();
    let begun = text.len() - after.len();
    if after.starts_with(end) {
        Read::Calls(calls, begun + end.len())
    } else if ended && end.starts_with(after) {
        Read::Calls(calls, text.len())
    } else if end.starts_with(after) {
        Read::Unfinished
    } else {
        Read::Nothing
    }
}

fn mistral(text: &str, body: &str, ended: bool) -> Read {
    let list = body.trim_start();
    if list.starts_with('[') || list.is_empty() {
        let calls = array(list, ended, |value| named(value, "arguments"));
        return calls.shifted(text.len() - list.len());
    }
    // A name, perhaps an id, and the arguments behind a marker.
    let Some((head, arguments)) = list.split_once("[ARGS]") else {
        let may_go_on = is_head(list) && !ended;
        return if may_go_on { Read::Unfinished } else { Read::Nothing };
    };
    let (name, id) = match head.split_once("[CALL_ID]") {
        Some((name, id)) => (name, Some(id.to_owned())),
        None => (head, None),
    };
    let names = [Some(name), id.as_deref()];
    if name.is_empty() || !names.into_iter().flatten().all(|name| name.chars().all(is_of_name)) {
        return Read::Nothing;
    }
    let call = object(arguments, ended, |arguments| {
        Some(ToolCall { name: name.to_owned(), arguments, id })
    });
    call.shifted(text.len() - arguments.len())
}

/// Whether a text can be what stands before `[ARGS]`.
fn is_head(text: &str) -> bool {
    text.trim_start_matches(is_of_name).is_empty() || {
        let rest = text.trim_start_matches(is_of_name);
        ["[CALL_ID]", "[ARGS]"].iter().any(|marker| marker.starts_with(rest))
            || rest.strip_prefix("[CALL_ID]").is_some_and(|id| {
                let rest = id.trim_start_matches(is_of_name);
                "[ARGS]".starts_with(rest)
            })
    }
}

fn functionary(text: &str, body: &str, ended: bool) -> Read {
    let name = &body[..body.len() - body.trim_start_matches(is_of_name).len()];
    let Some(arguments) = body[name.len()..].strip_prefix('>').filter(|_| !name.is_empty()) else {
        let may_go_on = name.len() == body.len() && !ended;
        return if may_go_on { Read::Unfinished } else { Read::Nothing };
    };
    let call = object(arguments, ended, |arguments| {
        Some(ToolCall { name: name.to_owned(), arguments, id: None })
    });
    closed(call, text, arguments, "</function>", ended)
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | ':' | '/')
}

//! Messages that a template can write.

use crate::{Message, MessageFault, TextError, marked_text::is_word};

/// The roles of any conversation. Other roles are those that a template names.
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

/// Refuses messages of which a template would write nothing, or a role that is none.
pub(super) fn check(source: &str, messages: &[Message]) -> Result<(), TextError> {
    let mut roles = ROLES.to_vec();
    for (index, message) in messages.iter().enumerate() {
        let refused = |fault| TextError::Message { index, fault };
        let role = message.role.as_str();
        if !roles.contains(&role) {
            if !names(source, role) {
                return Err(refused(MessageFault::Role { found: role.to_owned() }));
            }
            roles.push(role);
        }
        if message.content.is_none() && !(has_calls(message) && source.contains("tool_calls")) {
            return Err(refused(MessageFault::Empty));
        }
    }
    Ok(())
}

/// Whether a template has a role in quotes. A special token is no role: it may be there, too.
fn names(source: &str, role: &str) -> bool {
    let quoted = |quote: char| source.contains(&format!("{quote}{role}{quote}"));
    !role.is_empty() && is_word(role) && (quoted('\'') || quoted('"'))
}

fn has_calls(message: &Message) -> bool {
    let calls = message.fields.get("tool_calls").and_then(|calls| calls.as_array());
    calls.is_some_and(|calls| !calls.is_empty())
}

/// Whether a template decides by a content of `none`: it may write calls only then. Another would
/// write that word, and gets an empty text, as does one to which `none` is like other values.
pub(super) fn asks_for_none(source: &str) -> bool {
    source.match_indices("content").any(|(place, name)| {
        let is_whole = !source[..place].ends_with('_');
        let rest = source[place + name.len()..].trim_start_matches(['\'', '"', ']']);
        let mut words = rest.split_whitespace();
        let asks = words.next() == Some("is");
        let value = words.find(|word| *word != "not").unwrap_or_default();
        let is_none = value.trim_end_matches(')') == "none";
        is_whole && asks && is_none && words.next() != Some("or")
    })
}

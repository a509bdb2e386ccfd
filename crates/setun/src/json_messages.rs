//! Messages of a conversation in JSON.

use setun_text::Message;

use crate::error::Error;

/// Reads a conversation as chat APIs have it: a JSON array of messages, one or more.
///
/// ```
/// let messages = setun::messages_from_json(r#"[{"role": "user", "content": "Is 3 odd?"}]"#)?;
/// assert_eq!(messages[0].role, "user");
/// # Ok::<(), setun::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Messages`], with the place of the first that is none.
pub fn messages_from_json(text: &str) -> Result<Vec<Message>, Error> {
    let wrong = |error: &dyn std::fmt::Display| Error::Messages { reason: error.to_string() };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // a byte order mark
    let maps = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    let messages = Message::from_json(maps).map_err(|error| wrong(&error))?;
    if messages.is_empty() {
        return Err(wrong(&"it is empty"));
    }
    Ok(messages)
}

//! A last message that the model continues, as `continue_final_message` of transformers.
//!
//! A template ends a message in its own way: with an end token, a line break, more. A tag behind
//! the content shows where the content ends in the rendered text, which is cut there.

use crate::{
    Message, MessageFault, TextError,
    marked_text::{MARKS, any_text},
};

/// Follows the tag: a template that trims contents removes it.
const SPACE: char = ' ';

/// Messages whose last ends in a tag.
pub(super) struct Continuation {
    pub(super) messages: Vec<Message>,
    tag: char,
}

/// Refuses a conversation whose last message is not an assistant's text.
pub(super) fn check(messages: &[Message]) -> Result<(), TextError> {
    match messages.last() {
        None => Err(refused(messages, "there is none")),
        Some(last) if last.role != "assistant" => {
            Err(refused(messages, "its role is not `assistant`"))
        }
        Some(Message { content: None, .. }) => Err(refused(messages, "it has no `content`")),
        Some(_) => Ok(()),
    }
}

impl Continuation {
    /// Puts the tag behind the last content.
    pub(super) fn new(messages: &[Message]) -> Result<Self, TextError> {
        check(messages)?;
        let is_free = |tag: &char| {
            let has_tag = |text: &str| text.contains(*tag);
            !messages.iter().any(|message| any_text(message, &has_tag))
        };
        let tag = MARKS.clone().find(is_free).ok_or(TextError::NoFreeMark)?;
        let mut messages = messages.to_vec();
        if let Some(content) = messages.last_mut().and_then(|last| last.content.as_mut()) {
            content.extend([tag, SPACE]);
        }
        Ok(Self { messages, tag })
    }

    /// The rendered text up to where the last content ends.
    pub(super) fn cut(&self, rendered: &str) -> Result<String, TextError> {
        let content = self.messages.last().and_then(|last| last.content.as_deref());
        let content = content.unwrap_or_default().trim_end().trim_end_matches(self.tag).trim();
        let unwritten =
            || refused(&self.messages, "the chat template does not write its `content`");
        let (before, behind) = rendered.rsplit_once(self.tag).ok_or_else(unwritten)?;
        // Elsewhere a template may write the content again.
        let whole = before.replace(&format!("{}{SPACE}", self.tag), "").replace(self.tag, "");
        if !whole.contains(content) {
            return Err(unwritten());
        }
        let is_trimmed = !behind.starts_with(SPACE);
        Ok(if is_trimmed { whole.trim_end().to_owned() } else { whole })
    }
}

fn refused(messages: &[Message], reason: &'static str) -> TextError {
    let fault = MessageFault::Continued { reason };
    TextError::Message { index: messages.len().saturating_sub(1), fault }
}

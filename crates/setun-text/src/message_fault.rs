//! Faults of one message of a conversation.

/// Why a message cannot be taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageFault {
    /// A field has a value of another type.
    #[error("`{field}` is {found}, expected {expected}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },

    /// A part of its content is no text.
    #[error("`content` has a part of type `{found}`, expected {{\"type\": \"text\", \"text\": …}}")]
    Part {
        /// Type of the part.
        found: String,
    },

    /// The arguments of a call are no JSON object.
    #[error("`tool_calls[{call}].function.arguments` is no JSON object")]
    Arguments {
        /// Place of the call, from 0.
        call: usize,
    },

    /// Neither the usual roles nor the chat template have this one.
    #[error(
        "the role `{found}` is unknown, expected system, user, assistant, tool, or one that the \
         chat template names"
    )]
    Role {
        /// The role.
        found: String,
    },

    /// There is nothing to write, or the chat template would not write it.
    #[error(
        "there is no `content`, expected a text, or `tool_calls` that the chat template writes"
    )]
    Empty,

    /// The last message is to be continued, and cannot be.
    #[error("the last message cannot be continued: {reason}")]
    Continued {
        /// Why.
        reason: &'static str,
    },
}

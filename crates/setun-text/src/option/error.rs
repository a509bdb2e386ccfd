//! Refusals of options.

use super::{OptionKind, OptionValue};

/// Why an option cannot be set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionError {
    /// There is none of this name.
    #[error("there is no option `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },

    /// It does not take the value.
    #[error("option `{option}` is {found}, expected {expected}")]
    Value {
        /// Its name.
        option: &'static str,
        /// The values that it takes.
        expected: OptionKind,
        /// The value that it was given.
        found: OptionValue,
    },
}

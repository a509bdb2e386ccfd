//! Errors of models that cannot be served.

use std::sync::Arc;

/// Why a model is not loaded. Clones share the cause.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be opened. A later request tries it again.
    #[error("cannot load the model {name:?}: {reason}")]
    Failed {
        /// The model.
        name: String,
        /// What opening it said.
        reason: Arc<str>,
    },

    /// It takes more memory than the budget leaves beside pinned models.
    #[error(
        "the model {name:?} takes {needed} bytes of memory, more than the {free} bytes that the \
         budget of {budget} bytes has beside pinned models"
    )]
    NoRoom {
        /// The model.
        name: String,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that can be freed for it.
        free: u64,
        /// Bytes of all models.
        budget: u64,
    },

    /// No model has this name.
    #[error("model: expected {}, found {name:?}", known.join(" or "))]
    Unknown {
        /// The name.
        name: String,
        /// Names that are known.
        known: Vec<String>,
    },

    /// Nobody waits for it any more.
    #[error("nobody waits for the model {name:?} any more")]
    Abandoned {
        /// The model.
        name: String,
    },
}

impl LoadError {
    /// What opening the model said, or the whole error.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Failed { reason, .. } => (**reason).to_owned(),
            other => other.to_string(),
        }
    }
}

/// A name that two models have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two models have the name {name:?}, expected one")]
pub struct DuplicateModel {
    /// The name.
    pub name: String,
}

//! Kinds, ranges and values of options, shared by every surface that offers them.
//!
//! An option is one row of a table ([`sampling_options!`](crate::sampling_options) and the engine's
//! own). Its [`OptionSpec`] gives the command line, TOML files, JavaScript and the documents the
//! same name, range and words.

mod kind;
mod spec;
mod value;

pub use kind::{IntegerRange, MIN_TEMPERATURE, NumberRange, OptionKind};
pub use spec::{OptionGroup, OptionSpec};
pub use value::OptionValue;

//! Kinds, ranges and values of options, shared by every surface that offers them.
//!
//! An option is one row of a table; [`option_table!`](crate::option_table) makes a struct of such
//! rows. Its [`OptionSpec`] gives the command line, TOML files, JavaScript and the documents the
//! same name, range and words.

mod error;
mod field;
mod kind;
mod spec;
mod table;
mod value;

pub use error::OptionError;
pub use field::{AnyField, FieldValue, OptionField, fill_default};
pub use kind::{IntegerRange, MIN_TEMPERATURE, NumberRange, OptionKind};
pub use spec::{OptionGroup, OptionSpec};
pub use table::{check_options, get_option, set_option};
pub use value::OptionValue;

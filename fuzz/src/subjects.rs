//! Subjects of the fuzz targets, a file for each kind of input.
//!
//! Each has one function, which runs an input within its bounds and panics where a promise is
//! broken. The tests of `tests/tests/fuzz` include these files by their paths.

#[cfg(feature = "text")]
pub mod chat_template;
#[cfg(feature = "text")]
pub mod equal_bits;
#[cfg(feature = "text")]
pub mod grammar;
#[cfg(feature = "hub")]
pub mod hub_answers;
#[cfg(feature = "text")]
pub mod input;
#[cfg(feature = "hub")]
pub mod manifest;
#[cfg(feature = "text")]
pub mod random_model;
pub mod readers;
#[cfg(feature = "hub")]
pub mod scratch;
#[cfg(feature = "text")]
pub mod session;
#[cfg(feature = "text")]
pub mod tokenizer;
#[cfg(feature = "text")]
pub mod tool_calls;

//! Grammars over vocabularies.

mod constraints;
mod endings;
mod hostile;
mod mutations;
mod refusals;
mod schema_suite;
mod support;
mod tools;
mod walks;

//! Grammars over vocabularies.

mod constraints;
mod schema_suite;
mod support;
mod walks;

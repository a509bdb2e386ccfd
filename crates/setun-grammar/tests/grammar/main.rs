//! Grammars over vocabularies.

mod constraints;
mod endings;
mod free_tools;
mod hostile;
mod mutations;
mod random;
mod refusals;
mod schema_suite;
mod support;
mod tool_endings;
mod tools;
mod walks;
mod xml_tools;

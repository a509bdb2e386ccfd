//! Which tokens may come next, so that a text has a given form.
//!
//! - [`Vocabulary`] is what a grammar needs of a tokenizer: each token as bytes.
//! - [`GrammarSpec`] says the form: a JSON schema, any JSON object, a regular expression, a list
//!   of choices, a grammar in Lark's notation or in GBNF.
//! - [`Grammar`] is that compiled for a vocabulary; sequences share it.
//! - [`Constraint`] is the state of one sequence: [`Constraint::mask`] before a token is chosen,
//!   [`Constraint::accept`] after.
//!
//! The parser is `llguidance`; this crate gives it schemas whose every keyword it applies and
//! refuses the others by name, before the first token. It does no IO and starts no thread. A
//! mask depends on the grammar and the tokens before it alone.

mod constraint;
mod error;
mod gbnf;
mod grammar;
mod lark;
mod limits;
mod never_ends;
mod number_size;
mod pattern;
mod schema;
mod spec;
mod vocabulary;

pub use constraint::Constraint;
pub use error::GrammarError;
pub use grammar::Grammar;
pub use limits::GrammarLimits;
pub use schema::{FORMATS, IGNORED_KEYWORDS, KEYWORDS};
pub use spec::GrammarSpec;
pub use vocabulary::Vocabulary;

//! Which tokens may come next, so that a text has a given form.
//!
//! - [`Vocabulary`] is what a grammar needs of a tokenizer: each token as bytes.
//! - [`GrammarSpec`] says the form: a JSON schema, any JSON object, a regular expression, a list
//!   of choices, a grammar in Lark's notation or in GBNF, calls of tools.
//! - [`Grammar`] is that compiled for a vocabulary; sequences share it.
//! - [`Constraint`] is the state of one sequence: [`Constraint::mask`] before a token is chosen,
//!   [`Constraint::accept`] after.
//!
//! The parser is `llguidance`; this crate gives it schemas whose every keyword it applies and
//! refuses the others by name, before the first token. It bounds what the parser does not, so
//! that a form of a stranger costs no more than [`GrammarLimits`] say, and may be given up on
//! ([`Interrupt`]). It does no IO; natively a short-lived thread compiles, for its stack. A mask
//! depends on the grammar and the tokens before it alone.

mod closing;
mod compile;
mod consequences;
mod constraint;
mod error;
mod expressions;
mod failure;
mod gbnf;
mod grammar;
mod interrupt;
mod lark;
mod limits;
mod names;
mod never_ends;
mod number_size;
mod open_objects;
#[cfg(not(target_arch = "wasm32"))]
mod own_stack;
mod pattern;
mod schema;
mod size;
mod spec;
mod tool_lark;
mod tool_note;
mod tool_xml;
mod vocabulary;

pub use constraint::Constraint;
pub use error::GrammarError;
pub use grammar::Grammar;
pub use interrupt::Interrupt;
pub use limits::GrammarLimits;
pub use schema::{FORMATS, IGNORED_KEYWORDS, KEYWORDS};
pub use spec::{GrammarSpec, ToolGrammar};
pub use tool_note::ToolNote;
pub use vocabulary::Vocabulary;

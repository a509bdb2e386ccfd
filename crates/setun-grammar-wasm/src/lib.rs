//! JavaScript bindings of grammars: one class a file, no logic.
//!
//! A module of its own beside `setun-wasm`, as most pages need none and the parser is large. It is
//! handed a model's tokens as bytes, and what it makes of a form goes to `setun-wasm` as it is:
//! a [`Grammar`] begins a [`Constraint`] for each text.

mod constraint;
mod error;
mod grammar;
mod vocabulary;

pub use constraint::Constraint;
pub use grammar::Grammar;
pub use vocabulary::Vocabulary;

/// Runs once, when the module is instantiated: a Rust panic is then readable in the console.
#[wasm_bindgen::prelude::wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}

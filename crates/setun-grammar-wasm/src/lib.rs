//! JavaScript bindings of grammars: one class a file, no logic.
//!
//! A module beside `setun-wasm`, since the parser is large and most pages need none. It receives a
//! model's vocabulary as bytes. `setun-wasm` receives a [`Grammar`], which begins a [`Constraint`]
//! for each sequence.

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

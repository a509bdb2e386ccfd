//! JavaScript bindings of the reader of ONNX files: one class a file, no logic.
//!
//! A module beside `setun-wasm`, since most pages read no such file. It turns a graph into a
//! [list](setun_checkpoint::tensor_list) of tensors, which `setun-wasm` reads.

mod error;
mod reader;

pub use reader::OnnxReader;

/// Runs once, when the module is instantiated: a Rust panic is then readable in the console.
#[wasm_bindgen::prelude::wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}

//! Errors as JavaScript sees them: an `Error` with a `code`.

use js_sys::{Error as JsError, Reflect};
use setun_grammar::GrammarError;
use wasm_bindgen::JsValue;

/// An `Error` whose `code` is the one that `setun::Error::code` has for grammars.
pub(crate) fn to_js(error: &GrammarError) -> JsValue {
    bad_option(&error.to_string())
}

/// An `Error` with the code `bad-option`.
pub(crate) fn bad_option(message: &str) -> JsValue {
    let error = JsError::new(message);
    // Setting a property of a fresh object cannot fail.
    let _ = Reflect::set(&error, &"code".into(), &"bad-option".into());
    error.into()
}

//! Errors as JavaScript sees them: an `Error` with a `code`.

use js_sys::{Error as JsError, Reflect};
use wasm_bindgen::JsValue;

/// An `Error` whose `code` is one of those in `docs/errors.md`.
pub(crate) fn to_js(error: impl Into<setun::Error>) -> JsValue {
    let error = error.into();
    coded(error.code().as_str(), &error.to_string())
}

/// An option that cannot be read.
pub(crate) fn bad_option(message: &str) -> JsValue {
    coded("bad-option", message)
}

fn coded(code: &str, message: &str) -> JsValue {
    let error = JsError::new(message);
    // Setting a property of a fresh object cannot fail.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}

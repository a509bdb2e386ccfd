//! Errors as JavaScript sees them: an `Error` with a `code`.

use js_sys::{Error as JsError, Reflect};
use setun_checkpoint::{CheckpointError, ErrorKind};
use wasm_bindgen::JsValue;

/// An `Error` whose `code` is the one that `setun::Error::code` has for checkpoints.
pub(crate) fn to_js(error: &CheckpointError) -> JsValue {
    let code = match error.kind() {
        ErrorKind::Truncated => "truncated",
        ErrorKind::OutOfMemory => "out-of-memory",
        ErrorKind::NotFound => "not-found",
        ErrorKind::Unsupported => "unsupported-model",
        ErrorKind::Damaged => "bad-checkpoint",
    };
    let error = JsError::new(&error.to_string());
    // Setting a property of a fresh object cannot fail.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}

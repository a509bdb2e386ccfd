//! Promises of futures.

use std::{future::Future, pin::Pin};

use js_sys::Promise;
use wasm_bindgen::JsValue;

/// The promise of a future. What runs it exists once for all futures.
pub(crate) fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    let future: Pin<Box<dyn Future<Output = _>>> = Box::pin(future);
    wasm_bindgen_futures::future_to_promise(future)
}

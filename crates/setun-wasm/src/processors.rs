//! Logits processors that are JavaScript functions.

use js_sys::{Array, Error as JsError, Float32Array, Function, Uint32Array};
use setun::{
    LogitsProcessor,
    text::{Candidates, SharedProcessor, Step, TextError},
};
use wasm_bindgen::{JsCast, JsValue};

use crate::error::bad_option;

/// Reads an array of functions.
pub(crate) fn read(given: &JsValue, vocabulary: usize) -> Result<Vec<SharedProcessor>, JsValue> {
    let calls = given.dyn_ref::<Array>().map(Array::to_vec).unwrap_or_default();
    let processor = |call: JsValue| match call.dyn_into() {
        Ok(call) => Ok(SharedProcessor::new(Callback { call, vocabulary })),
        Err(_) => Err(bad_option("option `logitsProcessors`: expected an array of functions")),
    };
    calls.into_iter().map(processor).collect()
}

/// A function of a row of logits, which it changes, and of the tokens before it. Dropped tokens
/// have −∞.
struct Callback {
    call: Function,
    vocabulary: usize,
}

impl LogitsProcessor for Callback {
    fn process(&self, candidates: &mut Candidates, step: &Step<'_>) -> Result<(), TextError> {
        let mut row = vec![f32::NEG_INFINITY; self.vocabulary];
        for &(token, logit) in candidates.as_slice() {
            if let Some(place) = row.get_mut(token as usize) {
                *place = logit;
            }
        }
        let (logits, tokens) =
            (Float32Array::from(row.as_slice()), Uint32Array::from(step.history));
        let called = self.call.call2(&JsValue::UNDEFINED, &logits, &tokens);
        called.map_err(|thrown| TextError::Processor { reason: words(&thrown) })?;
        // A transferred row has no elements, so no token is left.
        let row = logits.to_vec();
        candidates.change(|token, _| row.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY));
        Ok(())
    }
}

fn words(thrown: &JsValue) -> String {
    thrown.dyn_ref::<JsError>().map_or_else(|| format!("{thrown:?}"), |e| e.message().into())
}

//! `Generation`: a stream of events.

use std::{cell::RefCell, rc::Rc};

use futures::{StreamExt, lock::Mutex};
use js_sys::{Array, Promise};
use setun::{CancelHandle, GenerationStream};
use wasm_bindgen::prelude::*;

use crate::{error::to_js, events::Event, promise::promise};

/// A running generation. Freeing it ends it.
#[wasm_bindgen]
pub struct Generation {
    stream: Rc<Mutex<GenerationStream>>, // calls of `next` take turns
    failure: Rc<RefCell<Option<JsValue>>>, // reported after the events before it
    cancel: CancelHandle,
}

impl Generation {
    pub(crate) fn new(stream: GenerationStream) -> Self {
        let cancel = stream.cancel_handle();
        Self { stream: Rc::new(Mutex::new(stream)), failure: Rc::default(), cancel }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        // A pending `next` owns the stream, which has to end all the same.
        self.cancel.cancel();
    }
}

#[wasm_bindgen]
impl Generation {
    /// All events that are ready, at least one; `undefined` after the end. Rejects if the generation
    /// fails.
    pub fn next(&self) -> Promise {
        let (stream, failure) = (Rc::clone(&self.stream), Rc::clone(&self.failure));
        promise(async move {
            let mut stream = stream.lock().await;
            let failed = failure.borrow_mut().take();
            if let Some(error) = failed {
                return Err(error);
            }
            let Some(first) = stream.next().await else { return Ok(JsValue::UNDEFINED) };
            let rest = stream.take_ready();
            let events = Array::new();
            for event in std::iter::once(first).chain(rest) {
                let event = match event {
                    Ok(event) => event,
                    Err(error) if events.length() == 0 => return Err(to_js(error)),
                    Err(error) => {
                        *failure.borrow_mut() = Some(to_js(error));
                        break;
                    }
                };
                events.push(&serde_wasm_bindgen::to_value(&Event::new(event, stream.warnings()))?);
            }
            Ok(events.into())
        })
    }

    /// Ends the generation; its last event says `aborted`.
    pub fn stop(&self) {
        self.cancel.cancel();
    }
}

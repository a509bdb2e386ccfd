//! Workers that share a model's weights, where a page has no shared memory.

use js_sys::{Error as JsError, Uint8Array};
use setun::{CpuOptions, Receiving, ShardLink, ops::OpsError};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};

#[wasm_bindgen(typescript_custom_section)]
const SHARDS: &str = "
/** The way to workers, each of which has a `ShardWorker`. */
export interface Shards {
  readonly workers: number;
  send(worker: number, message: Uint8Array<ArrayBuffer>): void;
  /** The next answer of a worker. */
  receive(worker: number): Promise<Uint8Array>;
}
";

#[wasm_bindgen]
extern "C" {
    /// The way to workers in JavaScript.
    #[wasm_bindgen(typescript_type = "Shards")]
    pub type Shards;

    #[wasm_bindgen(method, getter)]
    fn workers(this: &Shards) -> usize;

    #[wasm_bindgen(method, catch)]
    fn send(this: &Shards, worker: usize, message: Uint8Array) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    async fn receive(this: &Shards, worker: usize) -> Result<JsValue, JsValue>;
}

/// [`Shards`] as a [`ShardLink`].
pub(crate) struct Link(pub(crate) Shards);

impl ShardLink for Link {
    fn workers(&self) -> usize {
        self.0.workers()
    }

    fn send(&mut self, worker: usize, parts: &[&[u8]]) -> Result<(), OpsError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let message = Uint8Array::new_with_length(index(bytes));
        let mut first = 0;
        for part in parts {
            message.subarray(index(first), index(first + part.len())).copy_from(part);
            first += part.len();
        }
        self.0.send(worker, message).map_err(|thrown| lost(&thrown))
    }

    fn receive(&mut self, worker: usize) -> Receiving<'_> {
        Box::pin(async move {
            let answer = self.0.receive(worker).await.map_err(|thrown| lost(&thrown))?;
            Ok(Uint8Array::new(&answer).to_vec())
        })
    }
}

/// Computes the outputs of some rows of a model's matrices: a worker's end.
#[wasm_bindgen]
pub struct ShardWorker(setun::ShardWorker);

#[wasm_bindgen]
impl ShardWorker {
    /// # Errors
    ///
    /// `backend-unavailable` if the level is not there.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Result<ShardWorker, JsValue> {
        let made = setun::ShardWorker::new(CpuOptions::default());
        Ok(Self(made.map_err(|error| JsError::new(&error.to_string()))?))
    }

    /// Takes a message, and gives the answer, if one is due.
    #[must_use]
    pub fn handle(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.0.handle(message)
    }

    /// Why it can no longer serve.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.0.failure().map(str::to_owned)
    }
}

fn lost(thrown: &JsValue) -> OpsError {
    let reason = match thrown.dyn_ref::<JsError>() {
        Some(error) => String::from(error.message()),
        None => "a worker of the model went away".to_owned(),
    };
    OpsError::DeviceLost { reason }
}

/// Memory of WebAssembly has 32 bits.
fn index(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

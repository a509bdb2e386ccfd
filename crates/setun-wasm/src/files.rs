//! `Files`: the source of a model's bytes in JavaScript.

use futures::future::{FutureExt, LocalBoxFuture};
use js_sys::{Error as JsError, Promise, Uint8Array};
use setun::{Error, ModelBytes, ReadRequest};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen(typescript_custom_section)]
const FILES: &str = "
/** The source of a model's bytes. */
export interface Files {
  /** Bytes `start..end` of a file, or the whole file. Fewer at its end, `undefined` if it does not exist. */
  read(file: string, start: number | undefined, end: number | undefined, required: boolean): Promise<Uint8Array | undefined>;
  /** Called before the files are read from the beginning, also after a lost device. */
  rewind(): void;
  /** Called when everything is read, or reading has failed. */
  close(): void;
}
";

#[wasm_bindgen]
extern "C" {
    /// The source of a model's bytes in JavaScript.
    #[wasm_bindgen(typescript_type = "Files")]
    pub type Files;

    #[wasm_bindgen(method, catch)]
    fn read(
        this: &Files,
        file: &str,
        start: Option<f64>,
        end: Option<f64>,
        required: bool,
    ) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn rewind(this: &Files) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    fn close(this: &Files) -> Result<(), JsValue>;
}

/// [`Files`] as [`ModelBytes`], closed when dropped.
pub(crate) struct Bytes(pub(crate) Files);

impl ModelBytes for Bytes {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        self.read_into(want, bytes).boxed_local()
    }

    fn rewind(&mut self) {
        // The next read reports an error.
        let _ = self.0.rewind();
    }

    fn close(&mut self) {
        // Nothing is read after this, so an error does not matter.
        let _ = self.0.close();
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.close();
    }
}

impl Bytes {
    async fn read_into(&self, want: &ReadRequest, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        bytes.clear();
        let found = self.ask(want).await.map_err(|thrown| unreadable(want, &thrown))?;
        if found.is_undefined() {
            return Ok(false);
        }
        let found: Uint8Array = found.dyn_into().map_err(|other| unreadable(want, &other))?;
        bytes.resize(found.length() as usize, 0);
        found.copy_to(bytes);
        Ok(true)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a JavaScript number; files are below 2^53 bytes"
    )]
    async fn ask(&self, want: &ReadRequest) -> Result<JsValue, JsValue> {
        let at = |offset: u64| offset as f64;
        let range = want.range.as_ref();
        let (start, end) = (range.map(|range| at(range.start)), range.map(|range| at(range.end)));
        JsFuture::from(self.0.read(&want.file, start, end, want.required)?).await
    }
}

fn unreadable(want: &ReadRequest, thrown: &JsValue) -> Error {
    let reason = match thrown.dyn_ref::<JsError>() {
        Some(error) => String::from(error.message()),
        None => thrown.as_string().unwrap_or_else(|| "no bytes and no error".to_owned()),
    };
    Error::Unreadable { file: want.file.clone(), reason }
}

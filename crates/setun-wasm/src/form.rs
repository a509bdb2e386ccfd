//! Forms of texts, that another module compiled: what JavaScript hands over is its `Grammar`.

use js_sys::Error as JsError;
use setun::{Error, Form, FormState, SharedForm, text::TokenMask};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};

use crate::{error::to_js, model::Model};

#[wasm_bindgen]
extern "C" {
    /// The form: freed with the last generation that has it.
    type JsForm;

    #[wasm_bindgen(method, getter)]
    fn tokens(this: &JsForm) -> usize;

    #[wasm_bindgen(method)]
    fn begin(this: &JsForm) -> JsState;

    #[wasm_bindgen(method)]
    fn free(this: &JsForm);

    /// The state of one text: freed with it.
    type JsState;

    #[wasm_bindgen(method, catch)]
    fn mask(this: &JsState) -> Result<Vec<u32>, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn accept(this: &JsState, token: u32) -> Result<(), JsValue>;

    #[wasm_bindgen(method)]
    fn free(this: &JsState);
}

/// The form that an option names; none where it is not given.
pub(crate) fn form(given: JsValue) -> Option<SharedForm> {
    (!given.is_undefined()).then(|| SharedForm::new(Compiled(given.unchecked_into())))
}

struct Compiled(JsForm);

impl Form for Compiled {
    fn begin(&self) -> Box<dyn FormState> {
        Box::new(State { js: self.0.begin(), tokens: self.0.tokens(), mask: None })
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        self.0.free();
    }
}

struct State {
    js: JsState,
    tokens: usize,
    mask: Option<TokenMask>, // of the next token, once it is made
}

impl FormState for State {
    fn prepare(&mut self) {
        let _ = self.mask(); // which keeps it, and an error comes again
    }

    fn mask(&mut self) -> Result<&TokenMask, Error> {
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => TokenMask::from_words(
                &self.js.mask().map_err(|thrown| failed(&thrown))?,
                self.tokens,
            ),
        };
        Ok(self.mask.insert(mask))
    }

    fn accept(&mut self, token: u32) -> Result<(), Error> {
        self.mask = None;
        self.js.accept(token).map_err(|thrown| failed(&thrown))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.js.free();
    }
}

fn failed(thrown: &JsValue) -> Error {
    let message = thrown.dyn_ref::<JsError>().map(|error| String::from(error.message()));
    Error::Form { reason: message.unwrap_or_else(|| format!("{thrown:?}")) }
}

#[wasm_bindgen]
impl Model {
    /// What the module of grammars needs of the tokenizer, as bytes.
    ///
    /// # Errors
    ///
    /// If the model has no tokenizer.
    #[wasm_bindgen(js_name = tokenTable)]
    pub fn token_table(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.0.token_table().map_err(|error| to_js(&error))?.to_bytes())
    }
}

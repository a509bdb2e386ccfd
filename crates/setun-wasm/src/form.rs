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

    #[wasm_bindgen(method, catch)]
    fn begin(this: &JsForm) -> Result<JsState, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn free(this: &JsForm) -> Result<(), JsValue>;

    /// The state of one text: freed with it.
    type JsState;

    #[wasm_bindgen(method, catch)]
    fn mask(this: &JsState) -> Result<Vec<u32>, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn accept(this: &JsState, token: u32) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    fn free(this: &JsState) -> Result<(), JsValue>;
}

/// The form that an option names; none where it is not given.
pub(crate) fn form(given: JsValue) -> Option<SharedForm> {
    (!given.is_undefined()).then(|| SharedForm::new(Compiled(given.unchecked_into())))
}

struct Compiled(JsForm);

impl Form for Compiled {
    fn begin(&self) -> Box<dyn FormState> {
        let js = self.0.begin().map_err(|thrown| reason(&thrown));
        Box::new(State { js, tokens: self.0.tokens(), mask: None })
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let _ = self.0.free(); // a module that has failed keeps it
    }
}

struct State {
    js: Result<JsState, String>, // or why there is none
    tokens: usize,
    mask: Option<TokenMask>, // of the next token, once it is made
}

impl FormState for State {
    fn prepare(&mut self) {
        let _ = self.mask(); // which keeps it, and an error comes again
    }

    fn mask(&mut self) -> Result<&TokenMask, Error> {
        let mask = if let Some(mask) = self.mask.take() {
            mask
        } else {
            let words = self.js()?.mask().map_err(|thrown| failed(reason(&thrown)))?;
            TokenMask::from_words(&words, self.tokens)
        };
        Ok(self.mask.insert(mask))
    }

    fn accept(&mut self, token: u32) -> Result<(), Error> {
        self.mask = None;
        self.js()?.accept(token).map_err(|thrown| failed(reason(&thrown)))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = self.js.as_ref().map(JsState::free); // as above
    }
}

impl State {
    fn js(&self) -> Result<&JsState, Error> {
        self.js.as_ref().map_err(|why| failed(why.clone()))
    }
}

fn failed(reason: String) -> Error {
    Error::Form { reason }
}

fn reason(thrown: &JsValue) -> String {
    let message = thrown.dyn_ref::<JsError>().map(|error| String::from(error.message()));
    message.unwrap_or_else(|| format!("{thrown:?}"))
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

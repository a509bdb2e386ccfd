//! Constraints of the grammar module: JavaScript passes its `Grammar` objects.

use js_sys::Error as JsError;
use setun::{Constraint, ConstraintState, EngineError, SharedConstraint, text::TokenMask};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// A compiled grammar, freed with the last generation that uses it.
    type JsGrammar;

    #[wasm_bindgen(method, getter)]
    fn tokens(this: &JsGrammar) -> usize;

    #[wasm_bindgen(method, getter)]
    fn warnings(this: &JsGrammar) -> Option<Vec<String>>;

    #[wasm_bindgen(method, getter, js_name = isBesideTools)]
    fn is_beside_tools(this: &JsGrammar) -> Option<bool>;

    #[wasm_bindgen(method, catch)]
    fn begin(this: &JsGrammar) -> Result<JsState, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn free(this: &JsGrammar) -> Result<(), JsValue>;

    /// The state of one sequence, freed with it.
    type JsState;

    #[wasm_bindgen(method, catch)]
    fn mask(this: &JsState) -> Result<Vec<u32>, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn accept(this: &JsState, token: u32) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = setTokensLeft)]
    fn set_tokens_left(this: &JsState, tokens: u32) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = mayEnd)]
    fn may_end(this: &JsState) -> Result<bool, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn free(this: &JsState) -> Result<(), JsValue>;
}

/// The constraint of the option `grammar`, if it is given.
pub(crate) fn constraint(given: JsValue) -> Option<SharedConstraint> {
    (!given.is_undefined()).then(|| SharedConstraint::new(Grammar(given.unchecked_into())))
}

struct Grammar(JsGrammar);

impl Constraint for Grammar {
    fn begin(&self) -> Box<dyn ConstraintState> {
        let js = self.0.begin().map_err(|thrown| reason(&thrown));
        Box::new(State { js, tokens: self.0.tokens(), mask: None })
    }

    fn warnings(&self) -> Vec<String> {
        self.0.warnings().unwrap_or_default()
    }

    fn is_beside_tools(&self) -> bool {
        self.0.is_beside_tools().unwrap_or_default()
    }
}

impl Drop for Grammar {
    fn drop(&mut self) {
        let _ = self.0.free(); // fails only if the module has failed
    }
}

struct State {
    js: Result<JsState, String>, // or the reason of its failure
    tokens: usize,
    mask: Option<TokenMask>, // of the next token, once computed
}

impl ConstraintState for State {
    fn prepare(&mut self) {
        let _ = self.mask(); // cached; an error is returned again
    }

    fn mask(&mut self) -> Result<&TokenMask, EngineError> {
        let mask = if let Some(mask) = self.mask.take() {
            mask
        } else {
            let words = self.js()?.mask().map_err(|thrown| failed(reason(&thrown)))?;
            TokenMask::from_words(&words, self.tokens)
        };
        Ok(self.mask.insert(mask))
    }

    fn accept(&mut self, token: u32) -> Result<(), EngineError> {
        self.mask = None;
        self.js()?.accept(token).map_err(|thrown| failed(reason(&thrown)))
    }

    fn set_tokens_left(&mut self, tokens: usize) {
        if let Ok(js) = &self.js {
            self.mask = None;
            let _ = js.set_tokens_left(u32::try_from(tokens).unwrap_or(u32::MAX)); // a mask fails, too
        }
    }

    fn may_end(&mut self) -> Result<bool, EngineError> {
        self.js()?.may_end().map_err(|thrown| failed(reason(&thrown)))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = self.js.as_ref().map(JsState::free); // as above
    }
}

impl State {
    fn js(&self) -> Result<&JsState, EngineError> {
        self.js.as_ref().map_err(|why| failed(why.clone()))
    }
}

fn failed(reason: String) -> EngineError {
    EngineError::Constraint { reason }
}

fn reason(thrown: &JsValue) -> String {
    let message = thrown.dyn_ref::<JsError>().map(|error| String::from(error.message()));
    message.unwrap_or_else(|| format!("{thrown:?}"))
}

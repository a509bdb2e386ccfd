//! `Grammar`: a grammar, compiled for a vocabulary.

use setun_grammar::{GrammarLimits, GrammarSpec};
use wasm_bindgen::prelude::*;

use crate::{
    constraint::Constraint,
    error::{bad_option, to_js},
    vocabulary::Vocabulary,
};

/// A grammar, compiled for a model's vocabulary.
#[wasm_bindgen]
pub struct Grammar(setun_grammar::Grammar);

#[wasm_bindgen]
impl Grammar {
    /// Compiles a grammar. `kind` is `json_schema`, with the schema as JSON; `json_object`, with an
    /// empty text; `regex`, `lark` or `gbnf`, with the expression or grammar; or `choice`, with a
    /// JSON array of strings.
    ///
    /// # Errors
    ///
    /// If the grammar cannot be compiled.
    #[wasm_bindgen(constructor)]
    pub fn new(vocabulary: &Vocabulary, kind: &str, text: String) -> Result<Grammar, JsValue> {
        let spec = match kind {
            "json_schema" => GrammarSpec::JsonSchema(json(kind, &text)?),
            "json_object" => GrammarSpec::JsonObject,
            "regex" => GrammarSpec::Regex(text),
            "choice" => GrammarSpec::Choice(choices(&text)?),
            "lark" => GrammarSpec::Lark(text),
            "gbnf" => GrammarSpec::Gbnf(text),
            _ => return Err(bad_option(&format!("unknown kind of grammar `{kind}`"))),
        };
        let grammar = setun_grammar::Grammar::new(&spec, &vocabulary.0, &GrammarLimits::default());
        grammar.map(Self).map_err(|error| to_js(&error))
    }

    /// Another handle to the same grammar, freed on its own.
    #[must_use]
    pub fn share(&self) -> Grammar {
        Self(self.0.clone())
    }

    /// Size of the vocabulary.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.0.vocabulary().tokens()
    }

    /// The state of a sequence before its first token.
    #[must_use]
    pub fn begin(&self) -> Constraint {
        Constraint(setun_grammar::Constraint::new(&self.0))
    }
}

fn choices(text: &str) -> Result<Vec<String>, JsValue> {
    let text_of = |choice: serde_json::Value| choice.as_str().map(str::to_owned);
    let choices = match json("choice", text)? {
        serde_json::Value::Array(choices) => choices.into_iter().map(text_of).collect(),
        _ => None,
    };
    choices.ok_or_else(|| bad_option("`choices`: expected an array of strings"))
}

fn json(kind: &str, text: &str) -> Result<serde_json::Value, JsValue> {
    serde_json::from_str(text).map_err(|error| bad_option(&format!("`{kind}` is no JSON: {error}")))
}

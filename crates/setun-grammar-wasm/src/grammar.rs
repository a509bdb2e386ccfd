//! `Grammar`: a grammar, compiled for a vocabulary.

use std::time::Duration;

use setun_grammar::{GrammarLimits, GrammarSpec, Interrupt, ToolGrammar};
use setun_text::{ToolChoice, ToolFormat};
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
    /// empty text; `regex`, `lark` or `gbnf`, with the expression or grammar; `choice`, with a JSON
    /// array of strings; or `tools`, with the JSON object `{tools, toolChoice, parallelToolCalls,
    /// format}`. `deadline` is the time that it may take, in milliseconds.
    ///
    /// # Errors
    ///
    /// If the grammar cannot be compiled, or not in its time.
    #[wasm_bindgen(constructor)]
    pub fn new(
        vocabulary: &Vocabulary,
        kind: &str,
        text: String,
        deadline: Option<f64>,
    ) -> Result<Grammar, JsValue> {
        let spec = match kind {
            "json_schema" => GrammarSpec::json_schema(&text).map_err(|error| to_js(&error))?,
            "json_object" => GrammarSpec::JsonObject,
            "regex" => GrammarSpec::Regex(text),
            "choice" => GrammarSpec::Choice(choices(&text)?),
            "lark" => GrammarSpec::Lark(text),
            "gbnf" => GrammarSpec::Gbnf(text),
            "tools" => GrammarSpec::Tools(tools(&text)?),
            _ => return Err(bad_option(&format!("unknown kind of grammar `{kind}`"))),
        };
        let interrupt = deadline.map_or_else(Interrupt::new, within);
        let limits = GrammarLimits::default();
        let grammar = setun_grammar::Grammar::compile(&spec, &vocabulary.0, &limits, &interrupt);
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time beyond the clock's range is none"
)]
fn within(milliseconds: f64) -> Interrupt {
    Interrupt::new().within(Duration::from_millis(milliseconds as u64))
}

fn tools(text: &str) -> Result<ToolGrammar, JsValue> {
    let read = ToolChoice::read_request(text);
    let (tools, choice, request) = read.map_err(|error| bad_option(&error.to_string()))?;
    let format = request["format"].as_str().and_then(ToolFormat::named);
    let format = format.ok_or_else(|| bad_option("unknown format of tool calls"))?;
    Ok(ToolGrammar { tools, format, choice, parallel: request["parallelToolCalls"] != false })
}

fn choices(text: &str) -> Result<Vec<String>, JsValue> {
    let text_of = |choice: serde_json::Value| choice.as_str().map(str::to_owned);
    let not_json = |error| bad_option(&format!("`choice` is no JSON: {error}"));
    let choices = match serde_json::from_str(text).map_err(not_json)? {
        serde_json::Value::Array(choices) => choices.into_iter().map(text_of).collect(),
        _ => None,
    };
    choices.ok_or_else(|| bad_option("`choices`: expected an array of strings"))
}

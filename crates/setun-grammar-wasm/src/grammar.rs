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
    /// format, text}`, whose `text` is `{kind, text}` of answers without calls. `deadline` is the time that it may take, in milliseconds.
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
        let spec = spec(kind, text)?;
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

    /// The parts of tools' schemas that are left free, in sentences.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.0.notes().iter().map(ToString::to_string).collect()
    }

    /// Whether it is of tools and of a format for answers without calls.
    #[wasm_bindgen(getter, js_name = isBesideTools)]
    #[must_use]
    pub fn is_beside_tools(&self) -> bool {
        matches!(self.0.spec(), GrammarSpec::Tools(tools) if tools.text.is_some())
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

fn spec(kind: &str, text: String) -> Result<GrammarSpec, JsValue> {
    Ok(match kind {
        "json_schema" => GrammarSpec::json_schema(&text).map_err(|error| to_js(&error))?,
        "json_object" => GrammarSpec::JsonObject,
        "regex" => GrammarSpec::Regex(text),
        "choice" => GrammarSpec::Choice(choices(&text)?),
        "lark" => GrammarSpec::Lark(text),
        "gbnf" => GrammarSpec::Gbnf(text),
        "tools" => GrammarSpec::Tools(tools(&text)?),
        _ => return Err(bad_option(&format!("unknown kind of grammar `{kind}`"))),
    })
}

fn tools(text: &str) -> Result<ToolGrammar, JsValue> {
    let read = ToolChoice::read_request(text);
    let (tools, choice, request) = read.map_err(|error| bad_option(&error.words_of_tools()))?;
    let format = request["format"].as_str().and_then(ToolFormat::named);
    let format = format.ok_or_else(|| bad_option("unknown format of tool calls"))?;
    let word = |name: &str| request["text"][name].as_str();
    let text = match (word("kind"), word("text")) {
        (Some(kind), Some(text)) => Some(Box::new(spec(kind, text.to_owned())?)),
        _ => None,
    };
    let parallel = request["parallelToolCalls"] != false;
    Ok(ToolGrammar { tools, format, choice, parallel, text })
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

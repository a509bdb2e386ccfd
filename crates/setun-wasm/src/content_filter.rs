//! Content filters from JavaScript objects.

use serde::Deserialize;
use setun::{
    SharedFilter,
    text::{FilterAction, FilterPattern, FilterRule, PatternFilter},
};
use wasm_bindgen::JsValue;

use crate::error::bad_option;

/// A word with its replacement; without one the word ends the text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    word: String,
    whole_word: Option<bool>,
    ignore_case: Option<bool>,
    replace: Option<String>,
}

/// A filter of `rules`.
pub(crate) fn filter(rules: Vec<Rule>) -> Result<SharedFilter, JsValue> {
    let filter = PatternFilter::new(rules.into_iter().map(FilterRule::from));
    let filter = filter.map_err(|error| bad_option(&format!("option `filter`: {error}")))?;
    Ok(SharedFilter::new(filter))
}

impl From<Rule> for FilterRule {
    fn from(rule: Rule) -> Self {
        let pattern = FilterPattern::Word {
            text: rule.word,
            whole: rule.whole_word.unwrap_or(true),
            ignore_case: rule.ignore_case.unwrap_or(true),
        };
        Self { pattern, action: rule.replace.map_or(FilterAction::Stop, FilterAction::Replace) }
    }
}

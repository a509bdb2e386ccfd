//! Content filters from JavaScript objects.

use serde::Deserialize;
use setun::{
    SharedFilter,
    text::{FilterAction, FilterPattern, FilterRule, PatternFilter},
};
use wasm_bindgen::JsValue;

use crate::error::bad_option;

/// A word or an expression with its replacement; without one it ends the text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    word: Option<String>,
    regex: Option<String>,
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
        let pattern = match rule.regex {
            Some(regex) => FilterPattern::Regex(regex),
            None => FilterPattern::Word {
                text: rule.word.unwrap_or_default(),
                whole: rule.whole_word.unwrap_or(true),
                ignore_case: rule.ignore_case.unwrap_or(true),
            },
        };
        Self { pattern, action: rule.replace.map_or(FilterAction::Stop, FilterAction::Replace) }
    }
}

//! What is not to be shown.

use clap::{Args, builder::NonEmptyStringValueParser};
use setun::{
    SharedFilter,
    text::{FilterAction, FilterPattern, FilterRule, PatternFilter},
};

use crate::error::CliError;

/// What is not to be shown of a text. Words go before expressions.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is not to be shown")]
pub(crate) struct ContentFilterArgs {
    /// A word, in capitals or not; given for each
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    filter_word: Vec<String>,

    /// What a regular expression matches; given for each
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    filter_regex: Vec<String>,

    /// Words count inside longer words, too
    #[arg(long)]
    filter_anywhere: bool,

    /// What is done about it: `stop` ends the text before it, `replace:TEXT` shows this instead
    #[arg(long, value_name = "ACTION", value_parser = action, default_value = "replace:***")]
    filter_action: FilterAction,
}

impl ContentFilterArgs {
    /// The filter, if one is asked for.
    ///
    /// # Errors
    ///
    /// If an expression is none: the error has its place.
    pub(crate) fn filter(&self) -> Result<Option<SharedFilter>, CliError> {
        let word = |text: &String| FilterPattern::Word {
            text: text.clone(),
            whole: !self.filter_anywhere,
            ignore_case: true,
        };
        let words = self.filter_word.iter().map(word);
        let patterns = words.chain(self.filter_regex.iter().cloned().map(FilterPattern::Regex));
        let rule = |pattern| FilterRule { pattern, action: self.filter_action.clone() };
        let rules: Vec<_> = patterns.map(rule).collect();
        if rules.is_empty() {
            return Ok(None);
        }
        Ok(Some(SharedFilter::new(PatternFilter::new(rules)?)))
    }
}

/// Reads what to do.
fn action(text: &str) -> Result<FilterAction, String> {
    match text.split_once(':') {
        Some(("replace", text)) => Ok(FilterAction::Replace(text.to_owned())),
        None if text == "stop" => Ok(FilterAction::Stop),
        _ => Err("expected `stop` or `replace:TEXT`".to_owned()),
    }
}

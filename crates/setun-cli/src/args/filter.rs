//! Options of the content filters.

use clap::{ArgGroup, Args, builder::NonEmptyStringValueParser};
use setun::{
    SharedFilter,
    text::{FilterAction, FilterPattern, FilterRule, PatternFilter},
};

use crate::error::CliError;

/// Content filters. Words go before expressions.
#[derive(Args, Debug)]
#[command(next_help_heading = "Content filters")]
#[command(group = ArgGroup::new("patterns").args(["words", "expressions"]).multiple(true))]
pub(crate) struct ContentFilterArgs {
    /// Word to filter, in upper or lower case; repeatable
    #[arg(long = "filter-word", value_name = "WORD", allow_hyphen_values = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    words: Vec<String>,

    /// Regular expression to filter; repeatable
    #[arg(long = "filter-regex", value_name = "EXPRESSION", allow_hyphen_values = true)]
    expressions: Vec<String>,

    /// Also match words inside longer words
    #[arg(long = "filter-anywhere", requires = "words")]
    anywhere: bool,

    /// Action on a match: `stop` ends the text before it, `replace:TEXT` replaces it
    #[arg(long = "filter-action", value_name = "ACTION", value_parser = action)]
    #[arg(default_value = "replace:***", requires = "patterns")]
    action: FilterAction,
}

impl ContentFilterArgs {
    /// The filter, if one is requested.
    ///
    /// # Errors
    ///
    /// If an expression is none: the error has its place.
    pub(crate) fn filter(&self) -> Result<Option<SharedFilter>, CliError> {
        let word = |text: &String| FilterPattern::Word {
            text: text.clone(),
            whole: !self.anywhere,
            ignore_case: true,
        };
        let words = self.words.iter().map(word);
        let patterns = words.chain(self.expressions.iter().cloned().map(FilterPattern::Regex));
        let rule = |pattern| FilterRule { pattern, action: self.action.clone() };
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

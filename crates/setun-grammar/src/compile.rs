//! The phases of a compilation, each of which ends early if it is interrupted.

use std::sync::Arc;

use llguidance::api::{GrammarInit, TopLevelGrammar};
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{Logger, TokenParser, panic_utils};
use serde_json::json;

use crate::expressions::{check_terminals, check_text};
use crate::failure::{failure, first_paragraph};
use crate::limits::at_most;
use crate::never_ends::never_ends;
use crate::{GrammarError, GrammarLimits, GrammarSpec, Interrupt, Vocabulary, gbnf, lark, schema};

/// The most symbols that the parser numbers.
const MAX_SYMBOLS: usize = 65_000;

/// What is compiled, for what, and within which bounds.
#[derive(Clone)]
pub(crate) struct Compilation {
    pub(crate) spec: GrammarSpec,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) limits: GrammarLimits,
    pub(crate) interrupt: Interrupt,
}

impl Compilation {
    /// The parser before the first token, whose first mask is within its limits.
    pub(crate) fn run(&self) -> Result<TokenParser, GrammarError> {
        self.interrupt.check()?;
        let (source, refused) = source(&self.spec, &self.limits)?;
        let refuse = |words: &str| compile_error(words, refused);
        self.interrupt.check()?;
        let factory = self.vocabulary.factory();
        let limits = self.limits.for_parser();
        let environment = Some(factory.tok_env().clone());
        let init = GrammarInit::Serialized(source);
        let (grammar, terminals) =
            attempt(|| init.to_internal(environment, limits.clone()), refuse)?;
        self.interrupt.check()?;
        check_terminals(&terminals, &self.limits, &limits)?;
        self.interrupt.check()?;
        let symbols = attempt(|| Ok(grammar.optimize().num_symbols()), refuse)?;
        at_most("symbols after simplification", MAX_SYMBOLS, symbols)?;
        let init = GrammarInit::Internal(grammar, terminals);
        let parser = || {
            let (logger, capabilities) = (Logger::new(0, 0), InferenceCapabilities::default());
            let mut parser =
                factory.create_parser_from_init_ext(init, logger, capabilities, limits)?;
            parser.start_without_prompt();
            parser.check_stop()?;
            Ok(parser)
        };
        let parser = attempt(parser, refuse)?;
        self.interrupt.check()?;
        if let Some(rule) = never_ends(parser.parser.grammar()) {
            return Err(GrammarError::NeverEnds { rule });
        }
        check_first_mask(&parser)?;
        self.interrupt.check()?;
        Ok(parser)
    }
}

/// Refuses a grammar that would fail before the first token.
fn check_first_mask(parser: &TokenParser) -> Result<(), GrammarError> {
    let mut parser = parser.deep_clone(); // what it finds out is not for sequences
    if parser.stopped() {
        return Ok(());
    }
    let mask = std::panic::AssertUnwindSafe(|| parser.compute_mask().map(drop));
    let asked = panic_utils::catch_unwind(mask);
    asked.map_err(|error| failure(&parser, 0, &error.to_string()))
}

/// Asks the parser. Natively a panic in it becomes an error.
fn attempt<T>(
    question: impl FnOnce() -> anyhow::Result<T>,
    refuse: impl FnOnce(&str) -> GrammarError,
) -> Result<T, GrammarError> {
    panic_utils::catch_unwind(std::panic::AssertUnwindSafe(question))
        .map_err(|error| refuse(&error.to_string()))
}

/// Makes an error of the compiler's words.
type Refusal = fn(String) -> GrammarError;

/// A form in the parser's notation, within its bounds, and what its refusal is called.
fn source(
    spec: &GrammarSpec,
    limits: &GrammarLimits,
) -> Result<(TopLevelGrammar, Refusal), GrammarError> {
    Ok(match spec {
        GrammarSpec::JsonSchema(schema) => {
            (TopLevelGrammar::from_json_schema(schema::prepare(schema, limits)?), schema_refusal)
        }
        GrammarSpec::JsonObject => {
            let object = schema::prepare(&json!({"type": "object"}), limits)?;
            (TopLevelGrammar::from_json_schema(object), schema_refusal)
        }
        GrammarSpec::Regex(expression) => {
            check_text(expression, limits)?;
            (TopLevelGrammar::from_regex(expression), |reason| GrammarError::Regex { reason })
        }
        GrammarSpec::Choice(choices) if choices.is_empty() => return Err(GrammarError::NoChoice),
        GrammarSpec::Choice(choices) => {
            (TopLevelGrammar::from_lark(lark::choice(choices)), lark_refusal)
        }
        GrammarSpec::Lark(text) => {
            lark::check(text, limits)?;
            (TopLevelGrammar::from_lark(text.clone()), lark_refusal)
        }
        GrammarSpec::Gbnf(text) => {
            let text = gbnf::to_lark(text, limits)?;
            lark::check(&text, limits)?;
            (TopLevelGrammar::from_lark(text), lark_refusal)
        }
    })
}

fn schema_refusal(reason: String) -> GrammarError {
    if reason.starts_with("oneOf constraints are not supported") {
        let reason = "`oneOf` is only supported where its parts differ by type, by a constant, or \
            by a required property that does; `anyOf` may do";
        return GrammarError::Schema { reason: reason.to_owned() };
    }
    GrammarError::Schema { reason }
}

fn lark_refusal(reason: String) -> GrammarError {
    GrammarError::Lark { reason }
}

fn compile_error(words: &str, refused: Refusal) -> GrammarError {
    let reason = first_paragraph(words);
    let limits = ["too large", "too big", "too complex", "fuel", "limit"];
    if limits.iter().any(|limit| reason.contains(limit)) {
        GrammarError::TooComplex { reason }
    } else {
        refused(reason)
    }
}

//! A form, compiled for a vocabulary.

use std::fmt;
use std::sync::Arc;

use llguidance::api::{GrammarInit, TopLevelGrammar};
use llguidance::{Logger, TokenParser, panic_utils};
use serde_json::json;
use setun_text::TokenMask;

use crate::never_ends::never_ends;
use crate::{GrammarError, GrammarLimits, GrammarSpec, Vocabulary, gbnf, lark, schema};

/// A form, compiled for a vocabulary. Cloning shares it; [`Constraint`](crate::Constraint) is the
/// state of a sequence that follows it.
#[derive(Clone)]
pub struct Grammar {
    compiled: Arc<Compiled>,
}

struct Compiled {
    start: TokenParser,
    vocabulary: Arc<Vocabulary>,
    /// Whether its texts are JSON, whose numbers are kept in range.
    is_json: bool,
}

impl Grammar {
    /// Compiles a form. What cannot be followed, or has no text that ends, fails here, before
    /// the first token.
    pub fn new(
        spec: &GrammarSpec,
        vocabulary: &Arc<Vocabulary>,
        limits: &GrammarLimits,
    ) -> Result<Self, GrammarError> {
        let (source, refused) = source(spec)?;
        let factory = vocabulary.factory();
        let compile = || {
            let mut parser = factory.create_parser_from_init_ext(
                GrammarInit::Serialized(source),
                Logger::new(0, 0),
                llguidance::toktrie::InferenceCapabilities::default(),
                limits.for_parser(),
            )?;
            parser.start_without_prompt();
            parser.check_stop()?;
            Ok(parser)
        };
        let start = panic_utils::catch_unwind(std::panic::AssertUnwindSafe(compile))
            .map_err(|error| compile_error(&error.to_string(), refused))?;
        if let Some(rule) = never_ends(start.parser.grammar()) {
            return Err(GrammarError::NeverEnds { rule });
        }
        let vocabulary = Arc::clone(vocabulary);
        let is_json = matches!(spec, GrammarSpec::JsonSchema(_) | GrammarSpec::JsonObject);
        Ok(Self { compiled: Arc::new(Compiled { start, vocabulary, is_json }) })
    }

    /// The parser before the first token, for one sequence alone.
    ///
    /// What it finds out about automata stays with it: were it shared, it would depend on other
    /// sequences when a limit is reached.
    pub(crate) fn parser(&self) -> TokenParser {
        self.compiled.start.deep_clone()
    }

    /// The vocabulary that it was compiled for.
    #[must_use]
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.compiled.vocabulary
    }

    pub(crate) fn is_json(&self) -> bool {
        self.compiled.is_json
    }

    pub(crate) fn end_tokens(&self) -> &TokenMask {
        self.compiled.vocabulary.end_tokens()
    }
}

/// Makes an error of the compiler's words.
type Refusal = fn(String) -> GrammarError;

/// A form in the parser's notation, and what its refusal is called.
fn source(spec: &GrammarSpec) -> Result<(TopLevelGrammar, Refusal), GrammarError> {
    Ok(match spec {
        GrammarSpec::JsonSchema(schema) => {
            (TopLevelGrammar::from_json_schema(schema::prepare(schema)?), schema_refusal)
        }
        GrammarSpec::JsonObject => {
            let object = schema::prepare(&json!({"type": "object"}))?;
            (TopLevelGrammar::from_json_schema(object), schema_refusal)
        }
        GrammarSpec::Regex(expression) => {
            (TopLevelGrammar::from_regex(expression), |reason| GrammarError::Regex { reason })
        }
        GrammarSpec::Choice(choices) if choices.is_empty() => return Err(GrammarError::NoChoice),
        GrammarSpec::Choice(choices) => {
            (TopLevelGrammar::from_lark(lark::choice(choices)), lark_refusal)
        }
        GrammarSpec::Lark(text) => (TopLevelGrammar::from_lark(text.clone()), lark_refusal),
        GrammarSpec::Gbnf(text) => (TopLevelGrammar::from_lark(gbnf::to_lark(text)?), lark_refusal),
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
    let limits = ["too large", "too complex", "fuel", "limit"];
    if limits.iter().any(|limit| reason.contains(limit)) {
        GrammarError::TooComplex { reason }
    } else {
        refused(reason)
    }
}

/// What the parser says, without the traces and states that it adds.
pub(crate) fn first_paragraph(words: &str) -> String {
    let lines = words.lines().take_while(|line| !line.starts_with('<'));
    lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

impl fmt::Debug for Grammar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Grammar")
            .field("vocabulary", self.vocabulary())
            .finish_non_exhaustive()
    }
}

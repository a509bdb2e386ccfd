//! The phases of a compilation, each of which ends early if it is interrupted.

use std::sync::Arc;

use llguidance::api::{GrammarInit, GrammarWithLexer, TopLevelGrammar};
use llguidance::earley::CGrammar;
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{Logger, TokenParser};
use serde_json::{Value, json};
use setun_text::ArgumentForm;

use crate::closing::{Closing, Document};
use crate::expressions::{check_terminals, check_text};
use crate::failure::{caught, failure, first_paragraph};
use crate::limits::at_most;
use crate::never_ends::never_ends;
use crate::tool_lark::{Arguments, FORMAT};
use crate::tool_note::ToolNote;
use crate::{
    GrammarError, GrammarLimits, GrammarSpec, Interrupt, ToolGrammar, Vocabulary, gbnf, lark,
    schema,
};

/// The most symbols that the parser numbers.
const MAX_SYMBOLS: usize = 65_000;

/// A form before the first token.
pub(crate) struct Compiled {
    pub(crate) parser: TokenParser,
    pub(crate) notes: Vec<ToolNote>,
    /// How its texts end, where they are JSON or calls of tools.
    pub(crate) closing: Option<Arc<Closing>>,
}

impl Compiled {
    fn new(parser: TokenParser, notes: Vec<ToolNote>) -> Self {
        Self { parser, notes, closing: None }
    }
}

/// What is compiled, for what, and within which bounds.
pub(crate) struct Compilation<'a> {
    pub(crate) spec: &'a GrammarSpec,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) limits: &'a GrammarLimits,
    pub(crate) interrupt: &'a Interrupt,
}

impl Compilation<'_> {
    /// The form before the first token, whose first mask is within its limits, and of JSON how its
    /// texts end. Natively a panic in it becomes an error.
    pub(crate) fn run(&self) -> Result<Compiled, GrammarError> {
        let mut compiled = self.compiled()?;
        if self.spec.is_json() {
            let document = self.document(compiled.parser.parser.grammar());
            compiled.closing = document.map(Closing::of_document).map(Arc::new);
            self.interrupt.check()?;
        }
        Ok(compiled)
    }

    fn document(&self, grammar: &CGrammar) -> Option<Document> {
        let (vocabulary, limits) = (self.vocabulary, self.limits.for_parser());
        caught(|| Ok(Document::new(grammar, vocabulary, &limits, self.interrupt))).ok().flatten()
    }

    /// How calls end. Where an answer without calls reads the same parts it is left alone.
    fn closing(&self, tools: &ToolGrammar, all: &[Arguments<'_>]) -> Option<Arc<Closing>> {
        let is_json = tools.format.arguments == ArgumentForm::Json;
        if cfg!(target_arch = "wasm32") || tools.is_joint() || !is_json {
            return None;
        }
        let documents = all.iter().map(|arguments| self.document_of(arguments.schema().clone()));
        let documents: Vec<_> = documents.collect();
        let format = tools.text().filter(|format| format.is_json());
        let format = format.and_then(|format| source(format, self.limits).ok());
        let format = format.and_then(|(format, ..)| self.grammar_of(format));
        let format = format.and_then(|format| self.document(&format));
        let names: Vec<&str> = all.iter().map(Arguments::name).collect();
        Some(Arc::new(Closing::of_tools(tools, &names, documents, format, self.vocabulary)))
    }

    fn document_of(&self, schema: Value) -> Option<Document> {
        self.document(&self.grammar_of(TopLevelGrammar::from_json_schema(schema))?)
    }

    /// The rules of a grammar that has been compiled as a part of another.
    fn grammar_of(&self, source: TopLevelGrammar) -> Option<CGrammar> {
        let environment = Some(self.vocabulary.factory().tok_env().clone());
        let limits = self.limits.for_parser();
        let compiled = caught(|| {
            let init = GrammarInit::Serialized(source);
            let (grammar, terminals) = init.to_internal(environment, limits.clone())?;
            let grammar = grammar.optimize();
            anyhow::ensure!(grammar.num_symbols() <= MAX_SYMBOLS);
            grammar.compile(terminals, &limits)
        });
        self.interrupt.check().ok()?;
        compiled.ok()
    }

    fn compiled(&self) -> Result<Compiled, GrammarError> {
        self.interrupt.check()?;
        if let GrammarSpec::Tools(tools) = self.spec {
            return self.tools(tools);
        }
        let (source, faster, refused) = source(self.spec, self.limits)?;
        self.interrupt.check()?;
        if let Some(faster) = faster {
            // Only the other notation says what is wrong, and where.
            if let Ok(parser) = self.guarded(faster, refused) {
                return Ok(Compiled::new(parser, vec![]));
            }
            self.interrupt.check()?;
        }
        Ok(Compiled::new(self.guarded(source, refused)?, vec![]))
    }

    /// Calls of tools. Where schemas cannot be compiled, those of tools that are not strict are
    /// loosened as far as it takes.
    fn tools(&self, tools: &ToolGrammar) -> Result<Compiled, GrammarError> {
        let (mut all, mut notes) = tools.arguments(self.limits)?;
        let error = match self.calls(tools, &all) {
            Ok(parser) => {
                let closing = self.closing(tools, &all);
                return Ok(Compiled { closing, ..Compiled::new(parser, notes) });
            }
            Err(error) => error,
        };
        let mut is_loosened = false;
        for arguments in &mut all {
            let Err(reason) = self.alone(arguments) else { continue };
            if !is_of_schema(&reason) {
                return Err(reason);
            }
            is_loosened = true;
            notes.push(if arguments.take_one_of_as_any_of() && self.alone(arguments).is_ok() {
                arguments.note(reason)
            } else {
                arguments.free(reason, self.limits)?
            });
        }
        if !is_loosened {
            return Err(error);
        }
        let parser = self.calls(tools, &all)?;
        let closing = self.closing(tools, &all);
        Ok(Compiled { closing, ..Compiled::new(parser, notes) })
    }

    fn calls(
        &self,
        tools: &ToolGrammar,
        all: &[Arguments<'_>],
    ) -> Result<TokenParser, GrammarError> {
        let text = tools.to_lark(self.vocabulary, all);
        lark::check(&text, self.limits)?;
        let mut calls = TopLevelGrammar::from_lark(text);
        let Some(format) = tools.text() else { return self.guarded(calls, schema_refusal) };
        let (source, faster, refused) = source(format, self.limits)?;
        let named = |source: TopLevelGrammar| {
            let name = Some(FORMAT.to_owned());
            source
                .grammars
                .into_iter()
                .map(move |grammar| GrammarWithLexer { name: name.clone(), ..grammar })
        };
        if let Some(faster) = faster {
            let mut calls = calls.clone();
            calls.grammars.extend(named(faster));
            if let Ok(parser) = self.guarded(calls, refused) {
                return Ok(parser);
            }
        }
        calls.grammars.extend(named(source));
        self.guarded(calls, schema_refusal)
    }

    /// Whether the arguments of a tool can be compiled, by themselves.
    fn alone(&self, arguments: &Arguments<'_>) -> Result<(), GrammarError> {
        self.interrupt.check()?;
        let text = arguments.to_lark();
        lark::check(&text, self.limits)?;
        self.guarded(TopLevelGrammar::from_lark(text), schema_refusal).map(drop)
    }

    fn guarded(
        &self,
        source: TopLevelGrammar,
        refused: Refusal,
    ) -> Result<TokenParser, GrammarError> {
        caught(|| Ok(self.parser(source, refused)))
            .unwrap_or_else(|error| Err(compile_error(&error, refused)))
    }

    fn parser(
        &self,
        source: TopLevelGrammar,
        refused: Refusal,
    ) -> Result<TokenParser, GrammarError> {
        let refuse = |error| compile_error(&error, refused);
        let factory = self.vocabulary.factory();
        let limits = self.limits.for_parser();
        let environment = Some(factory.tok_env().clone());
        let init = GrammarInit::Serialized(source);
        let compiled = init.to_internal(environment, limits.clone());
        let (grammar, terminals) = compiled.map_err(refuse)?;
        self.interrupt.check()?;
        check_terminals(&terminals, self.limits, &limits)?;
        self.interrupt.check()?;
        let symbols = grammar.optimize().num_symbols();
        at_most("symbols after simplification", MAX_SYMBOLS, symbols)?;
        let init = GrammarInit::Internal(grammar, terminals);
        let (logger, capabilities) = (Logger::new(0, 0), InferenceCapabilities::default());
        let parser = factory.create_parser_from_init_ext(init, logger, capabilities, limits);
        let mut parser = parser.map_err(refuse)?;
        parser.start_without_prompt();
        parser.check_stop().map_err(refuse)?;
        self.interrupt.check()?;
        if let Some(rule) = never_ends(parser.parser.grammar()) {
            return Err(GrammarError::NeverEnds { rule });
        }
        check_first_mask(&parser)?;
        self.interrupt.check()?;
        Ok(parser)
    }
}

/// Whether an error is of what a schema says, not of how it was compiled.
fn is_of_schema(error: &GrammarError) -> bool {
    use GrammarError::{NeverEnds, NoTokenFits, Parser, Schema, TooComplex};
    matches!(
        error,
        Schema { .. } | TooComplex { .. } | NeverEnds { .. } | NoTokenFits { .. } | Parser { .. }
    )
}

/// Refuses a grammar that would fail before the first token.
fn check_first_mask(parser: &TokenParser) -> Result<(), GrammarError> {
    let mut parser = parser.deep_clone(); // what it finds out is not for sequences
    if parser.stopped() {
        return Ok(());
    }
    let mask = parser.compute_mask().map(drop);
    mask.map_err(|error| failure(&parser, 0, &error.to_string()))
}

/// Makes an error of the compiler's words.
type Refusal = fn(String) -> GrammarError;

/// A form in the parser's notation, within its bounds, maybe in one that is faster as well, and
/// what its refusal is called.
fn source(
    spec: &GrammarSpec,
    limits: &GrammarLimits,
) -> Result<(TopLevelGrammar, Option<TopLevelGrammar>, Refusal), GrammarError> {
    let (source, refused): (_, Refusal) = match spec {
        GrammarSpec::Tools(_) => {
            let reason = "tools are no format of an answer without calls".to_owned();
            return Err(GrammarError::Tools { reason });
        }
        GrammarSpec::JsonSchema(schema) => {
            (TopLevelGrammar::from_json_schema(schema::prepare(schema, limits)?), schema_refusal)
        }
        GrammarSpec::JsonObject => {
            let object = schema::prepare(&json!({"type": "object"}), limits)?;
            (TopLevelGrammar::from_json_schema(object), schema_refusal)
        }
        GrammarSpec::Regex(expression) => {
            check_text(expression, limits)?;
            (TopLevelGrammar::from_regex(expression), regex_refusal)
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
            let lark = gbnf::to_lark(text, limits)?;
            let faster = lark.with_terminals.map(TopLevelGrammar::from_lark);
            return Ok((TopLevelGrammar::from_lark(lark.plain), faster, gbnf_refusal));
        }
    };
    Ok((source, None, refused))
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

fn gbnf_refusal(reason: String) -> GrammarError {
    GrammarError::GbnfCompiler { reason: without_grammar(reason) }
}

fn regex_refusal(reason: String) -> GrammarError {
    GrammarError::Regex { reason: without_grammar(reason) }
}

/// The compiler's words about an expression, without the text of the grammar around it, which the
/// user did not write.
fn without_grammar(reason: String) -> String {
    let said = reason.rsplit_once("error: ").or_else(|| reason.rsplit_once("): "));
    let said = said.map(|(_, said)| said.split("; ").next().unwrap_or(said).to_owned());
    said.unwrap_or(reason) // behind a semicolon is the place
}

fn compile_error(error: &anyhow::Error, refused: Refusal) -> GrammarError {
    let reason = first_paragraph(&error.to_string());
    let limits = ["too large", "too big", "too complex", "fuel", "limit"];
    if limits.iter().any(|limit| reason.contains(limit)) {
        GrammarError::TooComplex { reason }
    } else {
        refused(reason)
    }
}

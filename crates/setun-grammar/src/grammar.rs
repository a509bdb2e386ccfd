//! A form, compiled for a vocabulary.

use std::fmt;
use std::sync::Arc;

use llguidance::TokenParser;
use setun_text::TokenMask;

use crate::closing::Closing;
use crate::compile::{Compilation, Compiled as Parser};
use crate::number_size::Scan;
use crate::{
    GrammarError, GrammarLimits, GrammarSpec, Interrupt, ToolGrammar, ToolNote, Vocabulary,
};

/// A form, compiled for a vocabulary. Cloning shares it; [`Constraint`](crate::Constraint) is the
/// state of a sequence that follows it.
#[derive(Clone)]
pub struct Grammar {
    compiled: Arc<Compiled>,
}

struct Compiled {
    spec: GrammarSpec,
    start: TokenParser,
    notes: Vec<ToolNote>,
    vocabulary: Arc<Vocabulary>,
    /// Where its texts are JSON, whose numbers are kept in range.
    scan: Option<Scan>,
    /// The way to the end of its texts, if they are JSON.
    closing: Option<Arc<Closing>>,
}

impl Grammar {
    /// Compiles a form. What cannot be followed, has no text that ends, or exceeds a limit fails
    /// here, before the first token.
    ///
    /// # Errors
    ///
    /// Why it cannot be followed.
    pub fn new(
        spec: &GrammarSpec,
        vocabulary: &Arc<Vocabulary>,
        limits: &GrammarLimits,
    ) -> Result<Self, GrammarError> {
        Self::compile(spec, vocabulary, limits, &Interrupt::new())
    }

    /// The same, unless it is interrupted before.
    ///
    /// Natively a thread with a stack of its own compiles, and an interrupt is noticed within
    /// milliseconds. In a browser the caller compiles, and it is noticed between phases.
    ///
    /// # Errors
    ///
    /// Also [`GrammarError::Deadline`] and [`GrammarError::Cancelled`].
    pub fn compile(
        spec: &GrammarSpec,
        vocabulary: &Arc<Vocabulary>,
        limits: &GrammarLimits,
        interrupt: &Interrupt,
    ) -> Result<Self, GrammarError> {
        if let GrammarSpec::Tools(tools) = spec {
            tools.check(limits)?;
        }
        crate::size::check(spec, limits)?;
        let Parser { parser: start, notes, closing } =
            compiled(spec, vocabulary, limits, interrupt)?;
        let vocabulary = Arc::clone(vocabulary);
        let scan = match spec {
            GrammarSpec::JsonSchema(_) | GrammarSpec::JsonObject => Some(Scan::default()),
            // Text that begins otherwise than a call of the format is as any other.
            GrammarSpec::Tools(tools @ ToolGrammar { format, choice, .. }) => {
                let is_json = tools.text().is_some_and(GrammarSpec::is_json);
                let has_text = !format.at_start && !choice.begins_with_call() && !is_json;
                Some(if has_text { Scan::Text(0) } else { Scan::default() })
            }
            _ => None,
        };
        let spec = spec.clone();
        let compiled = Compiled { spec, start, notes, vocabulary, scan, closing };
        Ok(Self { compiled: Arc::new(compiled) })
    }

    /// The form that it was compiled from.
    #[must_use]
    pub fn spec(&self) -> &GrammarSpec {
        &self.compiled.spec
    }

    /// The parts of tools' schemas that are left free.
    #[must_use]
    pub fn notes(&self) -> &[ToolNote] {
        &self.compiled.notes
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

    /// What keeps numbers in range from the start on.
    pub(crate) fn scan(&self) -> Option<Scan> {
        self.compiled.scan
    }

    /// The way to the end of its texts, if they are JSON.
    pub(crate) fn closing(&self) -> Option<&Arc<Closing>> {
        self.compiled.closing.as_ref()
    }

    pub(crate) fn end_tokens(&self) -> &TokenMask {
        self.compiled.vocabulary.end_tokens()
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn compiled(
    spec: &GrammarSpec,
    vocabulary: &Arc<Vocabulary>,
    limits: &GrammarLimits,
    interrupt: &Interrupt,
) -> Result<Parser, GrammarError> {
    let (spec, vocabulary) = (spec.clone(), Arc::clone(vocabulary));
    let (limits, own) = (*limits, interrupt.clone());
    crate::own_stack::on_own_stack(interrupt, move || {
        let (spec, vocabulary, limits, interrupt) = (&spec, &vocabulary, &limits, &own);
        Compilation { spec, vocabulary, limits, interrupt }.run()
    })
}

#[cfg(target_arch = "wasm32")]
fn compiled(
    spec: &GrammarSpec,
    vocabulary: &Vocabulary,
    limits: &GrammarLimits,
    interrupt: &Interrupt,
) -> Result<Parser, GrammarError> {
    Compilation { spec, vocabulary, limits, interrupt }.run()
}

impl fmt::Debug for Grammar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Grammar")
            .field("vocabulary", self.vocabulary())
            .finish_non_exhaustive()
    }
}

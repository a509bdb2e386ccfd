//! Compilation of grammars for an engine's model.

use std::sync::Arc;

use setun_grammar::{Grammar, GrammarLimits, GrammarSpec, Interrupt, ToolGrammar, Vocabulary};

use super::Engine;
use crate::{
    constraint::SharedConstraint,
    error::Error,
    sync::{Mutex, lock},
};

/// Grammars that are kept: those of a few programs with tools of their own.
const MAX_KEPT: usize = 8;

impl Engine {
    /// Compiles a form for this model, to be given to any number of generations
    /// ([`GenerateOptions::constraint`](crate::GenerateOptions::constraint)). Texts have it from their first
    /// token to their last, unless they end before: the most tokens may be fewer than it takes.
    ///
    /// It has as much time as the engine's default timeout gives a generation.
    ///
    /// # Errors
    ///
    /// If the form cannot be followed or compiled in its time, or the model has no tokenizer or no
    /// token that ends a text.
    pub fn grammar(&self, spec: &GrammarSpec) -> Result<SharedConstraint, Error> {
        let interrupt = Interrupt::new();
        self.compile_grammar(
            spec,
            &match self.shared().defaults.timeout {
                Some(time) => interrupt.within(time),
                None => interrupt,
            },
        )
    }

    /// The same, until it is interrupted: at a deadline, or when another thread cancels it.
    ///
    /// # Errors
    ///
    /// As [`grammar`](Self::grammar); also if it was interrupted.
    pub fn compile_grammar(
        &self,
        spec: &GrammarSpec,
        interrupt: &Interrupt,
    ) -> Result<SharedConstraint, Error> {
        let limits = GrammarLimits::default();
        let grammar = Grammar::compile(spec, self.vocabulary()?, &limits, interrupt)?;
        Ok(SharedConstraint::new(grammar))
    }

    fn vocabulary(&self) -> Result<&Arc<Vocabulary>, Error> {
        let shared = self.shared();
        if let Some(vocabulary) = shared.vocabulary.get() {
            return Ok(vocabulary);
        }
        let vocabulary = Vocabulary::new(&**self.tokenizer()?, &shared.eos_tokens)?;
        Ok(shared.vocabulary.get_or_init(|| Arc::new(vocabulary)))
    }
}

/// Grammars of tools, the latest last: each turn of a conversation has the same tools.
#[derive(Default)]
pub(super) struct ToolGrammars {
    /// By their tools as text, since objects are equal in any order and their grammars are not.
    kept: Mutex<Vec<(String, SharedConstraint)>>,
}

impl ToolGrammars {
    /// The grammar of these tools, compiled unless it is kept.
    pub(super) fn grammar(
        &self,
        tools: ToolGrammar,
        compile: impl FnOnce(&GrammarSpec) -> Result<SharedConstraint, Error>,
    ) -> Result<SharedConstraint, Error> {
        let key = format!("{tools:?}");
        if let Some(grammar) = self.kept(&key) {
            return Ok(grammar);
        }
        let grammar = compile(&GrammarSpec::Tools(tools))?;
        let mut kept = lock(&self.kept);
        kept.push((key, grammar.clone()));
        let surplus = kept.len().saturating_sub(MAX_KEPT);
        kept.drain(..surplus);
        Ok(grammar)
    }

    fn kept(&self, key: &str) -> Option<SharedConstraint> {
        let mut kept = lock(&self.kept);
        let place = kept.iter().position(|(known, _)| known == key)?;
        kept[place..].rotate_left(1);
        kept.last().map(|(_, grammar)| grammar.clone())
    }

    /// Forgets all. Generations under way keep theirs.
    pub(super) fn clear(&self) {
        lock(&self.kept).clear();
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use std::cell::Cell;

    use setun_text::{Tool, ToolChoice, ToolFormat};

    use super::*;
    use crate::constraint::{Constraint, ConstraintState};

    /// A constraint that nothing follows.
    struct Unused;

    impl Constraint for Unused {
        fn begin(&self) -> Box<dyn ConstraintState> {
            unreachable!("no text begins")
        }
    }

    fn tools(name: &str, choice: ToolChoice) -> ToolGrammar {
        let tools = vec![Tool::new(name)];
        ToolGrammar { tools, format: ToolFormat::HERMES, choice, parallel: true, text: None }
    }

    #[test]
    fn grammars_of_tools_are_compiled_once_until_they_are_dropped() {
        let (grammars, count) = (ToolGrammars::default(), Cell::new(0));
        let grammar = |tools| {
            let compile = |_: &_| {
                count.set(count.get() + 1);
                Ok(SharedConstraint::new(Unused))
            };
            grammars.grammar(tools, compile).expect("a grammar")
        };
        let first = grammar(tools("f", ToolChoice::Auto));
        for _ in 0..2 {
            assert_eq!(grammar(tools("f", ToolChoice::Auto)), first);
        }
        assert_eq!(count.get(), 1);
        assert_ne!(grammar(tools("f", ToolChoice::Required)), first);
        for other in 2..MAX_KEPT {
            grammar(tools(&other.to_string(), ToolChoice::Auto));
            assert_eq!(grammar(tools("f", ToolChoice::Auto)), first, "it is used all the time");
        }
        assert_eq!(count.get(), MAX_KEPT);
        grammar(tools("last", ToolChoice::Auto));
        grammar(tools("f", ToolChoice::Required));
        assert_eq!(count.get(), MAX_KEPT + 2, "the oldest had gone");
        grammars.clear();
        assert_ne!(grammar(tools("f", ToolChoice::Auto)), first);
        let failed = grammars.grammar(tools("g", ToolChoice::Auto), |_| Err(Error::Disposed));
        assert!(failed.is_err());
        grammar(tools("g", ToolChoice::Auto));
        assert_eq!(count.get(), MAX_KEPT + 4, "a failure is not kept");
    }
}

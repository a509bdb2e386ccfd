//! Limits on the size and the work of a grammar.

use llguidance::api::ParserLimits;

use crate::GrammarError;

/// What is bounded in every notation, in errors.
pub(crate) const NESTED_GROUPS: &str = "groups in each other";

/// Bounds on the work and the memory of a grammar. None is a time, so the same grammar fails at
/// the same place everywhere.
///
/// `docs/structured-output.md` lists them with the fixed bounds beside them. A grammar beyond one
/// is [`GrammarError::TooComplex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrammarLimits {
    /// Bytes of a specification: of the text of a grammar or an expression, of all choices
    /// together, of the names and values of a schema. Default: 1,048,576.
    pub text: usize,
    /// Levels that lie in each other: schemas and the references between them; rules, terminals
    /// and the groups in them. Each takes stack where a grammar is compiled, of which a browser
    /// has 1 MB. Default: 128.
    pub depth: usize,
    /// Rules and terminals of a grammar, or different names of properties in a schema. Default:
    /// 10,000.
    pub names: usize,
    /// Properties of one object, with those that are only required. Default: 1,000.
    pub properties: usize,
    /// Symbols in all rules of the compiled grammar. Default: 500,000, a schema of megabytes.
    pub symbols: usize,
    /// Work on regular expressions when a grammar is compiled. Default: 1,000,000, some 20 ms.
    pub compile_work: u64,
    /// Work on regular expressions for one mask. Default: 200,000, some 15 ms.
    pub mask_work: u64,
    /// Parser items for one mask. Default: 50,000, some 3 ms.
    pub mask_items: usize,
    /// Parser items at one place of a text: how ambiguous a grammar may be. Default: 2,000.
    pub row_items: usize,
    /// States that one sequence may visit in the automata of its terminals, at 1 to 2 kB each.
    /// Default: 50,000.
    pub states: usize,
}

impl Default for GrammarLimits {
    fn default() -> Self {
        Self {
            text: 1 << 20,
            depth: 128,
            names: 10_000,
            properties: 1_000,
            symbols: 500_000,
            compile_work: 1_000_000,
            mask_work: 200_000,
            mask_items: 50_000,
            row_items: 2_000,
            states: 50_000,
        }
    }
}

impl GrammarLimits {
    pub(crate) fn for_parser(self) -> ParserLimits {
        ParserLimits {
            max_items_in_row: self.row_items,
            initial_lexer_fuel: self.compile_work,
            step_lexer_fuel: self.mask_work,
            step_max_items: self.mask_items,
            max_lexer_states: self.states,
            max_grammar_size: self.symbols,
            precompute_large_lexemes: true,
            verbose_errors: false,
        }
    }
}

/// A limit that is exceeded: a pointer, as most functions of a compilation may hand it on.
#[derive(Debug)]
pub(crate) struct Exceeded(Box<GrammarError>);

impl Exceeded {
    /// The limit in words.
    #[cold]
    pub(crate) fn new(reason: String) -> Self {
        Self(Box::new(GrammarError::TooComplex { reason }))
    }
}

impl From<Exceeded> for GrammarError {
    fn from(exceeded: Exceeded) -> Self {
        *exceeded.0
    }
}

/// Refuses what exceeds a limit, by name.
pub(crate) fn at_most(what: &str, limit: usize, found: usize) -> Result<(), Exceeded> {
    if found <= limit { Ok(()) } else { Err(exceeded(what, limit, found)) }
}

#[cold]
#[inline(never)]
fn exceeded(what: &str, limit: usize, found: usize) -> Exceeded {
    Exceeded::new(format!("{what}: expected at most {limit}, found {found}"))
}

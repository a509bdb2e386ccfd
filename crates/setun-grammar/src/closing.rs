//! The shortest ends of JSON texts, so that a text is complete when its tokens are used up.
//!
//! A [`Cursor`] follows a text with a chart of the grammar's rules and knows how many tokens
//! complete it. Far from the last token it changes nothing. Near to it a mask loses the tokens
//! after which the text could no longer be completed. What it does not follow it leaves alone.

mod chart;
mod cursor;
mod lexing;
mod rules;
mod shortest;

use llguidance::api::ParserLimits;
use llguidance::earley::CGrammar;
use llguidance::earley::regexvec::RegexVec;

use crate::{Interrupt, Vocabulary};
pub(crate) use cursor::Cursor;
use rules::Rules;
use shortest::Shortest;

/// More tokens than any text has.
const NEVER: u32 = u32::MAX / 8;

/// Work on the automata of a grammar, and then of one sequence, beyond which masks are left alone.
const FUEL: u64 = 1_000_000;

/// States of the automata of one sequence.
const MAX_STATES: usize = 10_000;

/// The grammar of a JSON text with the costs of its parts in tokens.
pub(crate) struct Closing {
    rules: Rules,
    shortest: Shortest,
    /// From this many tokens beyond the shortest end on no token can be one too many.
    slack: usize,
}

impl Closing {
    /// `None` if the grammar is too large for it, or has parts that it does not know.
    pub(crate) fn new(
        grammar: &CGrammar,
        vocabulary: &Vocabulary,
        limits: &ParserLimits,
        interrupt: &Interrupt,
    ) -> Option<Self> {
        let mut limits = limits.clone();
        limits.precompute_large_lexemes = false;
        let mut automaton: RegexVec = grammar.lexer_spec().to_regex_vec(&mut limits).ok()?;
        automaton.set_fuel(FUEL);
        automaton.set_max_states(MAX_STATES);
        let mut shortest = Shortest::new(automaton);
        let mut rules = Rules::new(grammar)?;
        for symbol in 0..rules.symbols.len() {
            let Some(lexeme) = rules.symbols[symbol].lexeme else { continue };
            interrupt.check().ok()?;
            let initial = shortest.initial(lexeme);
            let (bytes, tokens) = (shortest.bytes(initial)?, shortest.tokens(initial, vocabulary));
            rules.set_terminal(symbol, initial, bytes.len(), tokens);
        }
        shortest.set_fuel(FUEL);
        rules.add_costs();
        let most = rules.highest_cost();
        let slack = 64 + 4 * most as usize;
        (rules.symbols[rules.start].cost < NEVER).then_some(Self { rules, shortest, slack })
    }
}

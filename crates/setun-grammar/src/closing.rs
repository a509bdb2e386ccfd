//! The shortest ends of JSON texts, and of calls of tools, so that a text is complete when its tokens are
//! used up.
//!
//! A [`Cursor`] follows a text with a chart of the grammar's rules and knows how many tokens
//! complete it. Far from the last token it changes nothing. Near to it a mask loses the tokens
//! after which the text could no longer be completed. What it does not follow it leaves alone.

mod chart;
mod cursor;
mod frame;
mod lexing;
mod rules;
mod shortest;

use llguidance::api::ParserLimits;
use llguidance::earley::CGrammar;
use llguidance::earley::regexvec::RegexVec;

use crate::{Interrupt, ToolGrammar, Vocabulary};
pub(crate) use cursor::Cursor;
use frame::Frame;
use rules::Rules;
use shortest::Shortest;

/// More tokens than any text has.
const NEVER: u32 = u32::MAX / 8;

/// Work on the automata of a grammar, and then of one sequence, beyond which masks are left alone.
const FUEL: u64 = 1_000_000;

/// States of the automata of one sequence.
const MAX_STATES: usize = 10_000;

/// How texts end.
pub(crate) struct Closing {
    /// What stands around documents, where texts are no JSON by themselves.
    frame: Option<Frame>,
    /// JSON texts: the only one, or the arguments of each tool and then the format of an answer without
    /// calls. None of those that are not followed.
    documents: Vec<Option<Document>>,
    /// From this many tokens beyond the shortest end on no token can be one too many.
    slack: usize,
}

/// The grammar of a JSON text with the costs of its parts in tokens.
pub(crate) struct Document {
    rules: Rules,
    shortest: Shortest,
}

impl Closing {
    /// Of a JSON text.
    pub(crate) fn of_document(document: Document) -> Self {
        let slack = slack(document.rules.highest_cost());
        Self { frame: None, documents: vec![Some(document)], slack }
    }

    /// What stands around documents. A browser's module has no room for it.
    fn frame(&self) -> Option<&Frame> {
        if cfg!(target_arch = "wasm32") { None } else { self.frame.as_ref() }
    }

    /// Of calls of tools, by the grammars of their arguments.
    pub(crate) fn of_tools(
        tools: &ToolGrammar,
        names: &[&str],
        mut documents: Vec<Option<Document>>,
        format: Option<Document>,
        vocabulary: &Vocabulary,
    ) -> Self {
        let cost = |document: &Option<Document>| document.as_ref().map_or(NEVER, Document::cost);
        let arguments = documents.iter().map(cost).collect();
        let own = format.as_ref().map(|format| (documents.len(), format.cost()));
        let frame = Frame::new(tools, names, arguments, own, vocabulary);
        documents.push(format);
        let costs = documents.iter().flatten().map(|document| document.rules.highest_cost());
        let slack = slack(costs.max().unwrap_or(0).max(frame.highest_cost()));
        Self { frame: Some(frame), documents, slack }
    }
}

fn slack(most: u32) -> usize {
    64 + 4 * most as usize
}

impl Document {
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
        let document = Self { rules, shortest };
        (document.cost() < NEVER).then_some(document)
    }

    /// The fewest tokens of a text.
    fn cost(&self) -> u32 {
        self.rules.symbols[self.rules.start].cost
    }
}

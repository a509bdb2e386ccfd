//! The rules of a grammar, with the fewest tokens that each part takes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use llguidance::derivre::StateID;
use llguidance::earley::lexerspec::LexemeIdx;
use llguidance::earley::{CGrammar, CSymIdx};

use super::NEVER;

/// The most symbols that are followed.
const MAX_SYMBOLS: usize = 20_000;

/// A symbol of the grammar.
#[derive(Default)]
pub(super) struct Symbol {
    /// The lexeme of a terminal.
    pub(super) lexeme: Option<LexemeIdx>,
    /// The state of a terminal's automaton before its first byte.
    pub(super) initial: Option<StateID>,
    pub(super) is_nullable: bool,
    pub(super) rules: Vec<usize>,
    /// The fewest tokens of its texts.
    pub(super) cost: u32,
}

/// A rule for a symbol.
pub(super) struct Rule {
    pub(super) symbol: usize,
    pub(super) parts: Vec<usize>,
    /// The fewest tokens of its parts from each place on.
    costs: Vec<u32>,
}

impl Rule {
    /// The fewest tokens of the parts from a place on.
    pub(super) fn cost_from(&self, place: usize) -> u32 {
        self.costs.get(place).copied().unwrap_or(0)
    }
}

pub(super) struct Rules {
    pub(super) start: usize,
    pub(super) symbols: Vec<Symbol>,
    /// All rules.
    pub(super) list: Vec<Rule>,
}

impl Rules {
    /// The symbols that the start needs. `None` if they are too many or of other kinds than those
    /// of JSON.
    pub(super) fn new(grammar: &CGrammar) -> Option<Self> {
        let mut numbers = Numbers { found: vec![grammar.start()], known: Vec::new() };
        numbers.known.resize(grammar.start().as_index() + 1, usize::MAX);
        numbers.known[grammar.start().as_index()] = 0;
        let (mut symbols, mut rules) = (Vec::new(), Vec::new());
        while let Some(&own) = numbers.found.get(symbols.len()) {
            let (data, number) = (grammar.sym_data(own), symbols.len());
            if number > MAX_SYMBOLS || data.gen_grammar.is_some() || !data.cond_nullable.is_empty()
            {
                return None;
            }
            let mut symbol = Symbol {
                lexeme: data.lexeme,
                is_nullable: data.is_nullable,
                cost: NEVER,
                ..Symbol::default()
            };
            for &rule in &data.rules {
                let parts = grammar.rule_rhs(rule).0;
                let parts: Vec<usize> = parts.iter().map(|&part| numbers.of(part)).collect();
                symbol.rules.push(rules.len());
                rules.push(Rule { symbol: number, parts, costs: Vec::new() });
            }
            symbols.push(symbol);
        }
        Some(Self { start: 0, symbols, list: rules })
    }

    /// Sets what the shortest text of a terminal takes. One that is empty may be left out.
    pub(super) fn set_terminal(
        &mut self,
        symbol: usize,
        initial: StateID,
        bytes: usize,
        tokens: u32,
    ) {
        let symbol = &mut self.symbols[symbol];
        symbol.initial = Some(initial);
        symbol.is_nullable |= bytes == 0;
        symbol.cost = tokens;
    }

    /// Finds the cost of each symbol, the cheapest first: a rule costs as much as its parts.
    pub(super) fn add_costs(&mut self) {
        let mut uses: Vec<Vec<usize>> = vec![Vec::new(); self.symbols.len()];
        let mut open: Vec<usize> = self.list.iter().map(|rule| rule.parts.len()).collect();
        let mut heap = BinaryHeap::new();
        for (number, rule) in self.list.iter().enumerate() {
            rule.parts.iter().for_each(|&part| uses[part].push(number));
            if rule.parts.is_empty() {
                heap.push(Reverse((0, rule.symbol)));
            }
        }
        for (number, symbol) in self.symbols.iter().enumerate() {
            match symbol.lexeme {
                _ if symbol.is_nullable => heap.push(Reverse((0, number))),
                Some(_) if symbol.cost < NEVER => heap.push(Reverse((symbol.cost, number))),
                _ => {}
            }
        }
        let mut is_done = vec![false; self.symbols.len()];
        while let Some(Reverse((cost, number))) = heap.pop() {
            if std::mem::replace(&mut is_done[number], true) {
                continue;
            }
            self.symbols[number].cost = cost;
            for &rule in &uses[number] {
                open[rule] -= 1;
                if open[rule] == 0 {
                    let Rule { symbol, parts, .. } = &self.list[rule];
                    let costs = parts.iter().map(|&part| self.symbols[part].cost);
                    heap.push(Reverse((costs.fold(0, u32::saturating_add).min(NEVER), *symbol)));
                }
            }
        }
        for rule in &mut self.list {
            let mut cost: u32 = 0;
            let costs = rule.parts.iter().rev().map(|&part| {
                cost = cost.saturating_add(self.symbols[part].cost).min(NEVER);
                cost
            });
            rule.costs = costs.collect();
            rule.costs.reverse();
        }
    }

    /// The highest cost of a symbol that has an end.
    pub(super) fn highest_cost(&self) -> u32 {
        let costs = self.symbols.iter().map(|symbol| symbol.cost);
        costs.filter(|&cost| cost < NEVER).max().unwrap_or(0)
    }
}

/// Numbers of symbols, in the order in which they are met.
struct Numbers {
    found: Vec<CSymIdx>,
    known: Vec<usize>,
}

impl Numbers {
    fn of(&mut self, symbol: CSymIdx) -> usize {
        let index = symbol.as_index();
        if index >= self.known.len() {
            self.known.resize(index + 1, usize::MAX);
        }
        if self.known[index] == usize::MAX {
            self.known[index] = self.found.len();
            self.found.push(symbol);
        }
        self.known[index]
    }
}

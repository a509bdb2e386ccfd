//! Terminals for a recursive grammar, of which every text stays the same.
//!
//! The parser's lexer reads on as long as any terminal that is allowed at a place may go on, and
//! then takes those that end there; it never goes back. A part of a rule that names no recursive
//! rule is a terminal if that finds the same texts as a parser of single characters. It does if
//!
//! > no byte that may follow a terminal, at any of its places, may also continue a text of it, or
//! > of a terminal that may be allowed where it is, after a text that is its own.
//!
//! Take a text and how its rules divide it into terminals. At the start of each the parser has its
//! item, by induction. The lexer reads all of it, as the terminal itself goes on. Before the next
//! byte, which is one that may follow, every other terminal has ended or failed. So the lexer stops
//! exactly there, takes all terminals with this text, the right one among them, and the parser has
//! the item after it. At the end of a text it takes those that end. Nothing else is added: what
//! the parser finds is a way to divide the text. A beginning of a text is one of a terminal after
//! complete ones, and every terminal that has begun can end, since no class is empty.
//!
//! What may follow, and which terminals are allowed together, is found without looking at where
//! rules are named from, so there may be more of it than there is. Single characters meet the
//! condition, since none is the beginning of another. So a terminal that goes on where it must not
//! is cut before the item that does, and in the end into characters, until the condition holds.

mod alphabet;
mod automaton;
mod bits;
mod conflicts;
mod order;
pub(super) mod plan;
#[cfg(test)]
mod tests;
mod work;

use super::parse::{Alternatives, Element, Rule};
use crate::names::Names;
use alphabet::Alphabet;
use automaton::Automaton;
use conflicts::conflicts;
use order::Order;
use plan::{Cuts, Plan, Terminal};
use work::Work;

/// The most terminals at all places.
const MAX_TERMINALS: usize = 500;

/// The rules of a grammar.
pub(super) struct Source<'a> {
    rules: &'a [Rule],
    names: &'a Names,
    root: usize,
    /// Of each rule whether it is not recursive.
    finite: &'a [bool],
    alphabet: Alphabet,
}

impl<'a> Source<'a> {
    fn rule(&self, name: &str) -> Option<&'a Rule> {
        self.names.get(name).and_then(|index| self.rules.get(index))
    }

    fn is_finite(&self, element: &Element) -> bool {
        match element {
            Element::Text(_) | Element::Class(_) => true,
            Element::Rule(name) => self.names.get(name).is_some_and(|index| self.finite[index]),
            Element::Group(inner) => {
                inner.iter().flatten().all(|item| self.is_finite(&item.element))
            }
        }
    }
}

/// The rules in terminals that are as large as they may be. `None` if none is larger than a
/// character, or it takes too much work to find them.
pub(super) fn plan<'a>(
    rules: &'a [Rule],
    names: &'a Names,
    root: usize,
    finite: &'a [bool],
) -> Option<Plan<'a>> {
    let source = Source { rules, names, root, finite, alphabet: Alphabet::new(rules)? };
    let mut work = Work::new();
    let mut items = 0;
    for rule in rules {
        items += check(&rule.alternatives, &source.alphabet, &mut work)?;
    }
    let mut cuts = Cuts::none(items);
    loop {
        work.spend(4 * items);
        let plan = Plan::new(&source, &cuts, MAX_TERMINALS)?;
        let is_good = improve(&plan, &source, &mut cuts, &mut work);
        if !work.is_left() {
            return None;
        }
        if is_good {
            return plan.terminals.iter().any(Terminal::is_large).then_some(plan);
        }
    }
}

/// The number of items in a rule; `None` if a class is empty, or it takes too much work to see.
fn check(alternatives: &Alternatives, alphabet: &Alphabet, work: &mut Work) -> Option<usize> {
    let mut items = 0;
    for item in alternatives.iter().flatten() {
        items += 1;
        match &item.element {
            Element::Class(class) => {
                work.spend(16 * (1 + class.ranges.len()));
                if !work.is_left() || alphabet.of_class(class).is_empty() {
                    return None;
                }
            }
            Element::Group(inner) => items += check(inner, alphabet, work)?,
            Element::Text(_) | Element::Rule(_) => {}
        }
    }
    Some(items)
}

/// Whether the terminals of a plan meet the condition. If not there are more cuts.
fn improve(plan: &Plan<'_>, source: &Source<'_>, cuts: &mut Cuts, work: &mut Work) -> bool {
    let mut automata = Vec::new();
    for terminal in &plan.terminals {
        let automaton = Automaton::new(terminal, source, work);
        if let (None, Terminal::Items(items)) = (&automaton, terminal) {
            cuts.cut_all(items);
        }
        automata.push(automaton);
    }
    let known: Vec<&Automaton> = automata.iter().flatten().collect();
    if known.len() < automata.len() || !work.is_left() {
        return false;
    }
    let is_nullable = known.iter().map(|automaton| automaton.is_nullable).collect();
    let order = Order::new(plan, source.root, is_nullable, work);
    if !work.is_left() {
        return false;
    }
    let found = conflicts(&known, &order, &source.alphabet, work);
    for &(terminal, place) in &found {
        if let Terminal::Items(items) = plan.terminals[terminal] {
            cuts.cut(items, place);
        }
    }
    found.is_empty()
}

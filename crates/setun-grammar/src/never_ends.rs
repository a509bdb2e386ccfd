//! Grammars that have no finite text.

use std::collections::HashSet;

use llguidance::earley::{CGrammar, CSymIdx};

/// The name of a rule from which the start cannot come to an end, or `None` if it can.
///
/// A symbol ends if it is a terminal, may be empty, or has a rule all of whose symbols end. The
/// least set of such symbols is found round by round.
pub(crate) fn never_ends(grammar: &CGrammar) -> Option<String> {
    let symbols = reachable(grammar);
    let mut ending: HashSet<CSymIdx> = HashSet::new();
    loop {
        let before = ending.len();
        for &symbol in &symbols {
            if !ending.contains(&symbol) && ends(grammar, symbol, &ending) {
                ending.insert(symbol);
            }
        }
        if ending.contains(&grammar.start()) {
            return None;
        }
        if ending.len() == before {
            return Some(culprit(grammar, &symbols, &ending));
        }
    }
}

fn ends(grammar: &CGrammar, symbol: CSymIdx, ending: &HashSet<CSymIdx>) -> bool {
    let data = grammar.sym_data(symbol);
    let may_be_empty = data.is_nullable || !data.cond_nullable.is_empty();
    data.is_terminal
        || may_be_empty
        || data
            .rules
            .iter()
            .any(|&rule| grammar.rule_rhs(rule).0.iter().all(|part| ending.contains(part)))
}

/// All symbols that the start needs, each before what it needs itself is looked at.
fn reachable(grammar: &CGrammar) -> Vec<CSymIdx> {
    let mut found = vec![grammar.start()];
    let mut seen: HashSet<CSymIdx> = found.iter().copied().collect();
    let mut next = 0;
    while let Some(&symbol) = found.get(next) {
        next += 1;
        for &rule in grammar.rules_of(symbol) {
            for &part in grammar.rule_rhs(rule).0 {
                if seen.insert(part) {
                    found.push(part);
                }
            }
        }
    }
    found.reverse(); // What is needed comes first, so that few rounds are enough.
    found
}

/// A rule that has a name of its own says more than one that the compiler made.
fn culprit(grammar: &CGrammar, symbols: &[CSymIdx], ending: &HashSet<CSymIdx>) -> String {
    let names = || {
        let endless = symbols.iter().rev().filter(|symbol| !ending.contains(symbol));
        endless.map(|&symbol| grammar.sym_name(symbol))
    };
    let own =
        names().find(|name| !name.starts_with('_') && *name != "start" && !name.starts_with('('));
    format!("`{}`", own.or_else(|| names().next()).unwrap_or("start"))
}

//! Grammars that have no finite text.

use std::collections::{HashMap, HashSet};

use llguidance::earley::{CGrammar, CSymIdx};

/// The name of a rule from which the start cannot come to an end, or `None` if it can.
///
/// A symbol ends if it is a terminal, may be empty, or has a rule all of whose symbols end. The
/// least set of such symbols is found in time that is linear in the size of the grammar.
pub(crate) fn never_ends(grammar: &CGrammar) -> Option<String> {
    let symbols = reachable(grammar);
    let ending = ending(grammar, &symbols);
    (!ending.contains(&grammar.start())).then(|| culprit(grammar, &symbols, &ending))
}

/// The symbols that end.
fn ending(grammar: &CGrammar, symbols: &[CSymIdx]) -> HashSet<CSymIdx> {
    let mut rules = Vec::new(); // whose rule it is, and how many of its symbols are not known to end
    let mut users: HashMap<CSymIdx, Vec<usize>> = HashMap::new();
    let mut found: Vec<CSymIdx> = Vec::new();
    for &symbol in symbols {
        let data = grammar.sym_data(symbol);
        if data.is_terminal || data.is_nullable || !data.cond_nullable.is_empty() {
            found.push(symbol);
        }
        for &rule in &data.rules {
            let parts = grammar.rule_rhs(rule).0;
            for &part in parts {
                users.entry(part).or_default().push(rules.len());
            }
            rules.push((symbol, parts.len()));
        }
    }
    let mut ending: HashSet<CSymIdx> = found.iter().copied().collect();
    while let Some(symbol) = found.pop() {
        for rule in users.remove(&symbol).unwrap_or_default() {
            let (owner, left) = &mut rules[rule];
            *left -= 1;
            if *left == 0 && ending.insert(*owner) {
                found.push(*owner);
            }
        }
    }
    ending
}

/// All symbols that the start needs.
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
    found
}

/// A rule that has a name of its own says more than one that the compiler made.
fn culprit(grammar: &CGrammar, symbols: &[CSymIdx], ending: &HashSet<CSymIdx>) -> String {
    let names = || {
        let endless = symbols.iter().filter(|symbol| !ending.contains(symbol));
        endless.map(|&symbol| grammar.sym_name(symbol))
    };
    let own =
        names().find(|name| !name.starts_with('_') && *name != "start" && !name.starts_with('('));
    format!("`{}`", own.or_else(|| names().next()).unwrap_or("start"))
}

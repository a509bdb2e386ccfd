//! Grammars that have no finite text.

use llguidance::earley::{CGrammar, CSymIdx};

use crate::consequences::{Implication, consequences};

/// The parser numbers symbols with 16 bits.
const MAX_SYMBOLS: usize = 1 << 16;

/// The name of a rule from which the start cannot come to an end, or `None` if it can.
///
/// A symbol ends if it is a terminal, may be empty, or has a rule all of whose symbols end.
pub(crate) fn never_ends(grammar: &CGrammar) -> Option<String> {
    let symbols = reachable(grammar);
    let mut rules = Vec::new();
    for &symbol in &symbols {
        let (data, fact) = (grammar.sym_data(symbol), symbol.as_index());
        if data.is_terminal || data.is_nullable || !data.cond_nullable.is_empty() {
            rules.push(Implication { fact, premises: Vec::new() });
        }
        for &rule in &data.rules {
            let premises = grammar.rule_rhs(rule).0.iter().map(CSymIdx::as_index).collect();
            rules.push(Implication { fact, premises });
        }
    }
    let highest = symbols.iter().map(CSymIdx::as_index).max().unwrap_or(0);
    let ends = consequences(highest + 1, &rules);
    (!ends[grammar.start().as_index()]).then(|| culprit(grammar, &symbols, &ends))
}

/// All symbols that the start needs.
fn reachable(grammar: &CGrammar) -> Vec<CSymIdx> {
    let (mut found, mut next) = (vec![grammar.start()], 0);
    let mut seen = vec![false; MAX_SYMBOLS];
    seen[grammar.start().as_index()] = true;
    while let Some(&symbol) = found.get(next) {
        next += 1;
        for &rule in grammar.rules_of(symbol) {
            for &part in grammar.rule_rhs(rule).0 {
                if !std::mem::replace(&mut seen[part.as_index()], true) {
                    found.push(part);
                }
            }
        }
    }
    found
}

/// A rule that has a name of its own says more than one that the compiler made.
fn culprit(grammar: &CGrammar, symbols: &[CSymIdx], ends: &[bool]) -> String {
    let endless = symbols.iter().filter(|symbol| !ends[symbol.as_index()]);
    let mut names = endless.map(|&symbol| grammar.sym_name(symbol));
    let own =
        names.find(|name| !name.starts_with('_') && *name != "start" && !name.starts_with('('));
    format!("`{}`", own.unwrap_or_else(|| grammar.sym_name(grammar.start())))
}

//! GBNF, the notation of llama.cpp, in Lark's.

mod class;
mod parse;
mod terminals;

use std::fmt::Write as _;

use crate::consequences::{Implication, consequences};
use crate::lark::string;
use crate::limits::at_most;
use crate::names::Names;
use crate::{GrammarError, GrammarLimits};
use parse::{Alternatives, Element, Item, Rule};
use terminals::plan::{Piece, Plan, Sequences, Terminal};

/// A grammar in Lark's notation, in one way or two.
pub(crate) struct Lark {
    /// One terminal, or of a recursive grammar a terminal for each character.
    pub(crate) plain: String,
    /// With larger terminals, which is faster and has the same texts.
    pub(crate) with_terminals: Option<String>,
}

/// The same grammar in Lark's notation.
///
/// GBNF knows characters only, the parser also terminals, which it matches as far as they go. So
/// that the texts stay the same, a grammar without recursion becomes one terminal. Of any other
/// every character is a terminal of its own, or larger parts are where that makes no difference.
pub(crate) fn to_lark(text: &str, limits: &GrammarLimits) -> Result<Lark, GrammarError> {
    let rules = parse::rules(text, limits)?;
    let names = names(&rules)?;
    let root = names.get("root").ok_or_else(|| GrammarError::Gbnf {
        line: 1,
        expected: "a rule `root`",
        found: "none".to_owned(),
    })?;
    // A rule is finite if all that it names are. In a ring none is.
    let finite = consequences(rules.len(), &named(&rules, &names)?);
    let as_terminals = finite.iter().all(|&is_finite| is_finite);
    let writer = Writer { rules: &rules, names: &names, as_terminals };
    let mut plain = format!("start: {}\n", writer.name(root));
    for index in 0..rules.len() {
        plain.push_str(&writer.rule(index));
        at_most("bytes of the grammar, written out", limits.text, plain.len())?;
    }
    crate::lark::check(&plain, limits)?;
    let with_terminals =
        if as_terminals { None } else { with_terminals(&rules, &names, root, &finite) };
    let is_within =
        |lark: &String| lark.len() <= limits.text && crate::lark::check(lark, limits).is_ok();
    Ok(Lark { plain, with_terminals: with_terminals.filter(is_within) })
}

fn with_terminals(rules: &[Rule], names: &Names, root: usize, finite: &[bool]) -> Option<String> {
    let plan = terminals::plan(rules, names, root, finite)?;
    let inner = Writer { rules, names, as_terminals: true };
    let outer = Writer { rules, names, as_terminals: false };
    let mut writer = PlanWriter { plan: &plan, inner, outer, terminals: Names::default() };
    let mut lark = format!("start: {}\n", writer.outer.name(root));
    for (index, rule) in plan.rules.iter().enumerate() {
        if let Some(sequences) = rule {
            let name = writer.outer.name(index);
            let _ = writeln!(lark, "{name}: {}", writer.sequences(sequences));
        }
    }
    for (number, terminal) in writer.terminals.iter().enumerate() {
        let _ = writeln!(lark, "T{number}: {terminal}");
    }
    for (index, _) in finite.iter().enumerate().filter(|(_, is_finite)| **is_finite) {
        lark.push_str(&writer.inner.rule(index));
    }
    Some(lark)
}

/// The names of the rules, whose numbers are their places.
fn names(rules: &[Rule]) -> Result<Names, GrammarError> {
    let mut names = Names::default();
    for (index, rule) in rules.iter().enumerate() {
        if names.number(&rule.name) < index {
            return Err(fault("a name that no rule has yet", rule.line, &rule.name));
        }
    }
    Ok(names)
}

fn fault(expected: &'static str, line: usize, name: &str) -> GrammarError {
    GrammarError::Gbnf { line, expected, found: format!("`{name}`") }
}

/// Of each rule those that it names.
fn named(rules: &[Rule], names: &Names) -> Result<Vec<Implication>, GrammarError> {
    let mut named = Vec::new();
    for (fact, rule) in rules.iter().enumerate() {
        let mut premises = Vec::new();
        add_named(&rule.alternatives, names, &mut premises)?;
        named.push(Implication { fact, premises });
    }
    Ok(named)
}

fn add_named(
    alternatives: &Alternatives,
    names: &Names,
    named: &mut Vec<usize>,
) -> Result<(), GrammarError> {
    for item in alternatives.iter().flatten() {
        match &item.element {
            Element::Rule(name) => {
                let place = names.get(name);
                named.push(place.ok_or_else(|| fault("the name of a rule", item.line, name))?);
            }
            Element::Group(inner) => add_named(inner, names, named)?,
            Element::Text(_) | Element::Class(_) => {}
        }
    }
    Ok(())
}

struct Writer<'a> {
    rules: &'a [Rule],
    names: &'a Names,
    as_terminals: bool,
}

impl Writer<'_> {
    /// Terminals have upper-case names, rules lower-case ones.
    fn name(&self, index: usize) -> String {
        let own = self.rules.get(index).map_or("", |rule| rule.name.as_str()).replace('-', "_");
        if self.as_terminals {
            format!("R{index}_{}", own.to_ascii_uppercase())
        } else {
            format!("r{index}_{}", own.to_ascii_lowercase())
        }
    }

    fn rule(&self, index: usize) -> String {
        let alternatives = self.rules.get(index).map(|rule| self.alternatives(&rule.alternatives));
        format!("{}: {}\n", self.name(index), alternatives.unwrap_or_default())
    }

    fn alternatives(&self, alternatives: &Alternatives) -> String {
        let sequences = alternatives.iter().map(|sequence| self.sequence(sequence));
        sequences.collect::<Vec<_>>().join(" | ")
    }

    fn sequence(&self, sequence: &[Item]) -> String {
        concatenated(sequence.iter().map(|item| self.item(item)))
    }

    fn item(&self, item: &Item) -> String {
        let element = match &item.element {
            Element::Text(text) => self.text(text),
            Element::Class(class) => format!("/{class}/"),
            Element::Rule(name) => self.name(self.names.get(name).unwrap_or(usize::MAX)),
            Element::Group(inner) => format!("({})", self.alternatives(inner)),
        };
        let element = match &item.element {
            _ if item.is_once() => return element,
            Element::Group(_) => element,
            _ => format!("({element})"),
        };
        repeated(element, item.least, item.most)
    }

    fn text(&self, text: &str) -> String {
        if self.as_terminals || text.is_empty() {
            return string(text);
        }
        let characters = text.chars().map(|character| string(&character.to_string()));
        format!("({})", characters.collect::<Vec<_>>().join(" "))
    }
}

fn concatenated(parts: impl Iterator<Item = String>) -> String {
    let parts = parts.collect::<Vec<_>>();
    if parts.is_empty() { string("") } else { parts.join(" ") }
}

fn repeated(element: String, least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (1, Some(1)) => element,
        (0, Some(1)) => element + "?",
        (0, None) => element + "*",
        (1, None) => element + "+",
        (least, Some(most)) => format!("{element}{{{least},{most}}}"),
        (least, None) => format!("{element}{{{least},{least}}} {element}*"),
    }
}

/// Writes the rules of a plan, and collects its terminals.
struct PlanWriter<'a> {
    plan: &'a Plan<'a>,
    inner: Writer<'a>,
    outer: Writer<'a>,
    terminals: Names,
}

impl PlanWriter<'_> {
    fn sequences(&mut self, sequences: &Sequences) -> String {
        let pieces =
            |pieces: &Vec<Piece>| concatenated(pieces.iter().map(|piece| self.piece(piece)));
        sequences.iter().map(pieces).collect::<Vec<_>>().join(" | ")
    }

    fn piece(&mut self, piece: &Piece) -> String {
        match piece {
            Piece::Rule(index) => self.outer.name(*index),
            Piece::Group { inner, least, most } => {
                repeated(format!("({})", self.sequences(inner)), *least, *most)
            }
            Piece::Terminal(index) => match &self.plan.terminals[*index] {
                Terminal::Character(character) => string(&character.to_string()),
                Terminal::Class(class) => format!("/{class}/"),
                Terminal::Items(items) => {
                    format!("T{}", self.terminals.number(&self.inner.sequence(items)))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_lark(text: &str) -> Result<String, GrammarError> {
        super::to_lark(text, &GrammarLimits::default()).map(|lark| lark.plain)
    }

    #[test]
    fn without_recursion_it_is_one_terminal() {
        let lark =
            to_lark("root ::= \"a/\" ws [^x-z\\n]{2,}\nws ::= \" \"? # space").expect("good");
        let class = r"/[^\u{78}-\u{7a}\u{a}]/";
        let expected = format!(
            "start: R0_ROOT\nR0_ROOT: \"a/\" R1_WS ({class}){{2,2}} ({class})*\nR1_WS: (\" \")?\n"
        );
        assert_eq!(lark, expected);
    }

    #[test]
    fn with_recursion_characters_are_terminals() {
        let lark = to_lark("root ::= \"(\" root \")\" | \"ab\" | ").expect("good");
        assert_eq!(
            lark,
            "start: r0_root\nr0_root: (\"(\") r0_root (\")\") | (\"a\" \"b\") | \"\"\n"
        );
    }

    #[test]
    fn parts_that_are_not_recursive_are_terminals() {
        let with_terminals = |text| {
            let lark = super::to_lark(text, &GrammarLimits::default()).expect("good");
            lark.with_terminals.expect("it has some")
        };
        assert_eq!(
            with_terminals(
                "root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= root | [0-9]+ ws\nws ::= \" \"*"
            ),
            "start: r0_root\n\
             r0_root: T0 r1_item (T1 r1_item)* T2\n\
             r1_item: r0_root | T3\n\
             T0: \"[\"\nT1: \",\"\nT2: \"]\"\nT3: (/[\\u{30}-\\u{39}]/)+ R2_WS\n\
             R2_WS: (\" \")*\n"
        );
        // A space may follow a number, and be of it or not.
        assert_eq!(
            with_terminals("root ::= \"- \" [0-9]+ ws | root \" \" root\nws ::= \" \"*"),
            "start: r0_root\n\
             r0_root: T0 r1_ws | r0_root T1 r0_root\n\
             r1_ws: (\" \")*\n\
             T0: \"- \" (/[\\u{30}-\\u{39}]/)+\nT1: \" \"\n\
             R1_WS: (\" \")*\n"
        );
    }

    #[test]
    fn counts_may_have_blanks_and_be_zero() {
        for (text, expected) in [
            ("root ::= \"a\"{ 2 , 3 }", "(\"a\"){2,3}"),
            ("root ::= \"a\"{ 2\t}", "(\"a\"){2,2}"),
            ("root ::= \"a\"{2, } # two", "(\"a\"){2,2} (\"a\")*"),
            ("root ::= (\"a\"{\n2\n,\n3\n})", "((\"a\"){2,3})"),
            ("root ::= \"a\"{0} \"b\"", "\"b\""),
            ("root ::= [a]{ 0 , 0 } \"b\"", "\"b\""),
            ("root ::= (\"a\" | \"c\"){0}", "\"\""),
            ("root ::= \"a\"{0,}", "(\"a\")*"),
        ] {
            let lark = to_lark(text).expect(text);
            assert_eq!(lark, format!("start: R0_ROOT\nR0_ROOT: {expected}\n"), "{text}");
        }
    }

    #[test]
    fn a_fault_has_its_line() {
        for (text, message) in [
            ("a ::= \"x\"", "line 1 of the GBNF grammar: expected a rule `root`, found none"),
            (
                "root ::= a\n\n",
                "line 1 of the GBNF grammar: expected the name of a rule, found `a`",
            ),
            (
                "root ::= \"a\"\nroot ::= \"b\"",
                "line 2 of the GBNF grammar: expected a name that no rule has yet, found `root`",
            ),
            ("root ::= (\n\"a\"", "line 2 of the GBNF grammar: expected `)`, found the end"),
            ("root ::= \"a", "line 1 of the GBNF grammar: expected a closing `\"`, found the end"),
            (
                "root ::= <[12]>",
                "line 1 of the GBNF grammar: expected a text, a class of characters, a group or the name of a rule, found `<`",
            ),
            ("\nroot = \"a\"", "line 2 of the GBNF grammar: expected `::=`, found `=`"),
            (
                "root ::= \"a\"{3,2}",
                "line 1 of the GBNF grammar: expected counts that go up, found 3,2",
            ),
            (
                "root ::= \"\\q\"",
                "line 1 of the GBNF grammar: expected an escape (n, r, t, \\, \", [, ], xHH, uHHHH, UHHHHHHHH), found `q`",
            ),
            (
                "root ::= *",
                "line 1 of the GBNF grammar: expected a text, a class of characters, a group or the name of a rule, found `*`",
            ),
        ] {
            assert_eq!(to_lark(text).expect_err(text).to_string(), message, "{text}");
        }
    }
}

//! Bounds on regular expressions that hold before the parser computes with them.
//!
//! The parser counts its work, and ends it at a limit. It does so between steps, and a single step
//! (the derivative of an expression by a byte) may take quadratic or exponential time. Here is
//! what keeps steps short.

use llguidance::api::ParserLimits;
use llguidance::derivre::raw::ExprSet;
use llguidance::derivre::{ExprRef, RegexBuilder};
use llguidance::earley::lexerspec::LexerSpec;

use crate::GrammarLimits;
use crate::limits::{Exceeded, NESTED_GROUPS, at_most};
use crate::names::Names;

/// The most `\w`, `\d`, `\s`, `\p` and their opposites in a grammar. Each is a list of up to a
/// thousand ranges.
pub(crate) const MAX_UNICODE_CLASSES: usize = 2_000;

/// Their name in errors.
pub(crate) const UNICODE_CLASSES: &str = "classes of letters, digits and spaces";

/// The most groups in each other that the reader of expressions takes.
const MAX_NESTED_GROUPS: usize = 250;

/// The most branches that all derivatives by one byte have, beyond one each: some 700 optional
/// parts in sequence.
const MAX_BRANCHES: usize = 250_000;

/// The most combinations of classes that intersected expressions have.
pub(crate) const MAX_COMBINATIONS: u32 = 1_000_000;

/// Their name in errors.
pub(crate) const COMBINATIONS: &str = "combinations of classes in intersected expressions";

/// The most classes in all expressions.
const MAX_CLASSES: usize = 4_000;

/// The most parts of intersected expressions, each as often as it is intersected.
const MAX_INTERSECTED: usize = 10_000_000;

/// How deep expressions may lie in each other.
const MAX_NESTING: usize = 500;

/// The kinds of expressions that are told apart, as the parser numbers them.
mod kind {
    pub(super) const BYTE: u8 = 3;
    pub(super) const BYTE_SET: u8 = 4;
    pub(super) const BYTE_CONCAT: u8 = 5;
    pub(super) const CONCAT: u8 = 10;
    pub(super) const OR: u8 = 11;
    pub(super) const AND: u8 = 12;
}

/// How many classes of Unicode's properties an expression names.
pub(crate) fn unicode_classes(expression: &str) -> usize {
    let mut characters = expression.chars();
    let mut classes = 0;
    while let Some(character) = characters.next() {
        if character == '\\' {
            let next = characters.next();
            classes +=
                usize::from(matches!(next, Some('w' | 'W' | 'd' | 'D' | 's' | 'S' | 'p' | 'P')));
        }
    }
    classes
}

/// How many classes of characters an expression has at most, and one.
pub(crate) fn classes(expression: &str) -> u32 {
    let begins = |byte: &u8| matches!(byte, b'.' | b'[' | b'\\');
    expression.bytes().filter(begins).fold(1, |classes, _| classes.saturating_add(1))
}

/// How deep groups lie in each other, in a text whose classes are as usual.
fn nested_groups(expression: &str) -> usize {
    let (mut deepest, mut depth, mut in_class) = (0, 0_usize, false);
    let mut characters = expression.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            ')' if !in_class => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Refuses a regular expression that is too large to be read.
pub(crate) fn check_text(expression: &str, limits: &GrammarLimits) -> Result<(), Exceeded> {
    at_most("bytes of the regular expression", limits.text / 16, expression.len())?;
    at_most(NESTED_GROUPS, MAX_NESTED_GROUPS, nested_groups(expression))?;
    at_most(UNICODE_CLASSES, MAX_UNICODE_CLASSES, unicode_classes(expression))
}

/// Refuses patterns of a schema, each of which is bounded, that are too complex.
pub(crate) fn check_patterns(patterns: &Names) -> Result<(), Exceeded> {
    let mut builder = RegexBuilder::new();
    for pattern in patterns.iter() {
        let _ = builder.mk_regex_for_serach(pattern); // what is no expression is refused later
    }
    check_set(builder.exprset())
}

/// Refuses the expressions of a grammar whose automaton would be too large or take too long in its
/// first state.
pub(crate) fn check_terminals(
    terminals: &LexerSpec,
    limits: &GrammarLimits,
    parser_limits: &ParserLimits,
) -> Result<(), Exceeded> {
    at_most("different terminals", limits.names, terminals.lexemes.len())?;
    check_set(terminals.regex_builder.exprset())?;
    let mut left = parser_limits.clone();
    let automaton = terminals.to_regex_vec(&mut left);
    let mut automaton = automaton.map_err(|error| Exceeded::new(error.to_string()))?;
    // The parser does the same without a limit.
    automaton.set_fuel(left.initial_lexer_fuel.max(1));
    let start = automaton.initial_state(&terminals.all_lexemes());
    for byte in 0..=u8::MAX {
        automaton.transition(start, byte);
        if automaton.has_error() {
            let work = limits.compile_work;
            return Err(Exceeded::new(format!("its terminals take more than {work} steps")));
        }
    }
    Ok(())
}

/// What is known of one expression. Those that it consists of come before it.
#[derive(Clone, Copy, Default)]
struct Expression {
    /// Branches of its derivative by any one byte.
    branches: u32,
    nesting: u32,
}

fn check_set(set: &ExprSet) -> Result<(), Exceeded> {
    let mut known = vec![Expression::default(); set.len()];
    let (mut branches, mut classes, mut intersected) = (0_u32, 0, 0);
    for id in 1..set.len() {
        let Ok(number) = u32::try_from(id) else { break };
        let reference = ExprRef::new(number);
        let expression = measured(set, reference, &known);
        at_most("regular expressions in each other", MAX_NESTING, expression.nesting as usize)?;
        branches = branches.saturating_add(expression.branches.saturating_sub(1));
        classes += usize::from(kind(set, reference) == kind::BYTE_SET);
        known[id] = expression;
        if kind(set, reference) == kind::AND && set.get_args(reference).len() > 2 {
            intersected = check_intersection(set, reference, intersected)?;
        }
    }
    at_most("optional parts in sequence, squared,", MAX_BRANCHES, branches as usize)?;
    at_most("different classes of characters", MAX_CLASSES, classes)
}

fn kind(set: &ExprSet, expression: ExprRef) -> u8 {
    set.get_tag(expression) as u8
}

fn measured(set: &ExprSet, expression: ExprRef, known: &[Expression]) -> Expression {
    let parts = set.get_args(expression);
    let of = |part: &ExprRef| known.get(part.as_usize()).copied().unwrap_or_default();
    let deepest = parts.iter().map(|part| of(part).nesting + 1).max().unwrap_or(0);
    match (kind(set, expression), parts) {
        (kind::BYTE_CONCAT, [tail]) => Expression { branches: 1, nesting: of(tail).nesting },
        (kind::CONCAT, [head, tail]) => {
            // Where the first part may be empty, what follows it adds its branches.
            let more = if set.is_nullable(*head) { of(tail).branches } else { 0 };
            let nesting = (of(head).nesting + 1).max(of(tail).nesting);
            Expression { branches: 1_u32.saturating_add(more), nesting }
        }
        (kind::OR, parts) => {
            // A list of texts is a tree, of which a byte chooses one branch.
            let (mut branches, mut single) = (0_u32, 0);
            for part in parts {
                if begins_with_byte(set, *part) {
                    single = 1;
                } else {
                    branches = branches.saturating_add(of(part).branches);
                }
            }
            Expression { branches: branches.saturating_add(single), nesting: deepest }
        }
        _ => Expression { branches: 1, nesting: deepest },
    }
}

fn begins_with_byte(set: &ExprSet, expression: ExprRef) -> bool {
    match kind(set, expression) {
        kind::BYTE | kind::BYTE_CONCAT => true,
        kind::CONCAT => {
            set.get_args(expression).first().is_some_and(|head| kind(set, *head) == kind::BYTE)
        }
        _ => false,
    }
}

/// Refuses three and more expressions that are intersected, if the combinations of the classes in
/// them are too many. Gives the parts that were looked at, with those before.
fn check_intersection(
    set: &ExprSet,
    intersection: ExprRef,
    mut parts: usize,
) -> Result<usize, Exceeded> {
    let mut combinations = 1_u32;
    for &part in set.get_args(intersection) {
        let (mut seen, mut open) = (vec![false; set.len()], vec![part]);
        let mut classes = 1_u32;
        while let Some(expression) = open.pop() {
            if std::mem::replace(&mut seen[expression.as_usize()], true) {
                continue;
            }
            parts += 1;
            classes += u32::from(kind(set, expression) == kind::BYTE_SET);
            open.extend_from_slice(set.get_args(expression));
        }
        combinations = combinations.saturating_mul(classes);
        at_most("parts of intersected expressions", MAX_INTERSECTED, parts)?;
    }
    at_most(COMBINATIONS, MAX_COMBINATIONS as usize, combinations as usize)?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GrammarError;

    fn checked(pattern: &str) -> Result<(), Exceeded> {
        let mut patterns = Names::default();
        patterns.number(pattern);
        check_patterns(&patterns)
    }

    fn refusal(pattern: &str) -> String {
        GrammarError::from(checked(pattern).expect_err("it is refused")).to_string()
    }

    #[test]
    fn the_parser_numbers_kinds_as_expected() {
        let mut builder = RegexBuilder::new();
        for (pattern, expected) in [
            ("a", kind::BYTE),
            ("[ab]", kind::BYTE_SET),
            ("ab", kind::BYTE_CONCAT),
            ("[ab]c", kind::CONCAT),
            ("[ab]c|cd", kind::OR),
        ] {
            let expression = builder.mk_regex(pattern).expect("an expression");
            assert_eq!(kind(builder.exprset(), expression), expected, "{pattern}");
        }
        let both = builder.mk_contained_in("[ab]+", "[bc]+").expect("two expressions");
        assert_eq!(kind(builder.exprset(), both), kind::AND);
    }

    #[test]
    fn optional_parts_in_sequence_are_bounded() {
        checked(&("^".to_owned() + &"a?".repeat(600) + "$")).expect("few enough");
        let message = "the grammar is too complex: optional parts in sequence, squared,: expected at most 250000, found ";
        for part in ["a?", "(ab)*", "([ab]|)", "a{0,3}"] {
            assert!(refusal(&part.repeat(20_000)).starts_with(message), "{part}");
        }
    }

    #[test]
    fn lists_of_texts_are_not_optional_parts() {
        let texts: Vec<String> = (0..5_000).map(|text| format!("choice {text}")).collect();
        checked(&texts.join("|")).expect("a tree");
    }

    #[test]
    fn classes_are_counted() {
        assert_eq!(unicode_classes(r"\w\\w[\D\p{L}]\n"), 3);
        assert_eq!(classes(r"a.[bc]\d"), 4);
        let limits = GrammarLimits::default();
        check_text(&r"\w".repeat(2_000), &limits).expect("as many as there may be");
        check_text(&r"\w".repeat(2_001), &limits).expect_err("one too many");
        check_text(&"a".repeat(70_000), &limits).expect_err("too long");
    }
}

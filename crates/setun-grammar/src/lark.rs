//! Lark's notation: texts and lists in it, and bounds on grammars in it.

mod nesting;
mod tokens;

use std::fmt::Write as _;

use crate::expressions::{MAX_UNICODE_CLASSES, UNICODE_CLASSES, check_text, unicode_classes};
use crate::limits::{Exceeded, NESTED_GROUPS, at_most};
use crate::{GrammarLimits, schema};
use nesting::Nesting;
use tokens::{Token, Tokens};

/// The most groups in each other that the parser reads.
pub(crate) const MAX_NESTED_GROUPS: usize = 28;

/// The most parts of all rules and terminals together: texts, names, expressions, operators,
/// brackets and lines.
const MAX_PARTS: usize = 100_000;

/// The most of them in rules. Those at one place of a text are compared with each other.
const MAX_RULE_PARTS: usize = 30_000;

/// A text as a Lark string.
pub(crate) fn string(text: &str) -> String {
    // Lark's escapes are Python's; all of JSON's are among them.
    serde_json::Value::from(text).to_string()
}

/// A grammar of which each text is one of these.
///
/// They are one terminal, so that the automaton shows at once which are still possible.
pub(crate) fn choice(choices: &[String]) -> String {
    let mut lark = String::from("start: CHOICE\nCHOICE: ");
    for (index, choice) in choices.iter().enumerate() {
        let separator = if index == 0 { "" } else { " | " };
        let _ = write!(lark, "{separator}{}", string(choice));
    }
    lark.push('\n');
    lark
}

/// Refuses a grammar whose compilation would take too much stack, time or memory.
///
/// Rules, terminals and groups are compiled by recursion into those that they name, in the order
/// of the text. What is not Lark is left to the parser, which says where it is wrong.
pub(crate) fn check(text: &str, limits: &GrammarLimits) -> Result<(), Exceeded> {
    let (mut tokens, mut nesting) = (Tokens::new(text), Nesting::default());
    let (mut groups, mut classes, mut parts, mut rule_parts) = (0_usize, 0, 0, 0);
    let (mut starts_line, mut in_rule) = (true, true);
    while let Some(token) = tokens.next() {
        parts += 1;
        rule_parts += usize::from(in_rule);
        match token {
            Token::Line | Token::Text | Token::Operator => {}
            Token::Open => {
                groups += 1;
                at_most(NESTED_GROUPS, MAX_NESTED_GROUPS, groups)?;
            }
            Token::Close => groups = groups.saturating_sub(1),
            Token::Name(name) if starts_line => {
                in_rule = name.bytes().any(|byte| byte.is_ascii_lowercase());
                at_most("rules and terminals", limits.names, nesting.define(name))?;
            }
            Token::Name(name) => nesting.name(name, groups),
            Token::Directive => nesting.end_definition(),
            Token::Expression(expression) => {
                check_text(expression, limits)?;
                classes += unicode_classes(expression);
            }
            Token::Schema(ref schema) => schema::check(schema, limits)?,
        }
        starts_line = matches!(token, Token::Line);
        at_most("parts of rules", MAX_RULE_PARTS, rule_parts)?;
        at_most("parts of rules and terminals", MAX_PARTS, parts)?;
    }
    at_most(UNICODE_CLASSES, MAX_UNICODE_CLASSES, classes)?;
    at_most("rules, terminals and groups in each other", limits.depth, nesting.depth())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GrammarError;

    fn refusal(text: &str) -> String {
        let exceeded = check(text, &GrammarLimits::default()).expect_err("it is refused");
        GrammarError::from(exceeded).to_string()
    }

    fn chain(rules: usize) -> String {
        let rules = (0..rules).map(|rule| format!("r{rule}: \"a\" r{}\n", rule + 1));
        format!("start: r0\n{}r{}: \"b\"\n", rules.clone().collect::<String>(), rules.len())
    }

    #[test]
    fn chains_of_rules_and_terminals_are_counted() {
        check(&chain(126), &GrammarLimits::default()).expect("as deep as it may be");
        let too_deep = "the grammar is too complex: rules, terminals and groups in each other: \
                        expected at most 128, found ";
        assert_eq!(refusal(&chain(127)), format!("{too_deep}129"));
        assert_eq!(refusal(&chain(3000)), format!("{too_deep}3002"));
        assert_eq!(
            refusal(&chain(3000).to_uppercase().replace("START", "start")),
            format!("{too_deep}3002")
        );
        // What is compiled once is only named afterwards.
        let backwards =
            format!("{}start: {}\n", chain(125).replace("start", "first"), "first r1 r2");
        check(&backwards, &GrammarLimits::default()).expect("no deeper");
    }

    #[test]
    fn groups_of_every_kind_are_counted() {
        for (open, close) in [("(", ")"), ("[", "]"), ("a{", "}")] {
            let nested =
                |depth| format!("start: {}\"a\"{}\n", open.repeat(depth), close.repeat(depth));
            check(&nested(28), &GrammarLimits::default()).expect("as deep as it may be");
            let message =
                "the grammar is too complex: groups in each other: expected at most 28, found 29";
            assert_eq!(refusal(&nested(3000)), message);
        }
        let counts = format!("start: {}\"a\"{{2,3}}{}\n", "(".repeat(28), ")".repeat(28));
        check(&counts, &GrammarLimits::default()).expect("counts are no groups");
    }

    #[test]
    fn what_is_in_texts_expressions_and_comments_does_not_count() {
        let quiet = format!("start: \"{0}\\\"\" /{0}\\/[(]/i // {0}\n# {0}\n", "(".repeat(40));
        check(&quiet, &GrammarLimits::default()).expect("no groups");
        let classes = format!("start: /{}/\n", r"\w".repeat(2001));
        assert!(refusal(&classes).contains("classes of letters, digits and spaces"));
    }

    #[test]
    fn schemas_in_grammars_have_their_bounds() {
        let nested =
            |inner: &str| format!("{}{inner}{}", "{\"items\":".repeat(100), "}".repeat(100));
        let (first, second) = (nested("{\"$ref\":\"#/b\"}"), nested("{}"));
        let deep = format!("{{\"$ref\": \"#/a\", \"a\": {first}, \"b\": {second}}}");
        assert!(refusal(&format!("start: %json {deep} \"a\"")).contains("schemas and references"));
    }
}

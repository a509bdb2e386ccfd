use proptest::{collection::vec, prelude::*};
use regex_automata::{Anchored, Input, meta::Regex};

use super::*;
use crate::SharedFilter;

fn word(text: &str, whole: bool, ignore_case: bool) -> FilterPattern {
    FilterPattern::Word { text: text.to_owned(), whole, ignore_case }
}

fn replaced(pattern: FilterPattern, by: &str) -> FilterRule {
    FilterRule { pattern, action: FilterAction::Replace(by.to_owned()) }
}

fn stopping(pattern: FilterPattern) -> FilterRule {
    FilterRule { pattern, action: FilterAction::Stop }
}

fn filter(rules: &[FilterRule]) -> SharedFilter {
    SharedFilter::new(PatternFilter::new(rules.to_vec()).expect("good patterns"))
}

/// The output for a text in these pieces, and whether it was stopped.
fn run(rules: &[FilterRule], pieces: &[&str]) -> (String, bool) {
    let mut text = filter(rules).begin();
    let mut shown = String::new();
    for piece in pieces {
        let step = text.push(piece, false).expect("patterns do not fail");
        shown += &step.text;
        if step.stopped {
            return (shown, true);
        }
    }
    let step = text.push("", true).expect("patterns do not fail");
    (shown + &step.text, step.stopped)
}

/// A pattern as another engine takes it.
fn expression(pattern: &FilterPattern) -> Regex {
    let source = match pattern {
        FilterPattern::Word { text, whole, ignore_case } => {
            let code = |letter| format!("\\x{{{:x}}}", u32::from(letter));
            let text = text.chars().map(code).collect::<Vec<_>>().concat();
            let text = if *ignore_case { format!("(?i:{text})") } else { text };
            if *whole { format!("\\b{{start-half}}{text}\\b{{end-half}}") } else { text }
        }
        #[cfg(feature = "regex")]
        FilterPattern::Regex(source) => source.clone(),
    };
    Regex::new(&source).expect("a good pattern")
}

/// The same by looking at the whole text from one place after the other.
fn definition(rules: &[FilterRule], text: &str) -> (String, bool) {
    let expressions: Vec<Regex> = rules.iter().map(|rule| expression(&rule.pattern)).collect();
    let (mut shown, mut behind) = (String::new(), 0);
    for (start, character) in text.char_indices() {
        if start < behind {
            continue;
        }
        let mut rest = text[start..].char_indices().map(|(at, _)| start + at);
        let end = rest.nth(PatternFilter::MAX_MATCHED).unwrap_or(text.len());
        let found = rules.iter().zip(&expressions).find_map(|(rule, expression)| {
            let input = Input::new(text).span(start..end).anchored(Anchored::Yes);
            expression.find(input).map(|found| (rule, found.end()))
        });
        match found {
            Some((FilterRule { action: FilterAction::Stop, .. }, _)) => return (shown, true),
            Some((FilterRule { action: FilterAction::Replace(by), .. }, end)) => {
                shown.push_str(by);
                behind = end;
            }
            None => shown.push(character),
        }
    }
    (shown, false)
}

fn rules(patterns: impl Strategy<Value = FilterPattern>) -> impl Strategy<Value = Vec<FilterRule>> {
    let action = prop_oneof![3 => "[a*]{0,2}".prop_map(FilterAction::Replace), 1 => Just(FilterAction::Stop)];
    vec((patterns, action).prop_map(|(pattern, action)| FilterRule { pattern, action }), 0..4)
}

fn words() -> impl Strategy<Value = FilterPattern> {
    ("[aAéÉ .]{1,4}", any::<bool>(), any::<bool>())
        .prop_map(|(text, whole, ignore_case)| FilterPattern::Word { text, whole, ignore_case })
}

#[test]
fn holds_back_what_may_become_a_word_and_no_more() {
    let mut text = filter(&[replaced(word("secret", false, false), "…")]).begin();
    let mut push = |piece| text.push(piece, false).expect("patterns do not fail").text;
    assert_eq!(push("The se"), "The ");
    assert_eq!(push("a's sec"), "sea's ");
    assert_eq!(push("ret"), "…");
    assert_eq!(push("s"), "");
    assert_eq!(push("ee"), "see");
}

#[test]
fn whole_words_wait_for_what_comes_after_them() {
    let mut text = filter(&[stopping(word("ass", true, true))]).begin();
    let step = text.push("Glass, Ass", false).expect("patterns do not fail");
    assert_eq!((step.text.as_str(), step.stopped), ("Glass, ", false));
    let step = text.push("ets", false).expect("patterns do not fail");
    assert_eq!((step.text.as_str(), step.stopped), ("Assets", false));
    let step = text.push(" ASS", true).expect("patterns do not fail");
    assert_eq!((step.text.as_str(), step.stopped), (" ", true));
}

#[test]
fn the_first_rule_of_a_place_counts_and_what_replaces_is_not_looked_at() {
    let (short, long) = (word("in", false, false), word("inner", false, false));
    let (short, long) = (replaced(short, "<inner>"), replaced(long, "-"));
    assert_eq!(run(&[short.clone(), long.clone()], &["an inner"]).0, "an <inner>ner");
    assert_eq!(run(&[long.clone(), short.clone()], &["an inner in"]).0, "an - <inner>");
    assert_eq!(run(&[long, short], &["an inne"]).0, "an <inner>ne");
}

#[test]
fn a_match_that_began_inside_another_is_none() {
    let rules = [replaced(word("abc", false, false), "1"), stopping(word("cd", false, false))];
    assert_eq!(run(&rules, &["xab", "cd"]), ("x1d".into(), false));
    assert_eq!(run(&rules, &["xb", "cd"]), ("xb".into(), true));
}

#[test]
fn case_is_that_of_all_alphabets() {
    for (text, other) in [("straße", "STRAẞE"), ("ΟΔΟΣ", "οδος"), ("Ärger", "äRGER"), ("k", "K")]
    {
        let rule = |ignore_case| [replaced(word(text, true, ignore_case), "")];
        assert_eq!(run(&rule(true), &[other]).0, "", "{text}");
        assert_eq!(run(&rule(false), &[other]).0, other);
    }
    assert_eq!(run(&[replaced(word("strasse", true, true), "")], &["straße"]).0, "straße");
}

#[test]
fn an_empty_word_is_refused_by_its_place() {
    let rules = [stopping(word("a", true, true)), stopping(word("", true, true))];
    let error = PatternFilter::new(rules).expect_err("an empty word");
    assert!(matches!(error, TextError::FilterPattern { index: 1, .. }), "{error}");
}

proptest! {
    #[test]
    fn pieces_do_not_matter_for_words(
        rules in rules(words()),
        pieces in vec("[aAéÉbB ._]{0,5}", 0..8),
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(run(&rules, &pieces), definition(&rules, &pieces.concat()));
    }

    /// What was shown is always a beginning of the final text, and only what may become a word
    /// is missing from it.
    #[test]
    fn nothing_of_a_word_leaks_and_no_more_is_held_than_needed(
        list in vec("[aé]{1,4}", 1..4),
        is_whole: bool,
        text in "[aéb ]{0,30}",
    ) {
        let rules: Vec<_> = list.iter().map(|text| stopping(word(text, is_whole, false))).collect();
        let (whole, _) = definition(&rules, &text);
        let mut filtered = filter(&rules).begin();
        let mut shown = String::new();
        for (start, character) in text.char_indices() {
            let step = filtered.push(&character.to_string(), false).expect("patterns do not fail");
            shown += &step.text;
            prop_assert!(whole.starts_with(&shown));
            if step.stopped {
                prop_assert_eq!(&shown, &whole);
                break;
            }
            let missing = &text[shown.len()..start + character.len_utf8()];
            let is_begun = |word: &String| {
                word.starts_with(missing) && (is_whole || word.as_str() != missing)
            };
            prop_assert!(missing.is_empty() || list.iter().any(is_begun), "{} is held", missing);
        }
    }
}

#[cfg(feature = "regex")]
mod expressions {
    use super::*;

    fn regex(source: &str) -> FilterPattern {
        FilterPattern::Regex(source.to_owned())
    }

    fn expressions() -> impl Strategy<Value = FilterPattern> {
        let atoms = [
            "a",
            "A",
            "é",
            "b",
            " ",
            ".",
            "[ab]",
            "[^a]",
            r"\w",
            r"\W",
            r"\b",
            r"\B",
            "^",
            "$",
            "(?m:^)",
            "(?m:$)",
            "(?Rm:$)",
            "(?i:é)",
            r"\b{start}",
            r"\b{end-half}",
            r"\n",
            r"(?-u:\b)",
            r"\A",
            r"\z",
        ];
        let atom = proptest::sample::select(atoms.to_vec()).prop_map(str::to_owned);
        let source = atom.prop_recursive(4, 16, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
                vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
                (inner, proptest::sample::select(vec!["*", "+?", "?", "??", "{2,3}", "+"]))
                    .prop_map(|(part, times)| format!("(?:{part}){times}")),
            ]
        });
        let is_allowed = |source: &String| PatternFilter::new([stopping(regex(source))]).is_ok();
        source.prop_filter("matches a character or more", is_allowed).prop_map(FilterPattern::Regex)
    }

    #[test]
    fn shows_what_cannot_match_any_more() {
        let rules = [replaced(regex(r"\d{3}-\d{4}"), "#")];
        let mut text = filter(&rules).begin();
        let mut push = |piece| text.push(piece, false).expect("patterns do not fail").text;
        assert_eq!(push("call 55"), "call ");
        assert_eq!(push("5-12"), "");
        assert_eq!(push("."), "555-12.");
        assert_eq!(push("1234-5678 "), "1# ");
    }

    #[test]
    fn a_stop_comes_with_the_first_match_however_far_it_would_go() {
        let mut text = filter(&[stopping(regex("no+"))]).begin();
        let step = text.push("oh no", false).expect("patterns do not fail");
        assert_eq!((step.text.as_str(), step.stopped), ("oh ", true));
    }

    #[test]
    fn assertions_see_what_was_replaced_and_the_end_of_the_text() {
        let rules = [replaced(regex(r"\bcat\b"), "dog"), replaced(regex("s$"), "")];
        assert_eq!(run(&rules, &["cat", "s cat", " concats"]).0, "cats dog concat");
        assert_eq!(run(&[replaced(regex("^a"), "b")], &["a", "aa"]).0, "baa");
        assert_eq!(run(&[replaced(regex("aa|^b"), "-")], &["aab"]).0, "-b");
    }

    /// The bound is of each place by itself: what is too long from one is found from another.
    #[test]
    fn long_matches_are_seen_as_far_as_the_bound() {
        let most = PatternFilter::MAX_MATCHED;
        for length in [most - 1, most, most + 1, 2 * most, 2 * most + 7] {
            let run_of = "é".repeat(length);
            for rule in [
                replaced(regex("é+"), "1"),
                replaced(regex("é+$"), "1"),
                replaced(regex(r"é+\b"), "1"),
                replaced(regex("é+b"), "1"),
                replaced(regex("é+?b"), "1"),
                stopping(regex("é+b")),
            ] {
                let text = format!("a {run_of}b {run_of}");
                let rules = [rule];
                let expected = definition(&rules, &text);
                assert_eq!(run(&rules, &[&text]), expected, "{rules:?} of {length}");
            }
        }
        let quoted = [replaced(regex("\"[^\"]*\""), "'")];
        let text = format!("\"{} \"bad\" ", "x".repeat(most));
        assert_eq!(run(&quoted, &[&text]).0, format!("\"{} ' ", "x".repeat(most)));
    }

    #[test]
    fn refuses_what_is_no_expression_by_its_place() {
        let refused = |source: &str| {
            let error = PatternFilter::new([stopping(regex("a")), stopping(regex(source))]);
            error.expect_err("a bad pattern").to_string()
        };
        let error = refused("ab(c");
        assert_eq!(
            error,
            "pattern 1 of the filter, `ab(c`, cannot be looked for: unclosed group, at character 3"
        );
        assert!(refused("(?x)a\n b\n  \\q").contains("at character 3 of line 3"));
        assert!(refused("a*|b").contains("matches the empty text"));
        assert!(refused(r"\b").contains("matches the empty text"));
        assert!(refused(r"\w{900}").contains("exceeded limit of 1048576"));
        assert!(refused(r"(?-u:\xff)").contains("UTF-8"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn pieces_do_not_matter_for_expressions(
            rules in rules(prop_oneof![3 => expressions(), 1 => words()]),
            pieces in vec("[aAéÉbB ._\r\n]{0,5}", 0..8),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            prop_assert_eq!(run(&rules, &pieces), definition(&rules, &pieces.concat()));
        }
    }
}

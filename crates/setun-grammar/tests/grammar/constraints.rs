//! Constraints of every kind, over bytes and over tokens.

use std::sync::Arc;

use crate::support::{
    Bytes, Tokens, accepts, byte_level, bytes, over_bytes, sample, sentence_piece,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use setun_grammar::{Constraint, Grammar, GrammarError, GrammarLimits, GrammarSpec, Vocabulary};

fn lark(text: &str) -> GrammarSpec {
    GrammarSpec::Lark(text.to_owned())
}

fn gbnf(text: &str) -> GrammarSpec {
    GrammarSpec::Gbnf(text.to_owned())
}

/// The grammar has the first texts and none of the others.
fn check(spec: &GrammarSpec, texts: &[&str], others: &[&str]) {
    let grammar = over_bytes(spec).expect("it can be followed");
    for text in texts {
        assert!(accepts(&grammar, text), "{spec:?} has {text:?}");
    }
    for text in others {
        assert!(!accepts(&grammar, text), "{spec:?} does not have {text:?}");
    }
}

#[test]
fn every_kind_has_its_texts_and_no_others() {
    check(&GrammarSpec::Regex("a+(b/|é)".to_owned()), &["aab/", "aé"], &["a", "b/", "aab/x", ""]);
    let choices = ["yes", "yes, \"sir\"\n", "", "Größe"].map(str::to_owned).to_vec();
    check(
        &GrammarSpec::Choice(choices),
        &["yes", "yes, \"sir\"\n", "", "Größe"],
        &["y", "yes,", "no"],
    );
    check(
        &GrammarSpec::JsonObject,
        &["{}", "{\"a\": [1, 2.5e3, null]}"],
        &["[]", "1", "{", "{a: 1}"],
    );
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 20}}, "required": ["a"], "additionalProperties": false});
    check(
        &GrammarSpec::JsonSchema(schema),
        &["{\"a\": -7}", "{\"a\":20}"],
        &["{}", "{\"a\": 21}", "{\"a\":1,\"b\":2}", "{\"a\":1.5}"],
    );
    check(&lark("start: \"a\" NUMBER\nNUMBER: /[0-9]+/"), &["a1", "a123"], &["a", "1"]);
    check(
        &gbnf("root ::= [a-c]* \"c\" | \"ab\" \"x\"?"),
        &["c", "abc", "ab", "abx", "abcc"],
        &["ax", "abxc", ""],
    );
}

/// One space after a comma and a colon, more or none if the schema says so.
#[test]
fn white_space_is_what_the_schema_asks_for() {
    let schema = |options: serde_json::Value| {
        GrammarSpec::JsonSchema(json!({"type": ["object", "array"], "x-guidance": options}))
    };
    let compact = ["{\"a b\":[1,{}],\"c\":\"d,  e:\\n\"}", "[]", "{}", "[[],2]"];
    let spaced = ["{\"a\": [1, {}],\"c\":2}", "[1, 2,3]"];
    let free = ["{ \"a\" :1}", "[\n  1,\n  2\n]", "[1,  2]", "{\r\n\t\"a\":    1}", "[ ]"];
    let never = ["[     ]", "[\n\n]", "[\t]", " []", "[] ", "[1,\"a\nb\"]"];
    let usual = GrammarSpec::JsonSchema(json!({"type": ["object", "array"]}));
    check(&usual, &[&compact[..], &spaced].concat(), &[&free[..], &never].concat());
    check(&schema(json!({})), &spaced, &free);
    let narrow = schema(json!({"whitespace_flexible": false}));
    check(&narrow, &compact, &[&spaced[..], &free, &never].concat());
    let wide = schema(json!({"whitespace_flexible": true}));
    check(&wide, &[&compact[..], &spaced, &free].concat(), &never);
    check(&GrammarSpec::JsonObject, &["{\"a\": 1, \"b\":2}"], &["{\"a\" :1}", "{ }", "{\n}"]);
}

/// Many readers take no other letters, and no year 0.
#[test]
fn times_have_upper_case_letters() {
    let format = |name: &str| GrammarSpec::JsonSchema(json!({"type": "string", "format": name}));
    check(
        &format("date-time"),
        &[
            "\"2024-02-29T10:00:00Z\"",
            "\"0001-01-01T23:59:60.5Z\"",
            "\"2000-02-29T01:02:03+01:30\"",
        ],
        &["\"2024-02-29t10:00:00Z\"", "\"2024-02-29T10:00:00z\"", "\"0000-01-01T10:00:00Z\""],
    );
    check(&format("time"), &["\"10:00:00Z\"", "\"10:00:00-02:00\""], &["\"10:00:00z\""]);
    check(
        &format("date"),
        &["\"0400-02-29\"", "\"0100-12-31\""],
        &["\"0000-02-29\"", "\"0100-02-29\""],
    );
    check(&gbnf("root ::= \"a\"{ 2 , 3 }"), &["aa", "aaa"], &["a", "aaaa"]);
    check(&gbnf("root ::= \"a\"{0} \"b\""), &["b"], &["ab", ""]);
}

/// A format that JSON Schema does not define is an annotation; one of numbers is a range of integers alone.
#[test]
fn formats_say_nothing_of_other_types() {
    let spec = |schema: Value| GrammarSpec::JsonSchema(schema);
    let string = |format: &str| spec(json!({"type": "string", "format": format}));
    for format in ["binary", "byte", "password", "uri-reference", "path", "uint8", "x"] {
        check(&string(format), &["\"\"", "\"a b\""], &["1"]);
    }
    for format in ["date", "email", "uri", "x"] {
        check(&spec(json!({"type": "integer", "format": format})), &["0", "-700"], &["\"\""]);
    }
    let any = json!({"type": ["integer", "string"], "format": "uint8"});
    check(&spec(any), &["255", "0", "\"256\""], &["256", "-1"]);
    let optional = json!({"anyOf": [{"type": "integer", "format": "int8"}, {"type": "null"}]});
    check(&spec(optional), &["-128", "127", "null"], &["128"]);
    let referred =
        json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer", "format": "uint16"}}});
    check(&spec(referred), &["65535"], &["65536", "-1"]);
}

/// A terminal that went as far as it could would take from what follows it.
#[test]
fn gbnf_with_recursion_has_the_same_texts() {
    let nested =
        "root ::= \"(\" root \")\" | [a-z] \"bc\" | \"ab\" \"x\" | [0-9]{2,3} \"5\" [^0-9]";
    check(
        &gbnf(nested),
        &["abc", "abx", "((abx))", "125!", "1255é"],
        &["ab", "(abc", "15!", "12555!", "1259"],
    );
}

#[test]
fn hopeless_grammars_fail_before_the_first_token() {
    let never = [
        lark("start: \"a\" start"),
        lark("start: item | \"(\" item\nitem: \"b\" start"),
        gbnf("root ::= \"a\" root | \"b\" more\nmore ::= root root"),
        GrammarSpec::JsonSchema(
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}),
        ),
        GrammarSpec::JsonSchema(
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ),
    ];
    for spec in never {
        let error = over_bytes(&spec).expect_err("it has no end");
        assert!(matches!(error, GrammarError::NeverEnds { .. }), "{spec:?}: {error}");
    }
    let limits = GrammarLimits { symbols: 10, ..GrammarLimits::default() };
    let error =
        Grammar::new(&GrammarSpec::JsonObject, &bytes(), &limits).expect_err("it is too large");
    assert!(matches!(error, GrammarError::TooComplex { .. }), "{error}");
}

#[test]
fn a_limit_reached_is_reported_and_stays() {
    let backwards = GrammarSpec::Regex("(a|b)*a(a|b){60}".to_owned());
    let limits = GrammarLimits { states: 40, ..GrammarLimits::default() };
    let grammar = Grammar::new(&backwards, &bytes(), &limits).expect("a small expression");
    let mut constraint = Constraint::new(&grammar);
    let mut failed = None;
    for index in 0..200_u32 {
        let token = 97 + (index * index / 7) % 2;
        if let Err(error) = constraint.mask().map(|_| ()).and_then(|()| constraint.accept(token)) {
            failed = Some(error);
            break;
        }
    }
    let failed = failed.expect("more than 40 states");
    assert!(matches!(failed, GrammarError::TooComplex { .. }), "{failed}");
    assert_eq!(constraint.mask().expect_err("it has failed"), failed);
    assert_eq!(constraint.clone().accept(97), Err(failed));
    assert!(Constraint::new(&grammar).mask().is_ok(), "another sequence has states of its own");
}

#[test]
fn faults_are_reported() {
    let message = |spec: GrammarSpec| over_bytes(&spec).expect_err("it is refused").to_string();
    assert_eq!(
        message(GrammarSpec::Choice(Vec::new())),
        "the list of choices is empty, expected at least one"
    );
    assert!(message(GrammarSpec::Regex("(".to_owned())).contains("unclosed group"));
    assert!(message(lark("start: \"a\"\nb: (")).contains('2'));
    let empty = json!({"type": "string", "minLength": 3, "maxLength": 2});
    assert!(
        message(GrammarSpec::JsonSchema(empty))
            .contains("minLength (3) is greater than maxLength (2)")
    );
    let one = json!({"oneOf": [{"minimum": 1}, {"maximum": 5}]});
    assert!(message(GrammarSpec::JsonSchema(one)).contains("`oneOf` is only supported where"));
}

#[test]
fn vocabularies_are_checked() {
    assert_eq!(Vocabulary::new(&Bytes, &[]).expect_err("none"), GrammarError::NoEndToken);
    let range = GrammarError::TokenRange { token: 257, vocabulary: 257 };
    assert_eq!(Vocabulary::new(&Bytes, &[257]).expect_err("no token"), range);
    let vocabulary = Vocabulary::new(&Bytes, &[256, 10]).expect("a line may end a text");
    assert_eq!(vocabulary.end_tokens().iter().collect::<Vec<_>>(), [10, 256]);
    let grammar = Grammar::new(
        &GrammarSpec::Regex("a\n?b?".to_owned()),
        &Arc::new(vocabulary),
        &GrammarLimits::default(),
    );
    let mut constraint = Constraint::new(&grammar.expect("it can be followed"));
    constraint.accept(97).expect("a");
    assert_eq!(constraint.mask().expect("a mask").iter().collect::<Vec<_>>(), [10, 98, 256]);
}

#[test]
fn sequences_may_live_on_any_thread() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Vocabulary>();
    shared::<Grammar>();
    sent::<Constraint>();
}

#[test]
fn a_text_ends_with_end_tokens() {
    let grammar = over_bytes(&GrammarSpec::Choice(vec!["ab".to_owned()])).expect("good");
    let mut constraint = Constraint::new(&grammar);
    assert_eq!(constraint.forced_tokens(9).expect("forced"), [97, 98]);
    assert_eq!(constraint.forced_tokens(1).expect("forced"), [97]);
    for token in [97, 98] {
        assert!(!constraint.is_finished() && !constraint.is_accepting().expect("fine"));
        let refused = GrammarError::TokenRefused { token: 256, taken: constraint.taken() };
        assert_eq!(constraint.accept(256), Err(refused));
        constraint.accept(token).expect("it is forced");
    }
    assert!(constraint.is_finished() && constraint.is_accepting().expect("fine"));
    assert_eq!(constraint.mask().expect("the end").iter().collect::<Vec<_>>(), [256]);
    assert_eq!(constraint.accept(97), Err(GrammarError::TokenRefused { token: 97, taken: 2 }));
    assert_eq!(constraint.accept(999), Err(GrammarError::TokenRefused { token: 999, taken: 2 }));
    constraint.accept(256).expect("the end");
    assert_eq!(constraint.rollback(4), Err(GrammarError::Rollback { asked: 4, taken: 3 }));
    constraint.rollback(2).expect("two were taken");
    assert_eq!(constraint.mask().expect("b").iter().collect::<Vec<_>>(), [98]);
}

#[test]
fn special_tokens_come_only_where_they_are_named() {
    let tokens = Tokens::new(byte_level());
    let header = tokens.tokenizer.token_to_id("<|start_header_id|>").expect("it is there");
    let anything = tokens.grammar(&GrammarSpec::Regex("(?s:.*)".to_owned())).expect("good");
    let mut constraint = Constraint::new(&anything);
    assert!(
        !constraint.mask().expect("much").contains(header)
            && !constraint.allows(header).expect("fine")
    );
    let named = tokens.grammar(&lark("start: <|start_header_id|> \"a\"")).expect("good");
    let mut constraint = Constraint::new(&named);
    assert_eq!(constraint.mask().expect("one").iter().collect::<Vec<_>>(), [header]);
    constraint.accept(header).expect("it is named");
    assert!(
        constraint
            .mask()
            .expect("more")
            .contains(tokens.tokenizer.token_to_id("a").expect("it is there"))
    );
}

/// What a mask allows is just what can be taken one by one.
#[test]
fn masks_are_what_is_accepted() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "n": {"type": "number"}}, "required": ["n"]});
    let grammars = [
        GrammarSpec::JsonSchema(schema),
        gbnf("root ::= \"(\" root \")\" | [a-z é]+"),
        GrammarSpec::Regex("[0-9]{3,5}( [a-z]+)*".to_owned()),
    ];
    for tokens in [Tokens::new(byte_level()), Tokens::new(sentence_piece())] {
        for spec in &grammars {
            let grammar = tokens.grammar(spec).expect("good");
            let text = sample(&tokens, &grammar, 7, 12).expect("it ends");
            let mut constraint = Constraint::new(&grammar);
            for (place, &token) in text.iter().enumerate() {
                if place.is_multiple_of(4) {
                    let mut fork = constraint.clone();
                    let mask = constraint.mask().expect("a mask");
                    for id in 0..u32::try_from(tokens.tokenizer.vocab_size()).expect("few") {
                        assert_eq!(
                            fork.allows(id).expect("fine"),
                            mask.contains(id),
                            "{spec:?} {text:?} {place} {id}"
                        );
                    }
                }
                constraint.accept(token).expect("it was taken before");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Tokens taken and taken back, and other sequences beside, leave no trace.
    #[test]
    fn rollback_and_forks_leave_no_trace(seed in 0_u64..1000, other in 0_u64..1000, back in 1_usize..12) {
        let tokens = Tokens::new(sentence_piece());
        let schema = json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}, {"$ref": "#"}]}, "minItems": 1});
        let grammar = tokens.grammar(&GrammarSpec::JsonSchema(schema)).expect("good");
        let [text, detour] = [seed, other].map(|seed| sample(&tokens, &grammar, seed, 16).expect("it ends"));
        let mut straight = Constraint::new(&grammar);
        let mut winding = Constraint::new(&grammar);
        for &token in &text {
            let mut fork = winding.clone();
            let taken = detour.iter().take(back).take_while(|&&token| winding.accept(token).is_ok()).count();
            winding.rollback(taken).expect("they were taken");
            prop_assert_eq!(winding.mask().expect("a mask"), straight.mask().expect("a mask"));
            prop_assert_eq!(fork.mask().expect("a mask"), straight.mask().expect("a mask"));
            straight.accept(token).expect("it was taken before");
            winding.accept(token).expect("it was taken before");
        }
        prop_assert!(winding.is_accepting().expect("fine"));
    }
}

#[test]
fn addresses_are_those_that_readers_of_mail_take() {
    let schema = json!({"type": "string", "format": "email"});
    let grammar = over_bytes(&GrammarSpec::JsonSchema(schema)).expect("it can be followed");
    let long = "a".repeat(32);
    for text in ["a@b.io", "x.y+z@mail.example.org", &format!("{long}@a-b.example")] {
        assert!(accepts(&grammar, &format!("\"{text}\"")), "{text}");
    }
    for text in [
        "a",
        "a@b",
        ".a@b.io",
        "a.@b.io",
        "a..b@b.io",
        "a@-b.io",
        "a@b.1",
        &format!("{long}a@b.io"),
    ] {
        assert!(!accepts(&grammar, &format!("\"{text}\"")), "{text}");
    }
}

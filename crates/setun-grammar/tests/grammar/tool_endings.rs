//! Calls of tools come to their end within the tokens that they have.

use std::collections::BTreeMap;

use crate::support::{Tokens, any, byte_level, sentence_piece};
use crate::tools::{FORMATS, tool};
use serde_json::{Value, json};
use setun_grammar::{Constraint, GrammarSpec, ToolGrammar};
use setun_text::{Tool, ToolCall, ToolCallReader, ToolChoice, ToolFormat};

/// Tool sets of the kinds that agents have.
fn sets() -> [(&'static str, Vec<Tool>); 4] {
    let text = json!({"type": "string"});
    let weather = json!({"type": "object", "properties": {
        "city": text, "unit": {"enum": ["celsius", "fahrenheit"]}}, "required": ["city"]});
    let path = json!({"type": "object", "properties": {"path": text}, "required": ["path"]});
    let edit = json!({"type": "object", "properties": {"file_path": text, "old_string": text,
        "new_string": text, "replace_all": {"type": "boolean", "default": false}},
        "required": ["file_path", "old_string", "new_string"]});
    let todo = json!({"type": "object", "properties": {"todos": {"type": "array", "items": {
        "type": "object", "properties": {"content": {"type": "string", "minLength": 1},
            "status": {"enum": ["pending", "in_progress", "completed"]}},
        "required": ["content", "status"]}}}, "required": ["todos"]});
    let open = json!({"type": "object", "properties": {"query": text, "filter": {"type": "object"}},
        "additionalProperties": true});
    let node = json!({"$ref": "#/$defs/node", "type": "object", "$defs": {"node": {"type": "object",
        "properties": {"name": text, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["name", "next"]}}});
    [
        ("one", vec![tool("get_weather", &weather)]),
        ("files", vec![tool("Read", &path), tool("Edit", &edit), tool("TodoWrite", &todo)]),
        ("open", vec![tool("search", &open), Tool::new("stop")]),
        ("recursive", vec![tool("add", &node), tool("add_all", &todo)]),
    ]
}

fn spec(
    tools: &[Tool],
    format: ToolFormat,
    choice: ToolChoice,
    text: Option<Value>,
) -> GrammarSpec {
    let text = text.map(GrammarSpec::JsonSchema).map(Box::new);
    GrammarSpec::Tools(ToolGrammar { tools: tools.to_vec(), format, choice, parallel: true, text })
}

/// Checks the calls of a whole text with an independent reader of JSON schemas.
fn check(tools: &[Tool], format: ToolFormat, text: &str) {
    let mut reader = ToolCallReader::new(format, true, &[], [0, 0]);
    let step = reader.push(0, text);
    let mut calls: Vec<ToolCall> = vec![];
    step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
    assert!(!calls.is_empty(), "{text}");
    for ToolCall { name, arguments, .. } in calls {
        let tool = tools.iter().find(|tool| tool.name == name).expect("a tool");
        let value: Value = serde_json::from_str(&arguments)
            .unwrap_or_else(|error| panic!("{arguments} is no JSON: {error}"));
        let schema = tool.parameters.clone().map_or(json!({"maxProperties": 0}), Value::Object);
        jsonschema::validate(&schema, &value)
            .unwrap_or_else(|error| panic!("{arguments}: {error}"));
    }
}

fn measure(seeds: u64) {
    let tokenizers = [Tokens::new(byte_level()), Tokens::new(sentence_piece())];
    let mut found: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    for (name, tools) in sets() {
        for (format, tokens) in FORMATS.into_iter().zip(tokenizers.iter().cycle()) {
            let spec = spec(&tools, format, ToolChoice::Required, None);
            let grammar = tokens.grammar(&spec).expect("it is supported");
            let shortest = Constraint::new(&grammar).shortest_end().expect("it is known");
            for seed in 0..seeds {
                let limit = 2 * (shortest + 1);
                let (_, before) = tokens.write(&grammar, seed, limit, false);
                let (text, now) = tokens.write(&grammar, seed, limit, true);
                let text = tokens.text(&text);
                if now {
                    check(&tools, format, &text);
                } else {
                    eprintln!("{name}, {}: {text}", format.name);
                }
                let row = found.entry(name).or_default();
                *row = [row[0] + 1, row[1] + u64::from(before), row[2] + u64::from(now)];
            }
        }
    }
    for (name, [all, before, now]) in &found {
        eprintln!("{name}: {before} of {all} before, {now} now");
        assert!(now * 100 >= all * 99, "{name}: {now} of {all}");
        assert!(before < now, "{name}: {before} before");
    }
}

#[test]
fn calls_end_within_twice_their_shortest_length() {
    measure(20);
}

#[test]
#[ignore = "takes minutes"]
fn hundreds_of_calls_end_within_twice_their_shortest_length() {
    measure(100);
}

/// In a text a call that has no room any more does not begin.
#[test]
fn a_call_begins_where_it_can_end() {
    let tokens = Tokens::new(byte_level());
    let (_, tools) = &sets()[0];
    let grammar = tokens.grammar(&spec(tools, ToolFormat::HERMES, ToolChoice::Auto, None));
    let grammar = grammar.expect("it is supported");
    let required = tokens.grammar(&spec(tools, ToolFormat::HERMES, ToolChoice::Required, None));
    let call = Constraint::new(&required.expect("it is supported")).shortest_end().expect("known");
    let ids = |text: &str| tokens.tokenizer.encode(text, false).expect("tokens");
    let mut text = Constraint::new(&grammar);
    for token in ids("I look <tool_call") {
        text.accept(token).expect("any text");
    }
    let close = ids(">")[0];
    for (left, may_begin) in [(usize::MAX / 8, true), (call + 2, true), (4, false)] {
        let mut text = text.clone();
        text.set_tokens_left(left);
        let mask = text.mask().expect("a mask");
        assert_eq!(mask.contains(close), may_begin, "{left} of {call}");
        assert!(mask.contains(ids("a")[0]) && mask.iter().count() > 100, "text goes on");
    }
    // One that has begun is complete at the limit, and so is a second one.
    for seed in 0..20 {
        let mut constraint = Constraint::new(&grammar);
        let begin = ids("So:\n<tool_call>");
        constraint.set_tokens_left(begin.len() + 3 * call);
        for &token in &begin {
            constraint.accept(token).expect("any text");
        }
        let mut written = vec![];
        for index in 0..3 * call as u64 {
            let mask = constraint.mask().expect("a mask").clone();
            let token = any(&mask, seed, index);
            constraint.accept(token).expect("the mask has it");
            written.push(token);
            if constraint.is_finished() {
                break;
            }
        }
        let text = String::from_utf8_lossy(&tokens.bytes(&written)).into_owned();
        assert!(constraint.is_accepting().expect("no failure"), "{text}");
    }
}

/// With tools and a format, the answer is a whole document or a whole call.
#[test]
fn an_answer_with_a_format_ends_either_way() {
    let tokens = Tokens::new(byte_level());
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
    let (_, tools) = &sets()[1];
    for format in [ToolFormat::HERMES, ToolFormat::FALCON] {
        let spec = spec(tools, format, ToolChoice::Auto, Some(schema.clone()));
        let grammar = tokens.grammar(&spec).expect("it is supported");
        for seed in 0..40 {
            let (text, is_whole) = tokens.write(&grammar, seed, 60, true);
            let text = tokens.text(&text);
            assert!(is_whole, "{text}");
        }
    }
}

/// Tokens that are taken back lead to the same masks again, across calls of several tools.
#[test]
fn calls_that_are_taken_back_are_led_as_before() {
    let tokens = Tokens::new(byte_level());
    let (_, tools) = &sets()[1];
    let spec = spec(tools, ToolFormat::FALCON, ToolChoice::Required, None);
    let grammar = tokens.grammar(&spec).expect("it is supported");
    for seed in 0..6 {
        let mut constraint = Constraint::new(&grammar);
        constraint.set_tokens_left(150);
        let mut masks = Vec::new();
        for index in 0..149 {
            let mask = constraint.mask().expect("a mask").clone();
            let token = any(&mask, seed, index);
            constraint.accept(token).expect("the mask has it");
            masks.push((mask, token));
            if constraint.is_finished() {
                break;
            }
        }
        constraint.rollback(masks.len()).expect("they were taken");
        for (mask, token) in masks {
            assert_eq!(constraint.mask().expect("a mask"), &mask);
            constraint.accept(token).expect("as before");
        }
    }
}

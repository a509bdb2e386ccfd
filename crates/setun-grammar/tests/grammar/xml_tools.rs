//! Calls of tools in XML: every text of their grammar, read as answers are.

use crate::random::Random;
use crate::support::{accepts, over_bytes};
use crate::tools::tool;
use serde_json::{Value, json};
use setun_grammar::{Constraint, Grammar, GrammarError, GrammarSpec, ToolGrammar};
use setun_text::{PARAMETER, Tool, ToolCall, ToolCallReader, ToolChoice, ToolFormat};

const FORMAT: ToolFormat = ToolFormat::QWEN_XML;

/// Tools whose parameters have all types.
fn tools() -> Vec<Tool> {
    let file = json!({"properties": {"path": {"type": "string"}, "mode": {"enum": ["r", "w"]},
        "lines": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}}, "required": ["path"]});
    let search = json!({
        "properties": {
            "query": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "page": {"type": ["string", "integer", "boolean"]},
            "filter": {"$ref": "#/$defs/filter"},
            "either": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/filter"}]},
            "exact": {"type": "boolean"},
            "sort": {"anyOf": [{"$ref": "#/$defs/sort"}, {"type": "null"}]},
            "limit": {"type": "number", "minimum": 1, "maximum": 50},
        },
        "required": ["limit", "query"],
        "$defs": {
            "sort": {"enum": ["up", "down"], "type": "string"},
            "filter": {"type": "object", "properties": {"k": {"type": "string", "maxLength": 4}},
                "required": ["k"]},
        },
    });
    let open = json!({"type": "object", "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "integer"}});
    vec![tool("write", &file), tool("search", &search), tool("open", &open), Tool::new("now")]
}

fn grammar(choice: ToolChoice) -> Grammar {
    let tools = ToolGrammar { tools: tools(), format: FORMAT, choice, parallel: true, text: None };
    over_bytes(&GrammarSpec::Tools(tools)).expect("it can be followed")
}

fn call(name: &str, arguments: &[(&str, &str)]) -> String {
    let mut text = format!("{}{}{name}{}", FORMAT.marker, FORMAT.opening, FORMAT.middle);
    let [before, middle, behind] = PARAMETER;
    for (name, value) in arguments {
        text += &[before, name, middle, value, behind].concat();
    }
    text + FORMAT.after
}

/// Text and calls of an answer that comes in pieces of up to 5 bytes.
fn read(begins_with_call: bool, text: &str, random: &mut Random) -> (String, Vec<ToolCall>) {
    let mut reader = ToolCallReader::new(FORMAT, begins_with_call, &[], [0, 0]);
    reader = reader.with_functions(&tools());
    let (mut shown, mut calls, mut rest) = (String::new(), vec![], text);
    while !rest.is_empty() {
        let (piece, next) = rest.split_at(rest.floor_char_boundary(1 + random.below(5)).max(1));
        let step = reader.push(0, piece);
        shown += &step.text;
        step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
        rest = next;
    }
    (shown + &reader.finish(), calls)
}

#[test]
fn parameters_have_the_types_of_their_schemas() {
    let grammar = grammar(ToolChoice::Required);
    let search = |arguments: &[(&str, &str)]| {
        call("search", &[&[("query", "a")], arguments, &[("limit", "5")]].concat())
    };
    for text in [
        call("now", &[]),
        call("write", &[("path", "")]),
        call(
            "write",
            &[("path", "a\n\n</parameter> \"{\n<x>\n"), ("mode", "w"), ("lines", "[1, 2]")],
        ),
        search(&[]),
        search(&[("page", "12 Main Street")]),
        search(&[("page", "12")]),
        search(&[("filter", "{\"k\": \"a\"}"), ("exact", "true")]),
        search(&[("either", "{\"k\": \"a\"}"), ("exact", "false"), ("sort", "null")]),
        search(&[("either", "k"), ("sort", "down")]),
        call("search", &[("query", "null"), ("limit", "50")]),
        call("open", &[("x.y", "1"), ("b", "-2")]),
        call("open", &[("a", "3"), ("z", "4")]),
        format!("{}\n{}", call("now", &[]), call("open", &[])),
    ] {
        assert!(accepts(&grammar, &text), "{text}");
    }
    for text in [
        call("none", &[]),
        call("now", &[("a", "1")]),
        call("write", &[]),
        call("write", &[("path", "a"), ("mode", "x")]),
        call("write", &[("path", "a"), ("lines", "[1, 2, 3]")]),
        call("write", &[("mode", "r"), ("path", "a")]),
        search(&[("filter", "{\"k\": \"abcde\"}")]),
        search(&[("filter", "a")]),
        search(&[("exact", "yes")]),
        search(&[("sort", "left")]),
        call("search", &[("query", "a"), ("limit", "51")]),
        call("open", &[("z", "a")]),
        call("open", &[("z z", "1")]),
        format!("{}{}", call("now", &[]), call("now", &[])),
        format!("{} and more", call("now", &[])),
    ] {
        assert!(!accepts(&grammar, &text), "{text}");
    }
}

/// A call as a model of no knowledge writes it, but that it likes to end values.
fn sample(grammar: &Grammar, random: &mut Random) -> String {
    const END: &[u8] = PARAMETER[2].as_bytes();
    let mut constraint = Constraint::new(grammar);
    let (mut text, mut is_ending) = (vec![], false);
    for _ in 0..4_000 {
        let mask = constraint.mask().expect("the text can go on");
        if mask.contains(256) && (text.len() > 300 || mask.count() < 3) {
            return String::from_utf8_lossy(&text).into_owned();
        }
        let matched = (1..END.len()).rev().find(|&length| text.ends_with(&END[..length]));
        is_ending = random.below(8) == 0 || is_ending && matched.is_some();
        let next = u32::from(END[matched.unwrap_or(0)]);
        let ascii = mask.iter().filter(|&byte| byte < 128).collect::<Vec<_>>();
        let token = match ascii.get(random.below(ascii.len().max(1))) {
            _ if is_ending && mask.contains(next) => next,
            Some(&byte) => byte,
            None => mask.iter().next().expect("a mask is never empty"),
        };
        constraint.accept(token).expect("the mask has it");
        text.push(u8::try_from(token).expect("a byte"));
    }
    panic!("no end: {}", String::from_utf8_lossy(&text))
}

#[test]
fn every_call_is_valid() {
    let mut found = 0;
    let cases = [
        (ToolChoice::Required, true),
        (ToolChoice::Function("search".to_owned()), true),
        (ToolChoice::Auto, false),
    ];
    for (place, (choice, begins_with_call)) in cases.into_iter().enumerate() {
        let grammar = grammar(choice);
        for seed in 0..170 {
            let mut random = Random::new(seed, place as u64);
            let text = if begins_with_call {
                sample(&grammar, &mut random)
            } else {
                let text = format!("So.\n{}", call("open", &[("b", "7")]));
                assert!(accepts(&grammar, &text), "{text}");
                text
            };
            let (shown, calls) = read(begins_with_call, &text, &mut random);
            assert_eq!(shown, if begins_with_call { "" } else { "So." }, "{text}");
            assert!(!calls.is_empty(), "{text}");
            for call in &calls {
                check(call, &text);
            }
            found += calls.len();
        }
    }
    assert!(found >= 500, "only {found} calls");
}

/// Checks a call with an independent validator.
fn check(call: &ToolCall, text: &str) {
    let tools = tools();
    let tool = tools.iter().find(|tool| tool.name == call.name).expect("a tool that is offered");
    let arguments: Value = serde_json::from_str(&call.arguments)
        .unwrap_or_else(|error| panic!("{}: {error}", call.arguments));
    assert!(arguments.is_object(), "{text}");
    if let Some(parameters) = &tool.parameters {
        let schema = Value::Object(parameters.clone());
        jsonschema::validate(&schema, &arguments)
            .unwrap_or_else(|error| panic!("{arguments}: {error}\n{text}"));
    }
}

#[test]
fn what_xml_does_not_follow_is_noted_or_refused() {
    let bounded = json!({"properties": {"name": {"type": "string", "pattern": "^a", "maxLength": 3},
        "n": {"type": "integer", "minimum": 3}, "date": {"type": "string", "format": "date"}}});
    let joined = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let compile = |tool: Tool| {
        let tools = ToolGrammar {
            tools: vec![tool],
            format: FORMAT,
            choice: ToolChoice::Required,
            parallel: true,
            text: None,
        };
        over_bytes(&GrammarSpec::Tools(tools))
    };
    let notes = |schema: &Value| {
        let grammar = compile(tool("f", schema)).expect("it is left free");
        grammar.notes().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let found = notes(&bounded);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("keyword `maxLength` at #/properties/name"), "{found:?}");
    assert!(notes(&joined)[0].contains("keyword `anyOf` at #"), "{:?}", notes(&joined));
    for schema in [bounded, joined] {
        let error = compile(tool("f", &schema).strict(true)).expect_err("it is strict");
        assert!(matches!(error, GrammarError::Tool { tool: 0, .. }), "{error}");
        assert!(error.to_string().contains("whose strings are free"), "{error}");
    }
    let free = compile(tool("f", &json!({"anyOf": [{}, {}]}))).expect("it is left free");
    assert!(accepts(&free, &call("f", &[("any", "thing"), ("n", "1")])));
}

//! Calls of tools: every text of their grammars, read as answers are.

use std::sync::Arc;

use crate::support::{Bytes, Tokens, accepts, byte_level, over_bytes, sample, sentence_piece};
use serde_json::{Map, Value, json};
use setun_grammar::{
    Constraint, Grammar, GrammarError, GrammarLimits, GrammarSpec, ToolGrammar, Vocabulary,
};
use setun_text::{TextError, Tokenizer, Tool, ToolCall, ToolCallReader, ToolChoice, ToolFormat};

pub(crate) const FORMATS: [ToolFormat; 3] =
    [ToolFormat::HERMES, ToolFormat::FALCON, ToolFormat::LLAMA];

pub(crate) fn tool(name: &str, parameters: &Value) -> Tool {
    Tool::new(name).parameters(parameters.as_object().expect("an object").clone())
}

/// Tools whose names begin alike, with schemas of all kinds.
pub(crate) fn tools() -> Vec<Tool> {
    let place = json!({
        "properties": {
            "city": {"type": "string", "minLength": 1, "maxLength": 8},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        },
        "required": ["city", "unit"],
        "additionalProperties": false,
    });
    let tree = json!({
        "type": ["object", "null"],
        "properties": {"at": {"$ref": "#/$defs/point"}, "n": {"type": "number"}},
        "required": ["at", "n"],
        "additionalProperties": false,
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": false}},
    });
    vec![tool("get", &place), tool("get.x", &tree), Tool::new("get_9")]
}

pub(crate) fn spec(format: ToolFormat, choice: ToolChoice, parallel: bool) -> GrammarSpec {
    GrammarSpec::Tools(ToolGrammar { tools: tools(), format, choice, parallel, text: None })
}

/// Text and calls of an answer.
fn read(format: ToolFormat, begins_with_call: bool, text: &str) -> (String, Vec<ToolCall>) {
    let mut reader = ToolCallReader::new(format, begins_with_call, &[], [0, 0]);
    let step = reader.push(0, text);
    let mut calls = vec![];
    step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
    (step.text + &reader.finish(), calls)
}

/// Checks calls with an independent validator.
fn check(calls: &[ToolCall]) {
    for ToolCall { name, arguments, .. } in calls {
        let tools = tools();
        let tool = tools.iter().find(|tool| tool.name == *name);
        let tool = tool.unwrap_or_else(|| panic!("there is no tool {name}"));
        let value: Value = serde_json::from_str(arguments)
            .unwrap_or_else(|error| panic!("{arguments} is no JSON: {error}"));
        let none = || Map::from_iter([("maxProperties".to_owned(), json!(0))]);
        let schema = Value::Object(tool.parameters.clone().unwrap_or_else(none));
        assert!(value.is_object(), "{arguments}");
        jsonschema::validate(&schema, &value)
            .unwrap_or_else(|error| panic!("{arguments}: {error}"));
    }
}

#[test]
fn every_call_is_valid() {
    let mut found = 0;
    for tokens in [Tokens::new(byte_level()), Tokens::new(sentence_piece())] {
        for format in FORMATS {
            for parallel in [true, false] {
                let grammar = tokens.grammar(&spec(format, ToolChoice::Required, parallel));
                let grammar = grammar.expect("it can be followed");
                for seed in 0..12 {
                    let text = match sample(&tokens, &grammar, seed, 80) {
                        Ok(text) => text,
                        // What closes most things begins another call here.
                        Err(_) if parallel && format == ToolFormat::FALCON => continue,
                        Err(error) => panic!("{error}"),
                    };
                    let text = String::from_utf8(tokens.bytes(&text)).expect("UTF-8");
                    let (shown, calls) = read(format, true, &text);
                    assert_eq!(shown, "", "{text}");
                    assert!(!calls.is_empty(), "{text}");
                    let several = parallel && format.separator.is_some();
                    assert!(several || calls.len() == 1, "{text}");
                    check(&calls);
                    found += calls.len();
                }
            }
        }
    }
    assert!(found > 150, "only {found} calls");
}

#[test]
fn a_named_tool_is_the_only_one() {
    let tokens = Tokens::new(byte_level());
    let choice = ToolChoice::Function("get.x".to_owned());
    for format in FORMATS {
        let grammar = tokens.grammar(&spec(format, choice.clone(), false)).expect("a grammar");
        for seed in 0..4 {
            let text = sample(&tokens, &grammar, seed, 40).expect("an end");
            let text = String::from_utf8(tokens.bytes(&text)).expect("UTF-8");
            let (_, calls) = read(format, true, &text);
            assert!(calls.iter().all(|call| call.name == "get.x"), "{text}");
            check(&calls);
        }
    }
}

#[test]
fn text_runs_until_the_marker() {
    let hermes = over_bytes(&spec(ToolFormat::HERMES, ToolChoice::Auto, true)).expect("a grammar");
    let call = "<tool_call>\n{\"name\": \"get_9\", \"arguments\": {}}\n</tool_call>";
    for text in [
        "",
        "Hello.\n",
        "<tool",
        "<tool_call",
        "a <tool_ca> \"1e999 is a number",
        "{\"name\": \"get_9\"}",
        call,
        &format!("\"Wait\n{call}"),
        &format!("<tool_{call}\n{call}"),
    ] {
        assert!(accepts(&hermes, text), "{text}");
    }
    for text in [
        "Hello <tool_call>",
        "<tool_call> is a tag",
        "<tool_call>\n{\"name\": \"none\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"get_9\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        &format!("{call} and more"),
        &format!("{call}{call}"),
        "\"1\n<tool_call>\n{\"name\": \"get.x\", \"arguments\": {\"at\": {}, \"n\": 1e999}}\n</tool_call>",
    ] {
        assert!(!accepts(&hermes, text), "{text}");
    }
    let one = over_bytes(&spec(ToolFormat::HERMES, ToolChoice::Auto, false)).expect("a grammar");
    assert!(accepts(&one, call) && !accepts(&one, &format!("{call}\n{call}")));
    let llama = over_bytes(&spec(ToolFormat::LLAMA, ToolChoice::Auto, true)).expect("a grammar");
    let call = "{\"name\": \"get_9\", \"parameters\": {}}";
    for text in ["", "Hello", "{\"a\": 1}", "{\"name\": 3", "Say {\"name\": \"none\"", call] {
        assert!(accepts(&llama, text), "{text}");
    }
    for text in ["{\"name\": \"none\"", &format!("{call}; {call}"), &format!("{call} and")] {
        assert!(!accepts(&llama, text), "{text}");
    }
}

/// Bytes, and the tags of calls as special tokens.
struct Tagged;

impl Tokenizer for Tagged {
    fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, TextError> {
        Bytes.encode(text, special)
    }
    fn decode(&self, ids: &[u32], skip: bool) -> Result<String, TextError> {
        Bytes.decode(ids, skip)
    }
    fn vocab_size(&self) -> usize {
        259
    }
    fn token_to_id(&self, token: &str) -> Option<u32> {
        let tag = ToolFormat::tags().iter().position(|tag| *tag == token);
        tag.map_or_else(|| Bytes.token_to_id(token), |tag| u32::try_from(257 + tag).ok())
    }
    fn id_to_token(&self, id: u32) -> Option<String> {
        let tag = usize::try_from(id).ok().and_then(|id| id.checked_sub(257));
        let tag = tag.and_then(|tag| ToolFormat::tags().get(tag).map(|tag| (*tag).to_owned()));
        tag.or_else(|| Bytes.id_to_token(id))
    }
    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        Bytes.token_bytes(id)
    }
}

#[test]
fn tags_that_are_special_tokens_are_followed_as_such() {
    let vocabulary = Arc::new(Vocabulary::new(&Tagged, &[256]).expect("a vocabulary"));
    let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
    let body = bytes("\n{\"name\": \"get.x\", \"arguments\": {\"at\": {}, \"n\": 1e9");
    let end = bytes("}}\n");
    for choice in [ToolChoice::Auto, ToolChoice::Required] {
        let spec = spec(ToolFormat::HERMES, choice.clone(), true);
        let grammar = Grammar::new(&spec, &vocabulary, &GrammarLimits::default());
        let mut constraint = Constraint::new(&grammar.expect("a grammar"));
        let before = if choice == ToolChoice::Auto { bytes("So \"") } else { vec![] };
        for token in [&before[..], &[257], &body].concat() {
            constraint.accept(token).expect("it may come");
        }
        assert!(constraint.allows(b'9'.into()).expect("no failure"));
        constraint.accept(b'9'.into()).expect("two digits of an exponent");
        assert!(!constraint.mask().expect("a mask").contains(b'9'.into()), "a third digit");
        for token in [&end[..], &[258]].concat() {
            constraint.accept(token).expect("it may come");
        }
        assert!(constraint.is_accepting().expect("no failure"));
    }
}

fn refusal(tools: Vec<Tool>, choice: ToolChoice) -> GrammarError {
    let format = ToolFormat::HERMES;
    let spec =
        GrammarSpec::Tools(ToolGrammar { tools, format, choice, parallel: true, text: None });
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let thread = thread.spawn(move || over_bytes(&spec).map(drop).expect_err("it is refused"));
    thread.expect("a thread").join().expect("it does not panic")
}

#[test]
fn hostile_tools_are_refused() {
    let nested =
        |levels| (0..levels).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    let object = |schema: Value| vec![tool("f", &schema).strict(true)];
    let wide = |count: usize| {
        let properties: Map<_, _> = (0..count).map(|name| (name.to_string(), json!({}))).collect();
        json!({ "properties": properties })
    };
    let many: Vec<_> = (0..3_000).map(|index| Tool::new(format!("f{index}"))).collect();
    let long = json!({"properties": {"a": {"const": "a".repeat(100_000)}}});
    let large = (0..20).map(|index| tool(&format!("f{index}"), &long)).collect();
    for (tools, words) in [
        (
            object(nested(200)),
            "parameters of the tool `f`: the grammar is too complex: schemas and references",
        ),
        (
            object(nested(600)),
            "parameters of the tool `f`: the grammar is too complex: JSON values in each other",
        ),
        (object(wide(2_000)), "parameters of the tool `f`: the grammar is too complex: properties"),
        (large, "the grammar is too complex: bytes of the tools"),
        (many, "tools[128].type: expected no more tools, found 3000"),
        (vec![Tool::new("\" <tool_call>")], "tools[0].function.name: expected 1 to 128 of"),
        (
            vec![Tool::new("f"), Tool::new("f")],
            "tools[1].function.name: expected a name of its own",
        ),
        (
            vec![tool("f", &json!({"type": "string"}))],
            "parameters of the tool `f`: the schema cannot be followed: `type` is not",
        ),
        (
            object(json!({"if": {}, "then": {}})),
            "parameters of the tool `f`: keyword `if` at # of the schema",
        ),
        (vec![], "there is no tool to call"),
    ] {
        let error = refusal(tools, ToolChoice::Auto).to_string();
        assert!(error.starts_with(words), "{error}\nexpected {words}");
    }
    let error = refusal(vec![Tool::new("f")], ToolChoice::Function("g".to_owned()));
    assert_eq!(error, GrammarError::NoTool);
}

//! Calls of tools, on a model that has seen none.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use setun::{
    Completion, Constraint, ConstraintState, Engine, ErrorCode, Event, FinishReason,
    GenerateOptions, GrammarSpec, Message, Model, SharedConstraint, Source, Tool, ToolCall,
    ToolChoice,
    text::{Candidates, LogitsProcessor, SharedProcessor, Step, TextError},
};
use setun_tests::fixture;

use super::{MODEL, greedy};

/// What templates of the families have of tools, and no more words than the context holds.
const HERMES: &str = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments | tojson }}</tool_call>{% endfor %}\n{% endfor %}";
const LLAMA: &str = "{% if tools %}Environment: ipython {\"parameters\": {}}{% endif %}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}\n{% endfor %}";
const FALCON: &str = "{{ '<tool_call>\\n[\\n {\"name\": \"f\", \"arguments\": {}}]' if tools else '' }}{% for m in messages %}{{ m.content }}\n{% endfor %}";
const QWEN_XML: &str = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ '<tool_call>\\n<function=' + c.function.name + '>\\n' }}{% for name, value in c.function.arguments|items %}{{ '<parameter=' + name + '>\\n' }}{{ value }}{{ '\\n</parameter>\\n' }}{% endfor %}{{ '</function>\\n</tool_call>' }}{% endfor %}\n{% endfor %}";
const PLAIN: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

/// The story model with a chat template.
fn engine(template: &str) -> Engine {
    let read = |name| (name, fs::read(fixture(MODEL).join(name)).expect("a file"));
    let files = ["config.json", "model.safetensors", "tokenizer.json"].map(read);
    let mut files: BTreeMap<_, _> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    files.insert("chat_template.jinja", template.as_bytes());
    let model = Model::from_files(Source::Folder, "stories", &files).expect("the story model");
    Engine::builder(model).build().expect("an engine")
}

pub(super) fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn tools() -> Vec<Tool> {
    let place = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1, "maxLength": 10},
            "unit": {"enum": ["C", "F"]},
        },
        "required": ["city", "unit"],
        "additionalProperties": false,
    });
    let sum = json!({
        "type": "object",
        "properties": {"of": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}},
        "required": ["of"],
        "additionalProperties": false,
    });
    vec![
        Tool::new("weather").description("Tells the weather").parameters(object(&place)),
        Tool::new("sum").parameters(object(&sum)),
        Tool::new("time"),
    ]
}

fn options(choice: ToolChoice, seed: u64) -> GenerateOptions {
    let options = GenerateOptions::new().temperature(1.0).seed(seed).max_tokens(120);
    options.tools(tools()).tool_choice(choice)
}

fn ask(engine: &Engine, options: GenerateOptions) -> Completion {
    let stream = engine.chat(vec![Message::user("Hi.")], options).expect("a stream");
    stream.wait().expect("an answer")
}

/// Checks calls with an independent validator.
fn check(calls: &[ToolCall]) {
    for ToolCall { id, name, arguments } in calls {
        assert_eq!(id.len(), 9, "{id}");
        let tools = tools();
        let tool = tools.iter().find(|tool| tool.name == *name).expect("a tool of the request");
        let none = || object(&json!({"maxProperties": 0}));
        let schema = Value::Object(tool.parameters.clone().unwrap_or_else(none));
        let value: Value = serde_json::from_str(arguments).expect("JSON");
        assert!(value.is_object(), "{arguments}");
        jsonschema::validate(&schema, &value)
            .unwrap_or_else(|error| panic!("{arguments}: {error}"));
    }
}

#[test]
fn every_family_calls_tools_with_valid_arguments() {
    for template in [HERMES, LLAMA, FALCON, PLAIN] {
        let engine = engine(template);
        let mut whole = 0;
        for seed in 0..6 {
            let options = options(ToolChoice::Required, seed).max_tokens(200);
            // The description of all would fill the context.
            let options =
                if template == PLAIN { options.tools([Tool::new("time")]) } else { options };
            let found = ask(&engine, options.parallel_tool_calls(seed % 2 == 0));
            assert_eq!(found.text, "");
            assert!(seed % 2 == 0 || found.tool_calls.len() == 1);
            let mut calls = &found.tool_calls[..];
            if found.done.finish_reason == FinishReason::Length {
                calls = &calls[..calls.len().saturating_sub(1)];
            } else {
                assert_eq!(found.done.finish_reason, FinishReason::ToolCalls);
                assert!(!calls.is_empty());
                whole += 1;
            }
            check(calls);
        }
        assert!(whole >= 2, "{whole} of 6 came to an end: {template}");
    }
}

#[test]
fn calls_in_xml_are_json_to_the_caller_and_xml_to_the_model() {
    let engine = engine(QWEN_XML);
    assert_eq!(engine.tool_format().name, "qwen-xml");
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": {"enum": ["C", "F"]},
            "of": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
            "exact": {"type": "boolean"},
        },
        "required": ["unit", "of"],
        "additionalProperties": false,
    });
    let tools = [Tool::new("sum").parameters(object(&schema)), Tool::new("time")];
    let mut whole = 0;
    for seed in 0..6 {
        let options = options(ToolChoice::Required, seed).tools(tools.clone());
        let mut messages = vec![Message::user("Hi.")];
        let found = ask(&engine, options.clone().parallel_tool_calls(false));
        assert_eq!(found.text, "");
        if found.done.finish_reason == FinishReason::Length {
            continue;
        }
        whole += 1;
        let [call] = &found.tool_calls[..] else { panic!("{:?}", found.tool_calls) };
        let value: Value = serde_json::from_str(&call.arguments).expect("JSON");
        match call.name.as_str() {
            "time" => assert_eq!(call.arguments, "{}"),
            _ => jsonschema::validate(&schema, &value).expect("it is valid"),
        }
        messages.extend([Message::calls("", &found.tool_calls), Message::tool(call, "5")]);
        let again = engine.chat(messages, options.max_tokens(1)).expect("a stream");
        let again = again.wait().expect("an answer");
        assert!(again.usage.prompt_tokens > found.usage.prompt_tokens, "{:?}", again.usage);
    }
    assert!(whole >= 3, "{whole} of 6 came to an end");
}

#[test]
fn pieces_come_as_they_are_written_and_join_to_the_calls() {
    let engine = engine(HERMES);
    let weather = |seed| options(ToolChoice::Function("weather".to_owned()), seed);
    let stream = engine.chat(vec![Message::user("Hi.")], weather(3));
    let (mut joined, mut pieces, mut named) = (vec![], 0, vec![]);
    for event in stream.expect("a stream").blocking() {
        if let Event::Text(delta) = event.expect("an event") {
            pieces += usize::from(!delta.tool_calls.is_empty());
            for piece in &delta.tool_calls {
                assert_eq!(piece.id.is_some(), piece.name.is_some());
                named.extend(piece.name.as_ref().map(|_| piece.index));
                ToolCall::join(&mut joined, piece);
            }
        }
    }
    let again = ask(&engine, weather(3));
    assert_eq!(joined, again.tool_calls, "ids are of the request");
    assert_eq!(named, (0..joined.len()).collect::<Vec<_>>(), "each has its name once");
    assert!(pieces > 0, "they come with tokens");
    let other = ask(&engine, weather(4));
    assert_ne!(joined[0].id, other.tool_calls[0].id);
}

#[test]
fn a_named_tool_is_called_and_one_call_alone_if_so_requested() {
    let engine = engine(HERMES);
    for seed in 0..3 {
        let choice = ToolChoice::Function("sum".to_owned());
        let found = ask(&engine, options(choice, seed).parallel_tool_calls(false));
        if found.done.finish_reason == FinishReason::ToolCalls {
            check(&found.tool_calls);
        }
        let names: Vec<_> = found.tool_calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["sum"]);
    }
}

/// Tokens of a text, without special ones.
pub(super) fn beginning(engine: &Engine, text: &str) -> Vec<u32> {
    let mut tokens = engine.tokenize(text).expect("tokens");
    tokens.retain(|&token| !engine.detokenize(&[token]).expect("text").is_empty());
    tokens
}

/// Writes these tokens first.
pub(super) struct Begins(pub(super) Vec<u32>);

impl LogitsProcessor for Begins {
    fn process(&self, candidates: &mut Candidates, step: &Step<'_>) -> Result<(), TextError> {
        if let Some(&wanted) = self.0.get(step.generated().len()) {
            candidates.retain(|token, _| token == wanted);
        }
        Ok(())
    }
}

#[test]
fn text_is_free_until_a_call_begins() {
    let engine = engine(HERMES);
    let story = ask(&engine, options(ToolChoice::Auto, 1));
    assert!(!story.text.is_empty() && story.tool_calls.is_empty());
    assert_ne!(story.done.finish_reason, FinishReason::ToolCalls);
    for seed in 0..2 {
        let begins: SharedProcessor = Begins(beginning(&engine, "Wait<tool\n<tool_call>")).into();
        let found = ask(&engine, options(ToolChoice::Auto, seed).logits_processors([begins]));
        assert_eq!(found.text.trim_start(), "Wait<tool");
        assert_ne!(found.done.finish_reason, FinishReason::Stop);
        if found.done.finish_reason == FinishReason::ToolCalls {
            check(&found.tool_calls);
        }
    }
}

/// Text, pieces of calls and end are those of the undisturbed answer.
#[test]
fn answers_with_calls_go_on_after_any_token() {
    let engine = engine(HERMES);
    let begins: SharedProcessor = Begins(beginning(&engine, "Wait\n<tool_call>")).into();
    let named = |name: &str| options(ToolChoice::Function(name.to_owned()), 1);
    for (options, reason) in [
        (named("time").parallel_tool_calls(false), FinishReason::ToolCalls),
        (named("weather").max_tokens(30), FinishReason::Length),
        (options(ToolChoice::Auto, 2).logits_processors([begins]), FinishReason::ToolCalls),
    ] {
        // A random model does not always come to a call within its tokens.
        let mut seeds = (1..50).map(|seed| options.clone().seed(seed));
        let found = seeds.find_map(|options| {
            let whole = ask(&engine, options.clone());
            let is_so = whole.done.finish_reason == reason && !whole.tool_calls.is_empty();
            is_so.then_some((options, whole))
        });
        let (options, whole) = found.expect("a seed whose answer has a call and ends so");
        for cut in 0..=whole.tokens.len() {
            let known = whole.tokens[..cut].to_vec();
            let rest = ask(&engine, options.clone().generated_tokens(known));
            assert_eq!(rest.deltas, whole.deltas[cut..], "after {cut} tokens");
            assert_eq!(rest.done.finish_reason, reason, "after {cut} tokens");
            assert_eq!(rest.done.usage.completion_tokens, whole.tokens.len());
        }
    }
}

#[test]
fn without_a_choice_of_tools_there_are_none() {
    let engine = engine(HERMES);
    let plain = options(ToolChoice::Auto, 5).tools(Vec::<Tool>::new());
    let plain = ask(&engine, plain);
    let none = ask(&engine, options(ToolChoice::None, 5));
    assert_eq!((none.tokens, none.done.usage), (plain.tokens, plain.done.usage));
    let offered = ask(&engine, options(ToolChoice::Auto, 5));
    assert!(offered.done.usage.prompt_tokens > plain.done.usage.prompt_tokens);
}

#[test]
fn calls_and_results_go_back_into_the_conversation() {
    for template in [HERMES, PLAIN] {
        let engine = engine(template);
        let arguments = "{\"of\": [1, 2]}".to_owned();
        let call = ToolCall { id: "123456789".to_owned(), name: "sum".to_owned(), arguments };
        let messages = vec![
            Message::user("Add."),
            Message::calls("", std::slice::from_ref(&call)),
            Message::tool(&call, "3"),
        ];
        let tokens = engine
            .tokenize_chat(&messages, &GenerateOptions::new().tools(tools()[2..].to_vec()))
            .expect("tokens");
        let prompt = engine.detokenize(&tokens).expect("text");
        assert!(prompt.contains("\"of\":") && prompt.contains("time"), "{prompt}");
        let shown = if template == PLAIN {
            "<tool_response>\n3\n</tool_response>"
        } else {
            "</tool_call>3"
        };
        assert!(prompt.contains(shown), "{prompt}");
        let found = engine.chat(messages, greedy(3)).expect("a stream").wait().expect("an answer");
        assert_eq!(found.tokens.len(), 3);
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let engine = engine(HERMES);
    let user = || vec![Message::user("Hi.")];
    let refused = |options: GenerateOptions, words: &str| {
        let error = engine.chat(user(), options).expect_err(words);
        assert_eq!(error.code(), ErrorCode::BadOption, "{error}");
        assert!(error.to_string().contains(words), "{error}\nexpected {words}");
    };
    refused(GenerateOptions::new().tool_choice(ToolChoice::Required), "`required` is no tool");
    refused(options(ToolChoice::Function("x".to_owned()), 0), "the tool choice `x` is no tool");
    let custom = SharedConstraint::new(Anything);
    refused(options(ToolChoice::Auto, 0).constraint(custom), "option `constraint` is another");
    let twice = vec![Tool::new("f"), Tool::new("f")];
    refused(options(ToolChoice::Auto, 0).tools(twice), "tools[1].function.name: expected a name");
    let schema = object(&json!({"type": "object", "not": {}}));
    let odd = vec![Tool::new("f").parameters(schema).strict(true)];
    refused(options(ToolChoice::Auto, 0).tools(odd), "tool `f`: keyword `not` at #");
    let error = engine.generate("Hi.", options(ToolChoice::Auto, 0)).expect_err("a text");
    assert!(error.to_string().contains("option `tools` is given with a text"), "{error}");
    let beams =
        engine.beams(user(), setun::BeamOptions::new(2), GenerateOptions::new().tools(tools()));
    assert!(beams.is_err());
}

/// A constraint of no grammar.
struct Anything;

impl Constraint for Anything {
    fn begin(&self) -> Box<dyn ConstraintState> {
        unreachable!("no text begins")
    }
}

#[test]
fn an_answer_beside_tools_may_have_a_format() {
    let schema = json!({"type": "object", "properties": {"name": {"enum": ["weather", "Bob"]}},
        "required": ["name"], "additionalProperties": false});
    for template in [HERMES, LLAMA, FALCON, PLAIN] {
        let engine = engine(template);
        let form = engine.grammar(&GrammarSpec::JsonSchema(schema.clone())).expect("a grammar");
        for (choice, is_call, is_text) in [
            (ToolChoice::Auto, true, true),
            (ToolChoice::Required, true, false),
            (ToolChoice::None, false, true),
        ] {
            for seed in 0..4 {
                let options = options(choice.clone(), seed).tools([Tool::new("time")]);
                let options = options.parallel_tool_calls(false).constraint(form.clone());
                let found = ask(&engine, options);
                if found.tool_calls.is_empty() {
                    assert!(is_text, "{found:?}");
                    let value: Value = serde_json::from_str(&found.text).expect("JSON");
                    assert!(jsonschema::is_valid(&schema, &value), "{value}");
                } else {
                    assert!(is_call && found.text.is_empty(), "{found:?}");
                    assert_eq!(found.tool_calls[0].name, "time");
                    assert_eq!(found.tool_calls[0].arguments, "{}");
                }
            }
        }
    }
}

#[test]
fn a_part_that_cannot_be_constrained_is_free_and_told() {
    let engine = engine(HERMES);
    let schema = object(&json!({"type": "object", "properties": {"a": {"enum": ["b"], "not": {}}},
        "required": ["a"], "additionalProperties": false}));
    let tool = Tool::new("f").parameters(schema);
    let options =
        || options(ToolChoice::Required, 1).tools([tool.clone()]).parallel_tool_calls(false);
    let stream = engine.chat(vec![Message::user("Hi.")], options()).expect("a stream");
    assert_eq!(stream.warnings().len(), 1);
    assert!(stream.warnings()[0].contains("keyword `not` at #/properties/a"), "{stream:?}");
    let found = stream.wait().expect("an answer");
    assert_eq!(found.warnings.len(), 1);
    assert_eq!(found.tool_calls[0].arguments.replace(": ", ":"), "{\"a\":\"b\"}");
    assert_eq!(ask(&engine, options()).warnings, found.warnings, "also where it is compiled");
    assert!(ask(&engine, GenerateOptions::new().max_tokens(1)).warnings.is_empty());
}

//! Calls in XML of a hybrid model with random weights, under Qwen 3.5's own template.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use setun::{
    Completion, Engine, Event, FinishReason, GenerateOptions, Message, Model, Source, Tool,
    ToolCall, ToolChoice, text::SharedProcessor,
};
use setun_tests::{fixture, long_or};

use super::tools::{Begins, beginning, object};

fn engine() -> Engine {
    let folder = fixture("families/qwen35-r1/hf");
    let names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];
    let read = |name| (name, fs::read(folder.join(name)).expect("a file"));
    let files = names.map(read);
    let mut files: BTreeMap<_, _> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let template = fs::read(fixture("chat-templates/Qwen3.5-4B.jinja")).expect("a template");
    files.insert("chat_template.jinja", &template);
    let model = Model::from_files(Source::Folder, "hybrid", &files).expect("the model");
    Engine::builder(model).build().expect("an engine")
}

/// The schema of a function's arguments: of each type one, but that texts are listed or short.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "of": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
            "exact": {"type": "boolean"},
            "place": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 4}},
                "required": ["name"], "additionalProperties": false},
            "note": {"type": ["null", "boolean"]},
        },
        "required": ["unit", "days"],
        "additionalProperties": false,
    })
}

fn options(choice: ToolChoice, seed: u64) -> GenerateOptions {
    let tools = [Tool::new("weather").parameters(object(&schema())), Tool::new("now")];
    let options = GenerateOptions::new().temperature(1.0).seed(seed).max_tokens(400);
    options.tools(tools).tool_choice(choice).parallel_tool_calls(seed.is_multiple_of(2))
}

/// The answer, whose streamed pieces join to its calls.
fn ask(engine: &Engine, options: &GenerateOptions) -> Completion {
    let messages = || vec![Message::user("Hi.")];
    let mut joined = vec![];
    for event in engine.chat(messages(), options.clone()).expect("a stream").blocking() {
        if let Event::Text(delta) = event.expect("an event") {
            delta.tool_calls.iter().for_each(|piece| ToolCall::join(&mut joined, piece));
        }
    }
    let whole = engine.chat(messages(), options.clone()).expect("a stream");
    let whole = whole.wait().expect("an answer");
    assert_eq!(whole.tool_calls, joined);
    whole
}

fn check(call: &ToolCall) {
    let value: Value = serde_json::from_str(&call.arguments).expect("JSON");
    match call.name.as_str() {
        "now" => assert_eq!(call.arguments, "{}"),
        _ => jsonschema::validate(&schema(), &value).expect("it is valid"),
    }
}

#[test]
fn calls_are_valid_in_every_mode_with_and_without_budgets() {
    let engine = engine();
    assert_eq!(engine.tool_format().name, "qwen-xml");
    let (mut found, mut thoughts) = (0, 0);
    let named = ToolChoice::Function("weather".to_owned());
    for choice in [ToolChoice::Required, named, ToolChoice::Auto] {
        for budget in [Some(0), Some(7), None] {
            for seed in 0..long_or(60, 3) {
                let mut options = options(choice.clone(), seed);
                options.max_thinking_tokens = budget;
                if choice == ToolChoice::Auto {
                    // A random model does not come to a call by itself.
                    let begins = beginning(&engine, "Yes.\n<tool_call>");
                    let begins: SharedProcessor = Begins(begins).into();
                    options = options.enable_thinking(false).logits_processors([begins]);
                }
                let answer = ask(&engine, &options);
                let usage = &answer.done.usage;
                assert!(usage.reasoning_tokens <= budget.unwrap_or(usize::MAX), "{usage:?}");
                thoughts += usize::from(usage.reasoning_tokens > 0);
                let mut calls = &answer.tool_calls[..];
                if answer.done.finish_reason == FinishReason::Length {
                    calls = &calls[..calls.len().saturating_sub(1)]; // the last is cut
                } else {
                    assert_eq!(answer.done.finish_reason, FinishReason::ToolCalls);
                    assert!(!calls.is_empty(), "{answer:?}");
                }
                let text = if choice == ToolChoice::Auto { "Yes." } else { "" };
                assert_eq!(answer.text.trim(), text);
                calls.iter().for_each(check);
                found += calls.len();
            }
        }
    }
    assert!(found >= long_or(500, 18), "only {found} calls");
    assert!(thoughts > 0, "it thinks");
}

#[test]
fn calls_go_back_as_the_template_writes_objects() {
    let engine = engine();
    let arguments = json!({"unit": "C", "days": 3, "of": [1, 2], "exact": true,
        "place": {"name": "K"}, "note": null});
    let call = ToolCall {
        id: "123456789".to_owned(),
        name: "weather".to_owned(),
        arguments: arguments.to_string(),
    };
    let messages = [
        Message::user("Hi."),
        Message::calls("", std::slice::from_ref(&call)).with_reasoning("I look."),
        Message::tool(&call, "rain"),
    ];
    let options = options(ToolChoice::Auto, 0);
    let tokens = engine.tokenize_chat(&messages, &options).expect("tokens");
    let prompt = engine.detokenize(&tokens).expect("text");
    for part in [
        "<think>\nI look.\n</think>",
        "<tool_call>\n<function=weather>\n<parameter=unit>\nC\n</parameter>\n",
        "<parameter=days>\n3\n</parameter>\n<parameter=of>\n[1, 2]\n</parameter>\n",
        "<parameter=place>\n{\"name\": \"K\"}\n</parameter>\n",
        "</function>\n</tool_call>",
        "<tool_response>\nrain\n</tool_response>",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
}

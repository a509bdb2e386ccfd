//! Calls as the templates of real models write them, found again.

use std::collections::BTreeMap;

use crate::chat_template::real_template;
use crate::support::json as read_json;
use setun_text::{ToolCallParser, ToolFormat};

#[test]
fn calls_that_templates_write_are_found_again() {
    let golden = read_json("chat-templates/rendered.json");
    let messages = &golden["cases"]["tool call"]["messages"];
    let expected = &messages[1]["tool_calls"][0]["function"];
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (file, cases) in golden["rendered"].as_object().expect("an object") {
        let Some(format) = real_template(file).tool_format() else { continue };
        let Some(text) = cases["tool call"]["text"].as_str() else { continue };
        // What the model wrote comes behind the question.
        let question = messages[0]["content"].as_str().expect("a text");
        let Some(asked) = text.rfind(question) else { continue };
        let answer = &text[asked + question.len()..];
        let begins = match format {
            ToolFormat::Llama => answer.find("{\"name\""),
            ToolFormat::Hermes => answer.find("<tool_call>"),
            ToolFormat::Mistral => answer.find("[TOOL_CALLS]"),
            _ => answer.find("<function="),
        };
        let Some(begins) = begins else { panic!("{file}: no call of {format:?} in {answer}") };
        let written = &answer[begins..];
        let mut parser = ToolCallParser::new(format);
        let mut calls = Vec::new();
        for character in written.chars() {
            let step = parser.push(character.encode_utf8(&mut [0; 4]));
            assert_eq!(step.text, "", "{file}");
            calls = step.calls;
            if !calls.is_empty() {
                break;
            }
        }
        assert_eq!(calls.len(), 1, "{file}: {written}");
        assert_eq!(expected["name"], calls[0].name, "{file}");
        assert_eq!(expected["arguments"].as_object(), Some(&calls[0].arguments), "{file}");
        found.entry(format!("{format:?}")).or_default().push(file);
    }
    assert!(found.values().map(Vec::len).sum::<usize>() >= 14, "{found:#?}");
    assert_eq!(found.len(), 4, "{found:#?}");
}

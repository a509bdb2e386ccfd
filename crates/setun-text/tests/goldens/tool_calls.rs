//! Calls as the templates of real models write them, read again.

use std::collections::BTreeMap;

use crate::chat_template::real_template;
use crate::support::json as read_json;
use serde_json::{Map, json};
use setun_text::{Message, RenderOptions, Tool, ToolCall, ToolCallReader, ToolFormat};

/// What a template writes for an answer with this call, behind the question.
fn written(file: &str, messages: &[Message]) -> Option<String> {
    let template = real_template(file);
    let prepared = template.prepare_tools(messages, &[rain()]).expect("prepared");
    let options = RenderOptions { tools: prepared.tools, ..RenderOptions::default() };
    let text = template.render(&prepared.messages, &options).ok()?;
    let question = messages[0].content.as_deref()?;
    Some(text[text.rfind(question)? + question.len()..].to_owned())
}

/// A function whose arguments are a text and a list.
fn rain() -> Tool {
    let properties = json!({"city": {"type": "string"}, "days": {"type": "array"}});
    Tool::new("rain").parameters(Map::from_iter([("properties".to_owned(), properties)]))
}

#[test]
fn calls_that_templates_write_are_read_again() {
    let golden = read_json("chat-templates/rendered.json");
    let call = ToolCall {
        id: "abcdefghi".to_owned(),
        name: "rain".to_owned(),
        arguments: r#"{"city": "Z {\"}\"", "days": [1, 2]}"#.to_owned(),
    };
    let messages =
        [Message::user("Will it rain?"), Message::calls("", std::slice::from_ref(&call))];
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in golden["rendered"].as_object().expect("an object").keys() {
        let Some(format) = real_template(file).tool_format() else { continue };
        let Some(answer) = written(file, &messages) else { continue };
        let begins = answer.find(format.marker);
        let begins = begins.unwrap_or_else(|| panic!("{file}: no {} in {answer}", format.name));
        let mut reader = ToolCallReader::new(format, true, &[], [0, 0]).with_functions(&[rain()]);
        let mut calls = Vec::new();
        for character in answer[begins..].chars() {
            let step = reader.push(0, character.encode_utf8(&mut [0; 4]));
            step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
        }
        assert_eq!(calls.len(), 1, "{file}: {answer}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(calls[0].name, call.name, "{file}");
        assert_eq!(value(&calls[0].arguments), value(&call.arguments), "{file}");
        found.entry(format.name).or_default().push(file);
    }
    assert!(found["hermes"].len() >= 6 && found["llama"].len() >= 3, "{found:#?}");
}

/// The families of the models that run here, by their real templates.
#[test]
fn formats_are_those_of_the_families() {
    let format = |file: &str| real_template(file).tool_format();
    assert_eq!(format("Qwen-Qwen3-0.6B.jinja"), Some(ToolFormat::HERMES));
    assert_eq!(
        format("NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja"),
        Some(ToolFormat::HERMES)
    );
    assert_eq!(format("meta-llama-Llama-3.2-3B-Instruct.jinja"), Some(ToolFormat::LLAMA));
    for xml in ["Qwen3-Coder.jinja", "Qwen3.5-4B.jinja"] {
        assert_eq!(format(xml), Some(ToolFormat::QWEN_XML), "{xml}");
    }
    for generic in ["google-gemma-2-2b-it.jinja", "ByteDance-Seed-OSS.jinja", "GLM-4.6.jinja"] {
        assert_eq!(format(generic), None, "{generic}");
    }
}

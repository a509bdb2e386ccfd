//! Prompts as `apply_chat_template` of transformers writes them, and real models' templates.

use crate::support::{TOKENIZERS, entries, fixture, ids, json as read_json, read, tokenizer};
use serde_json::{Value, json};
use setun_text::{
    ChatTemplate, ChatTemplateFiles, CivilTime, Message, RenderOptions, TextError, Tokenizer as _,
};

/// The template in a `tokenizer_config.json`.
fn from_config(config: &Value) -> ChatTemplate {
    let bytes = serde_json::to_vec(config).expect("a JSON value");
    let files =
        ChatTemplateFiles { tokenizer_config: Some(&bytes), ..ChatTemplateFiles::default() };
    ChatTemplate::from_files(files).expect("a good file").expect("it holds a template")
}

fn messages(list: &Value) -> Vec<Message> {
    serde_json::from_value(list.clone()).expect("messages with role and content")
}

#[test]
fn renders_and_tokenizes_as_the_reference() {
    for folder in TOKENIZERS {
        let golden = read_json(&format!("golden/{folder}/golden.json"));
        let mut config = read_json(&format!("golden/{folder}/tokenizer_config.json"));
        let inline = from_config(&config);
        let tokenizer = tokenizer(folder);
        let mut refused = 0;
        for case in entries(&golden["chat"]) {
            let name = case["template"].as_str().expect("a name");
            config["chat_template"] = golden["templates"][name].clone();
            let options = RenderOptions {
                add_generation_prompt: case["add_generation_prompt"] == true,
                ..RenderOptions::default()
            };
            let rendered = from_config(&config).render(&messages(&case["messages"]), &options);
            if let Some(error) = case["error"].as_str() {
                let Err(TextError::TemplateRefused { message }) = rendered else {
                    panic!("{rendered:?} instead of a refusal: {case}");
                };
                assert!(error.ends_with(&message), "{message} instead of {error}");
                refused += 1;
                continue;
            }
            let text = rendered.expect("the reference renders it");
            assert_eq!(case["text"], text, "{folder}");
            assert_eq!(tokenizer.encode(&text, false).expect("any text"), ids(&case["ids"]));
            if golden["default_template"] == name {
                let same = inline.render(&messages(&case["messages"]), &options);
                assert_eq!(same.expect("the same template"), text);
            }
        }
        assert!(refused > 0, "some conversations are refused");
    }
}

/// Every variable that a server would give.
fn full_options() -> RenderOptions {
    RenderOptions {
        add_generation_prompt: true,
        now: Some(CivilTime::from_unix_seconds(1_753_531_200)),
        ..RenderOptions::default()
    }
}

fn real_template(file: &str) -> ChatTemplate {
    let config = json!({"bos_token": "<|bos|>", "eos_token": {"content": "<|eos|>"}});
    let config = serde_json::to_vec(&config).expect("a JSON value");
    let files = ChatTemplateFiles {
        tokenizer_config: Some(&config),
        chat_template_jinja: Some(&read(&format!("chat-templates/{file}"))),
        chat_template_json: None,
    };
    let template =
        ChatTemplate::from_files(files).unwrap_or_else(|error| panic!("{file}: {error}"));
    template.expect("the file is there")
}

fn real_templates() -> Vec<String> {
    let folder = std::fs::read_dir(fixture("chat-templates")).expect("the folder is there");
    let names = folder.map(|entry| entry.expect("an entry").file_name().into_string());
    let mut names: Vec<String> = names
        .map(|name| name.expect("a name in ASCII"))
        .filter(|name| name.ends_with(".jinja"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 55);
    names
}

#[test]
fn every_real_template_renders_a_plain_conversation() {
    let conversation = [
        Message::user("What is ternary?"),
        Message::assistant("Three values."),
        Message::user("Which <ones> & \"why\"?"),
    ];
    let mut failures = Vec::new();
    for file in real_templates() {
        match real_template(&file).render(&conversation, &full_options()) {
            Ok(text) => {
                for message in &conversation {
                    if !text.contains(&message.content) {
                        failures.push(format!("{file}: {:?} is not in {text:?}", message.content));
                    }
                }
            }
            Err(TextError::TemplateRefused { message }) => {
                failures.push(format!("{file}: refuses: {message}"))
            }
            Err(error) => failures.push(format!("{file}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

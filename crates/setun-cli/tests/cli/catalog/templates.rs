//! Formats of chat templates: what each word of the catalog stands for.

use setun::{
    hub::{catalog, catalog::CHAT_TEMPLATES},
    text::{ChatTemplate, ChatTemplateFiles, Message, RenderOptions},
};

use super::repository::tokenizer_config;

/// A question in each format, up to the answer.
const PROMPTS: [(&str, &str); 6] = [
    ("bitnet", "<|begin_of_text|>User: Hello<|eot_id|>Assistant: "),
    ("chatml", "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"),
    ("falcon-e", "userHello\nassistant\n"),
    ("falcon3", "<|user|>\nHello\n<|assistant|>\n"),
    (
        "llama3",
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>\
         <|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    ("qwen3.5", "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n"),
];

#[test]
fn each_format_is_what_its_name_says() {
    assert_eq!(PROMPTS.map(|(name, _)| name), CHAT_TEMPLATES);
    let options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
    let mut seen = vec![];
    for entry in catalog() {
        let config = tokenizer_config(entry).to_string();
        let files = ChatTemplateFiles {
            tokenizer_config: Some(config.as_bytes()),
            ..ChatTemplateFiles::default()
        };
        let template = ChatTemplate::from_files(files).expect("a template");
        assert_eq!(template.is_some(), entry.chat_template.is_some(), "{}", entry.name);
        let (Some(template), Some(name)) = (template, entry.chat_template.as_deref()) else {
            continue;
        };
        let (_, expected) = PROMPTS.iter().find(|(known, _)| *known == name).expect(name);
        let found = template.render(&[Message::user("Hello")], &options).expect("a prompt");
        assert_eq!(found, *expected, "{}", entry.name);
        seen.push(name);
    }
    assert!(CHAT_TEMPLATES.iter().all(|name| seen.contains(name)), "{seen:?}");
}

/// The document shows the same texts.
#[test]
fn the_document_lists_each_format() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hub.md");
    let document = std::fs::read_to_string(path).expect("the document");
    for (name, prompt) in PROMPTS {
        let prompt = prompt.trim_start_matches("<|begin_of_text|>");
        let shown = prompt.replace('\n', "⏎");
        let line = format!("- `{name}`: `{shown}`\n");
        assert!(document.contains(&line), "no line {line}");
    }
}

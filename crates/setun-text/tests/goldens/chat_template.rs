//! Prompts as `apply_chat_template` of transformers writes them, and real models' templates.

use crate::support::{TOKENIZERS, entries, fixture, ids, json as read_json, read, tokenizer};
use serde_json::{Value, json};
use setun_text::{
    ChatTemplate, ChatTemplateFiles, CivilTime, Message, MessageFault, RenderOptions, TextError,
    Tokenizer as _,
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

pub(crate) fn real_template(file: &str) -> ChatTemplate {
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

fn options(case: &Value, now: CivilTime) -> RenderOptions {
    RenderOptions {
        add_generation_prompt: case["add_generation_prompt"] == true,
        continue_final_message: false,
        tools: case["tools"].as_array().cloned(),
        documents: None,
        now: Some(now),
        variables: case["variables"].as_object().cloned().unwrap_or_default(),
        interrupt: None,
    }
}

/// In Jinja, text joined to a `safe` text is escaped for HTML, which one template does to its
/// tools, surely without meaning to. We write them as they are.
fn without_html(expected: &Value) -> Value {
    let text = expected["text"].as_str().expect("it renders");
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", "\"");
    json!({ "text": plain.replace("&amp;", "&") })
}

/// What Jinja2 renders or refuses we render or refuse alike. Where it fails (most often on a
/// variable the template does not check for) there is nothing to compare.
#[test]
pub(crate) fn real_templates_render_as_jinja_renders_them() {
    let golden = read_json("chat-templates/rendered.json");
    assert_eq!(golden["now"], "2025-07-26T12:00:05");
    let now = CivilTime::from_unix_seconds(1_753_531_205);
    let mut differences = Vec::new();
    let mut compared = 0;
    for (file, expected) in golden["rendered"].as_object().expect("an object") {
        let template = real_template(file);
        for (name, case) in golden["cases"].as_object().expect("an object") {
            let expected = match (file.as_str(), name.as_str()) {
                ("meetkai-functionary-medium-v3.1.jinja", "tools" | "tool call") => {
                    without_html(&expected[name])
                }
                _ => expected[name].clone(),
            };
            let found = match template.render(&messages(&case["messages"]), &options(case, now)) {
                Ok(text) => json!({ "text": text }),
                Err(TextError::TemplateRefused { message }) => json!({ "refused": message }),
                Err(error) => json!({ "failed": error.to_string() }),
            };
            if expected.get("failed").is_none() {
                compared += 1;
                if expected != found {
                    differences.push(format!("{file}, {name}:\n  {expected}\n  {found}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 290, "only {compared} prompts");
}

/// A user and an assistant, and whatever variables a template cannot do without.
///
/// One template was changed for another engine: it sets entries of messages, which Jinja, too,
/// does not allow. It takes a conversation without answers.
#[test]
fn every_real_template_takes_a_plain_conversation() {
    let golden = read_json("chat-templates/rendered.json");
    let now = CivilTime::from_unix_seconds(1_753_531_205);
    let mut options = options(&golden["cases"]["plain"], now);
    options.variables.insert("functions".to_owned(), json!("[]"));
    options.variables.insert("datetime".to_owned(), json!("2025-07-26"));
    let conversation = messages(&golden["cases"]["plain"]["messages"]);
    for file in golden["rendered"].as_object().expect("an object").keys() {
        let changes_answers = file == "MiroThinker.jinja";
        let conversation = &conversation[..if changes_answers { 1 } else { conversation.len() }];
        let text = real_template(file).render(conversation, &options);
        let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
        for message in conversation {
            let content = message.content.as_deref().expect("a text");
            assert!(text.contains(content.trim()), "{file}: {text}");
        }
    }
}

/// A call of a function without a text is written as one with an empty text, or refused.
#[test]
fn a_call_needs_no_content() {
    let golden = read_json("chat-templates/rendered.json");
    let now = CivilTime::from_unix_seconds(1_753_531_205);
    let case = &golden["cases"]["tool call"];
    let with_content = messages(&case["messages"]);
    let mut conversation = with_content.clone();
    conversation[1].content = None;
    let mut refused = 0;
    for file in golden["rendered"].as_object().expect("an object").keys() {
        let template = real_template(file);
        let render = |messages: &[Message]| template.render(messages, &options(case, now));
        match (render(&conversation), render(&with_content)) {
            (Err(TextError::Message { index: 1, fault: MessageFault::Empty }), _) => refused += 1,
            (Ok(found), Ok(expected))
                if file == "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja" =>
            {
                let answer = "<｜Assistant｜><｜end▁of▁sentence｜>";
                assert_eq!(found, expected.replacen(answer, "", 1), "{file}");
            }
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{file}"),
            (Err(found), Err(expected)) => assert_eq!(found.to_string(), expected.to_string()),
            (found, _) if file == DECIDES_BY_NONE => assert!(found.is_err(), "{found:?}"),
            (found, _) => panic!("{file}: {found:?}"),
        }
    }
    assert_eq!(refused, 7, "templates without calls");
}

/// A template that writes a call only where the content is `none`, with its arguments as text.
const DECIDES_BY_NONE: &str = "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja";

#[test]
fn a_template_that_decides_by_none_is_given_none() {
    let template = real_template(DECIDES_BY_NONE);
    let call = json!({"type": "function", "function": {"name": "rain", "arguments": "{}"}});
    let write = |content: Value| {
        let answer = json!({"role": "assistant", "content": content, "tool_calls": [call]});
        let conversation = messages(&json!([{"role": "user", "content": "Hi"}, answer]));
        template.render(&conversation, &RenderOptions::default()).expect("a text")
    };
    assert!(write(Value::Null).contains("function<｜tool▁sep｜>rain"));
    assert!(!write(json!("")).contains("rain"));
}

#[test]
fn slices_are_those_of_python() {
    let cases = read_json("chat-templates/slices.json");
    for case in cases["slices"].as_array().expect("a list") {
        let part = |place: usize| case[place].as_str().expect("a text");
        let (text, slice, expected) = (part(0), part(1), part(2));
        let template =
            format!("{{{{ '{text}'[{slice}] }}}}|{{{{ ('{text}' | list)[{slice}] | join }}}}");
        let template = from_config(&json!({ "chat_template": template }));
        let rendered = template.render(&[], &RenderOptions::default()).expect("a slice");
        assert_eq!(rendered, format!("{expected}|{expected}"), "{text}[{slice}]");
    }
}

#[test]
fn every_real_template_is_in_the_golden_file() {
    let folder = std::fs::read_dir(fixture("chat-templates")).expect("the folder is there");
    let files = folder.map(|entry| entry.expect("an entry").path());
    let templates = files.filter(|path| path.extension().is_some_and(|end| end == "jinja")).count();
    let golden = read_json("chat-templates/rendered.json");
    assert_eq!(golden["rendered"].as_object().map(serde_json::Map::len), Some(templates));
    assert_eq!(templates, 55);
}

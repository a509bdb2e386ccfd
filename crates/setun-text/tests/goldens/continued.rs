//! Last messages that are continued, as transformers renders them.

use serde_json::{Value, json};
use setun_text::{CivilTime, Message, MessageFault, RenderOptions, TextError};

use crate::{chat_template::real_template, support::json as read_json};

fn render(file: &str, conversation: &Value) -> Result<String, TextError> {
    let conversation: Vec<Message> =
        serde_json::from_value(conversation.clone()).expect("messages");
    let options = RenderOptions {
        add_generation_prompt: true, // of no effect
        continue_final_message: true,
        now: Some(CivilTime::from_unix_seconds(1_753_531_205)),
        ..RenderOptions::default()
    };
    real_template(file).render(&conversation, &options)
}

#[test]
fn prompts_end_where_those_of_transformers_end() {
    let golden = read_json("chat-templates/continued.json");
    assert_eq!(golden["now"], "2025-07-26T12:00:05");
    let (mut compared, mut refused) = (0, 0);
    for (file, expected) in golden["rendered"].as_object().expect("an object") {
        for (name, conversation) in golden["cases"].as_object().expect("an object") {
            let expected = &expected[name];
            if expected.get("length").is_none() {
                refused += usize::from(render(file, conversation).is_err());
                continue;
            }
            let text = render(file, conversation);
            let text = text.unwrap_or_else(|error| panic!("{file}, {name}: {error}"));
            let end = expected["end"].as_str().expect("a text");
            assert!(text.ends_with(end), "{file}, {name}: {end:?} and {text:?}");
            assert_eq!(expected["length"], text.chars().count(), "{file}, {name}: {text}");
            compared += 1;
        }
    }
    assert!(compared > 240 && refused > 0, "{compared} prompts, {refused} refusals");
}

#[test]
fn what_cannot_be_continued_is_refused_with_its_place() {
    let fault = |conversation: &Value| match render("Qwen-Qwen2.5-7B-Instruct.jinja", conversation)
    {
        Err(TextError::Message { index, fault: MessageFault::Continued { reason } }) => {
            (index, reason)
        }
        found => panic!("{found:?}"),
    };
    let user = json!({"role": "user", "content": "a"});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"function": {}}]});
    assert_eq!(fault(&json!([user, user])), (1, "its role is not `assistant`"));
    assert_eq!(fault(&json!([user, call])), (1, "it has no `content`"));
    assert_eq!(fault(&json!([])), (0, "there is none"));
}

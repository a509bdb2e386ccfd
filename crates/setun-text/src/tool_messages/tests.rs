use serde_json::json;

use super::*;
use crate::{ChatTemplateFiles, RenderOptions};

/// The template of `BitNet` 2B-4T, which has no tools.
const BITNET: &str = "{% for message in messages %}{{ message['role'] | capitalize + ': ' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}";

fn template(source: &str) -> ChatTemplate {
    let files = ChatTemplateFiles {
        chat_template_jinja: Some(source.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    ChatTemplate::from_files(files).expect("a good template").expect("a template")
}

fn messages(list: Value) -> Vec<Message> {
    serde_json::from_value(list).expect("messages")
}

/// A question, two calls and their results, and the next question.
fn conversation() -> Vec<Message> {
    let call = |name: &str, arguments: Value| json!({"id": "123456789", "type": "function", "function": {"name": name, "arguments": arguments}});
    messages(json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "Wait.", "tool_calls": [call("f", json!("{\"a\": 1.0}")), call("g", json!({}))]},
        {"role": "tool", "tool_call_id": "123456789", "content": "sunny"},
        {"role": "tool", "tool_call_id": "123456789", "content": ""},
        {"role": "user", "content": "And now?"},
    ]))
}

fn prepared(source: &str, tools: &[Tool]) -> PreparedTools {
    template(source).prepare_tools(&conversation(), tools).expect("prepared")
}

fn rendered(source: &str, prepared: PreparedTools) -> String {
    let PreparedTools { messages, tools } = prepared;
    let options = RenderOptions { add_generation_prompt: true, tools, ..RenderOptions::default() };
    template(source).render(&messages, &options).expect("a prompt")
}

#[test]
fn a_template_without_tools_gets_them_as_text() {
    let tool = Tool::new("f").description("Weather of \"a\"");
    let found = rendered(BITNET, prepared(BITNET, std::slice::from_ref(&tool)));
    let described = tool.to_json()["function"].to_string();
    let expected = [
        format!("System: {BEFORE_TOOLS}{described}\n{AFTER_TOOLS}"),
        "User: Weather?".to_owned(),
        "Assistant: Wait.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1.0}}\n</tool_call>\n\
         <tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"
            .to_owned(),
        "User: <tool_response>\nsunny\n</tool_response>\n<tool_response>\n\n</tool_response>".to_owned(),
        "User: And now?".to_owned(),
        "Assistant: ".to_owned(),
    ];
    assert_eq!(found, expected.join("<|eot_id|>"));
    let system = [Message::system("Be kind."), Message::user("Hi")];
    let found = template(BITNET).prepare_tools(&system, &[tool]).expect("prepared").messages;
    assert_eq!(found.len(), 2);
    assert!(
        found[0].content.as_deref().is_some_and(|text| text.starts_with("Be kind.\n\nYou can"))
    );
}

#[test]
fn calls_in_a_conversation_without_tools_are_text_where_the_template_has_none() {
    let found = prepared(BITNET, &[]);
    assert_eq!(found.tools, None);
    assert_eq!(found.messages.len(), 4);
    assert!(
        found.messages.iter().all(|message| message.fields.is_empty() || message.role == "user")
    );
    let plain = messages(
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]),
    );
    assert_eq!(template(BITNET).prepare_tools(&plain, &[]).expect("the same").messages, plain);
}

#[test]
fn a_template_with_tools_gets_objects() {
    let source = "{{ tools | tojson }}{% for m in messages %}{% for c in m.tool_calls %}<tool_call>{{ c.function.arguments.a }}{% endfor %}{% endfor %}";
    let found = prepared(source, &[Tool::new("f")]);
    assert_eq!(found.messages.len(), 5);
    assert_eq!(
        found.messages[1].fields["tool_calls"][0]["function"]["arguments"],
        json!({"a": 1.0})
    );
    assert_eq!(found.tools, Some(vec![Tool::new("f").to_json()]));
    assert!(rendered(source, found).ends_with("<tool_call>1.0<tool_call>"));
    assert_eq!(prepared(source, &[]).tools, None);
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    for arguments in [json!("[1]"), json!("{"), json!("{\"a\": 1} x"), json!([1]), json!(false)] {
        let calls = json!([{"function": {"name": "f", "arguments": {}}}, {"function": {"name": "f", "arguments": arguments}}]);
        let list = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": calls}]);
        let error =
            template(BITNET).prepare_tools(&messages(list), &[]).expect_err("it is refused");
        let expected = "message 1: `tool_calls[1].function.arguments` is no JSON object";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    let function = |arguments: Option<Value>| {
        let mut function = json!({"name": "now"});
        if let Some(arguments) = arguments {
            function["arguments"] = arguments;
        }
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null,
            "tool_calls": [{"id": "1", "type": "function", "function": function}]}])
    };
    let source = "{% for m in messages %}{% for c in m.tool_calls %}<tool_call>{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
    for source in [BITNET, source] {
        let prepare =
            |list| template(source).prepare_tools(&messages(list), &[]).expect("prepared");
        let expected = prepare(function(Some(json!("{}"))));
        for arguments in
            [None, Some(json!("")), Some(json!(" \n")), Some(Value::Null), Some(json!({}))]
        {
            assert_eq!(prepare(function(arguments)), expected);
        }
    }
}

#[test]
fn an_answer_and_a_result_without_content_are_empty_texts() {
    let list = |content: Option<Value>| {
        let with_content = |mut message: Value| {
            if let Some(content) = &content {
                message["content"] = content.clone();
            }
            message
        };
        json!([{"role": "user", "content": "Hi"}, with_content(json!({"role": "assistant", "tool_calls": []})),
            with_content(json!({"role": "tool", "tool_call_id": "1"}))])
    };
    let prepare = |list| template(BITNET).prepare_tools(&messages(list), &[]).expect("prepared");
    let expected = prepare(list(Some(json!(""))));
    for content in [None, Some(Value::Null)] {
        assert_eq!(prepare(list(content)), expected);
    }
    rendered(BITNET, expected);
}

/// The template of Hermes 3 joins a tool's description to other texts.
#[test]
fn a_template_that_joins_descriptions_takes_a_tool_without_one() {
    let source = "{% for tool in tools %}{% set tool = tool.function %}{{ tool.name + ' - ' + tool.description + '<tool_call>' }}{% endfor %}{{ arguments }}";
    let found = rendered(source, prepared(source, &[Tool::new("f")]));
    assert_eq!(found, "f - <tool_call>");
    let other = "{{ tools | tojson }}<tool_call>{{ arguments }}";
    let found = prepared(other, &[Tool::new("f")]).tools.expect("tools");
    assert!(found[0]["function"].get("description").is_none());
}

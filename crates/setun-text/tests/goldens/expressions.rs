//! Short templates of every kind, as Jinja2 writes them.

use crate::support::json as read_json;
use serde_json::{Value, json};
use setun_text::{ChatTemplate, ChatTemplateFiles, Message, RenderOptions, TextError};

/// Expressions whose text differs from that of Jinja2, each with a reason.
const DIFFERENT: [(&str, &str); 8] = [
    ("{{ 1234567 | filesizeformat }}|", "no prompt has sizes of files"),
    ("{{ '<p>a  b</p>' | striptags }}|", "a prompt is no HTML"),
    ("{{ 'a b&c' | urlencode }}|", "a prompt is no address"),
    ("{{ 'a b c d e f' | wordwrap(3) }}|", "a prompt has no width"),
    ("{{ [1, 2] | pprint }}|", "one entry a line, for reading"),
    (r"{{ 'a\tb'.expandtabs(4) }}|", "a prompt has no columns"),
    ("{{ 'abc'.encode() }}|", "there are no bytes"),
    (
        "{% macro f(a) %}{{ a }}{% endmacro %}{{ f.name }}{{ f.arguments }}",
        "a list in place of a tuple",
    ),
];

fn render(source: &str, messages: &[Message]) -> Result<String, TextError> {
    let config = json!({ "chat_template": source }).to_string();
    let files = ChatTemplateFiles {
        tokenizer_config: Some(config.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let template = ChatTemplate::from_files(files)?.expect("it holds a template");
    template.render(messages, &RenderOptions::default())
}

#[test]
fn expressions_are_those_of_jinja() {
    let golden = read_json("chat-templates/expressions.json");
    let messages: Vec<Message> =
        serde_json::from_value(golden["messages"].clone()).expect("messages");
    let (mut equal, mut differences) = (0, vec![]);
    for case in golden["cases"].as_array().expect("a list") {
        let source = case[0].as_str().expect("a template");
        let found = match render(source, &messages) {
            Ok(text) => Value::from(text),
            Err(error) => json!({ "error": error.to_string() }),
        };
        let same = match &case[1] {
            Value::String(expected) => found == expected.as_str(),
            // What Jinja2 refuses may have a meaning here.
            _ => continue,
        };
        let is_known = DIFFERENT.iter().any(|(known, _)| source == *known);
        equal += usize::from(same);
        if same == is_known {
            differences.push(format!("{source}\n  {}\n  {found}", case[1]));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {equal}:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(equal > 290, "only {equal}");
}

//! Qwen 3.5: its tokens, its prompts, and its calls in XML, which come in pieces.

use crate::chat_template::real_template;
use crate::support::{entries, ids, json, read};
use serde_json::{Value, json as value};
use setun_text::{
    ChatTemplate, ChatTemplateFiles, HfTokenizer, Message, MessageFault, ReasoningReader,
    RenderOptions, TextError, Tokenizer as _, Tool, ToolCall, ToolCallReader, ToolFormat,
};

const TEMPLATE: &str = "Qwen3.5-4B.jinja";

fn tools(list: &Value) -> Vec<Tool> {
    match list {
        Value::Array(list) => Tool::from_json(list.clone()).expect("tools"),
        _ => vec![],
    }
}

#[test]
fn tokens_are_those_of_the_reference() {
    let tokenizer =
        HfTokenizer::from_bytes(&read("families/qwen35/tokenizer.json")).expect("it is valid");
    for case in entries(&json("families/qwen35/tokens.json")["cases"]) {
        let text = case["text"].as_str().expect("a text");
        let found = tokenizer.encode(text, false).expect("any text");
        assert_eq!(found, ids(&case["ids"]), "{text:?}");
        assert_eq!(case["decoded"], tokenizer.decode(&found, false).expect("any ids"), "{text:?}");
    }
}

#[test]
fn prompts_are_those_of_the_reference() {
    let template = real_template(TEMPLATE);
    for case in entries(&json("families/qwen35/chat.json")["conversations"]) {
        let messages = serde_json::from_value::<Vec<Message>>(case["messages"].clone());
        if case["name"] == "content parts" {
            assert!(messages.expect_err("no images").to_string().contains("`image`"));
            continue;
        }
        let messages = messages.expect("messages");
        let tools = tools(&case["tools"]);
        let prepared = template.prepare_tools(&messages, &tools).expect("prepared");
        let mut options = RenderOptions {
            add_generation_prompt: case["add_generation_prompt"] == true,
            tools: prepared.tools,
            ..RenderOptions::default()
        };
        if let Some(thinks) = case.get("enable_thinking") {
            options.variables.insert("enable_thinking".to_owned(), thinks.clone());
        }
        let name = &case["name"];
        match template.render(&prepared.messages, &options) {
            Ok(text) => assert_eq!(case["rendered"], text, "{name}"),
            Err(TextError::TemplateRefused { message }) => {
                assert_eq!(case["error"], message, "{name}");
            }
            // Roles that no template names are refused before.
            Err(TextError::Message { fault: MessageFault::Role { .. }, .. }) => {
                assert_eq!(case["error"], "Unexpected message role.", "{name}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

/// Qwen3.6's template has one more condition than Qwen3.5's.
#[test]
fn reasoning_of_earlier_turns_is_kept_where_the_template_is_told() {
    let source = String::from_utf8(read(&format!("chat-templates/{TEMPLATE}"))).expect("a text");
    let condition = "loop.index0 > ns.last_query_index";
    let kept =
        format!("(preserve_thinking is defined and preserve_thinking is true) or ({condition})");
    assert_eq!(source.matches(condition).count(), 1);
    let source = source.replace(condition, &kept);
    let files = ChatTemplateFiles {
        chat_template_jinja: Some(source.as_bytes()),
        ..ChatTemplateFiles::default()
    };
    let template = ChatTemplate::from_files(files).expect("a template").expect("it is there");
    assert!(template.names("preserve_thinking"));
    let messages =
        [Message::user("a"), Message::assistant("b").with_reasoning("why b"), Message::user("c")];
    for (variable, reasoning) in
        [(None, ""), (Some(false), ""), (Some(true), "<think>\nwhy b\n</think>\n\n")]
    {
        let mut options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
        let variable = variable.map(|kept| ("preserve_thinking".to_owned(), Value::from(kept)));
        options.variables.extend(variable);
        let expected = format!(
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n{reasoning}b<|im_end|>\n\
             <|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n<think>\n"
        );
        assert_eq!(template.render(&messages, &options).expect("a prompt"), expected);
    }
}

/// Reasoning, text and calls of an answer that comes in pieces.
fn parts<'a>(
    tools: &[Tool],
    is_thinking: bool,
    pieces: impl Iterator<Item = &'a str>,
) -> [Value; 3] {
    let mut reasoning = is_thinking.then(|| ReasoningReader::new([None, None], true));
    let format = real_template(TEMPLATE).tool_format().expect("a format");
    assert_eq!(format, ToolFormat::QWEN_XML);
    let mut reader = ToolCallReader::new(format, false, &[], [0, 0]).with_functions(tools);
    let (mut thought, mut text, mut calls) = (String::new(), String::new(), vec![]);
    for piece in pieces {
        let shown = match &mut reasoning {
            Some(reasoning) => {
                let step = reasoning.push(0, piece.to_owned());
                thought += step.reasoning.as_deref().unwrap_or_default();
                step.text
            }
            None => piece.to_owned(),
        };
        let step = reader.push(0, &shown);
        text += &step.text;
        step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
    }
    text += &reader.finish();
    let calls = calls.iter().map(|call| {
        let arguments: Value = serde_json::from_str(&call.arguments).expect("JSON");
        value!({"name": call.name, "arguments": arguments})
    });
    let line_ends = |text: &str| text.trim_matches('\n').into();
    [line_ends(&thought), line_ends(&text), calls.collect()]
}

#[test]
fn calls_are_read_however_they_are_cut() {
    let golden = json("families/qwen35/tools.json");
    let tools = tools(&golden["tools"]);
    for case in entries(&golden["outputs"]) {
        let text = case["text"].as_str().expect("a text");
        let is_thinking = case["thinking"] == true;
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        let expected = ["reasoning", "content", "tool_calls"]
            .map(|name| if case[name].is_null() { "".into() } else { case[name].clone() });
        let mut cuts = vec![vec![], (1..places.len()).collect::<Vec<_>>()];
        cuts.extend(
            [&case["splits"]["at_marks"]]
                .into_iter()
                .chain(entries(&case["splits"]["random"]))
                .map(|cuts| {
                    serde_json::from_value(cuts.clone()).expect("places between characters")
                }),
        );
        for cuts in cuts {
            let mut ends: Vec<usize> = cuts.iter().map(|&cut| places[cut]).collect();
            ends.push(text.len());
            let mut begin = 0;
            let pieces = ends.iter().map(|&end| &text[std::mem::replace(&mut begin, end)..end]);
            assert_eq!(parts(&tools, is_thinking, pieces), expected, "{} {cuts:?}", case["name"]);
        }
    }
}

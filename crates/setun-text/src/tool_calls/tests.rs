use proptest::prelude::*;
use serde_json::json;

use super::*;

fn call(name: &str, arguments: &Value) -> ToolCall {
    let arguments = arguments.as_object().expect("an object").clone();
    ToolCall { name: name.to_owned(), arguments, id: None }
}

/// Text and calls of a text that comes in pieces.
fn parse<'a>(
    format: ToolFormat,
    pieces: impl IntoIterator<Item = &'a str>,
) -> (String, Vec<ToolCall>) {
    let mut parser = ToolCallParser::new(format);
    let mut steps: Vec<ToolStep> = pieces.into_iter().map(|piece| parser.push(piece)).collect();
    steps.push(parser.finish());
    let text = steps.iter().map(|step| step.text.as_str()).collect();
    (text, steps.into_iter().flat_map(|step| step.calls).collect())
}

fn whole(format: ToolFormat, text: &str) -> (String, Vec<ToolCall>) {
    parse(format, [text])
}

#[test]
fn each_family_writes_calls_its_way() {
    let one = json!({"city": "Zürich {\"}\" </tool_call>"});
    let (first, second) = (call("f", &one), call("g.h", &json!({})));
    let f = json!({"name": "f", "arguments": one});
    let body = one.to_string();
    let cases = [
        (
            ToolFormat::Llama,
            format!(
                "<|python_tag|>{{\"name\": \"f\", \"parameters\": {body}}}; {{\"name\": \"g.h\", \"parameters\": {{}}}}\n"
            ),
        ),
        (
            ToolFormat::Hermes,
            format!(
                "<tool_call>\n{f}\n</tool_call>\n<tool_call>{{\"name\": \"g.h\", \"arguments\": \"{{}}\"}}</tool_call>"
            ),
        ),
        (ToolFormat::Mistral, format!("[TOOL_CALLS] [{f}, {{\"name\": \"g.h\"}}]")),
        (ToolFormat::Mistral, format!("[TOOL_CALLS]f[ARGS]{body}[TOOL_CALLS]g.h[ARGS]{{}}")),
        (
            ToolFormat::Functionary,
            format!("<function=f>{body}</function><function=g.h>{{}}</function>"),
        ),
    ];
    for (format, text) in cases {
        assert_eq!(
            whole(format, &text),
            (String::new(), vec![first.clone(), second.clone()]),
            "{text}"
        );
    }
    let (_, calls) = whole(ToolFormat::Mistral, "[TOOL_CALLS]f[CALL_ID]call12345[ARGS]{}");
    assert_eq!(calls[0].id.as_deref(), Some("call12345"));
}

#[test]
fn what_is_no_call_stays_text() {
    for (format, text) in [
        (ToolFormat::Llama, " {\"name\": \"f\"; no JSON} "),
        (ToolFormat::Llama, "{\"a\": 1} is an object"),
        (ToolFormat::Llama, "Say {\"name\": \"f\", \"parameters\": {}}"),
        (ToolFormat::Hermes, "a <tool_call> is {\"name\": 1}</tool_call>  \n"),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>"),
        (ToolFormat::Hermes, "<tool_call>{\"name\": \"f\""),
        (ToolFormat::Mistral, "[TOOL_CALLS][]"),
        (ToolFormat::Mistral, "[TOOL_CALLS]no name[ARGS]{}"),
        (ToolFormat::Functionary, "<function=>{}</function>"),
        (ToolFormat::Functionary, "<function=f>{} and more"),
    ] {
        assert_eq!(whole(format, text), (text.to_owned(), Vec::new()));
    }
}

#[test]
fn text_goes_out_as_soon_as_it_can_be_no_call() {
    let mut parser = ToolCallParser::new(ToolFormat::Hermes);
    let mut shown = |piece: &str| {
        let step = parser.push(piece);
        (step.text, step.calls.len())
    };
    assert_eq!(shown("Well, "), ("Well,".to_owned(), 0));
    assert_eq!(shown("a <tool"), (" a".to_owned(), 0));
    assert_eq!(shown("box> and"), (" <toolbox> and".to_owned(), 0));
    assert_eq!(shown("\n<tool_call>{\"name\": \"f\", "), (String::new(), 0));
    assert_eq!(shown("\"arguments\": {}}\n</tool_call"), (String::new(), 0));
    assert_eq!(shown(">"), (String::new(), 1));
    assert_eq!(shown("\nDone"), ("\nDone".to_owned(), 0));
}

#[test]
fn a_call_that_lacks_its_end_is_taken_at_the_end() {
    let text = "Yes. <tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool";
    assert_eq!(whole(ToolFormat::Hermes, text), ("Yes.".to_owned(), vec![call("f", &json!({}))]));
}

/// Parts of calls and of text, whose sequences are whole calls, broken ones and neither.
fn parts() -> impl Strategy<Value = Vec<&'static str>> {
    let parts = [
        "<tool_call>",
        "</tool_call>",
        "{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}",
        "{",
        "\n",
        "é",
        "<tool",
        "[TOOL_CALLS]",
        "[{\"name\": \"f\", \"arguments\": {}}]",
        "f",
        "[ARGS]",
        "{}",
        "[CALL_ID]",
        "<function=",
        "f>",
        "</function>",
        ";",
        "<|python_tag|>",
        "x y ",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..12)
}

proptest! {
    /// However a text is cut, its text and calls are the same.
    #[test]
    fn cuts_change_nothing(parts in parts(), cuts in prop::collection::vec(0_usize..200, 0..8)) {
        let text = parts.concat();
        let mut places: Vec<usize> = cuts.into_iter().filter(|&cut| text.is_char_boundary(cut)).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let pieces: Vec<&str> = places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        for format in [ToolFormat::Llama, ToolFormat::Hermes, ToolFormat::Mistral, ToolFormat::Functionary] {
            prop_assert_eq!(parse(format, pieces.iter().copied()), whole(format, &text));
        }
    }

    /// Without calls nothing is lost.
    #[test]
    fn text_without_calls_is_unchanged(text in "[ <\\[{a-zé\\n\"]{0,40}") {
        for format in [ToolFormat::Llama, ToolFormat::Hermes, ToolFormat::Mistral, ToolFormat::Functionary] {
            prop_assert_eq!(whole(format, &text), (text.clone(), Vec::new()));
        }
    }
}

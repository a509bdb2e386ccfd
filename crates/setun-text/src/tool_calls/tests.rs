use proptest::prelude::*;

use super::*;

/// Formats whose arguments are JSON.
const FORMATS: [ToolFormat; 3] = [ToolFormat::HERMES, ToolFormat::FALCON, ToolFormat::LLAMA];

/// What calls are made of, with all that JSON may have in strings.
const CALLS: [(&str, &str); 3] = [
    ("f", r#"{"city": "Zürich {\"}\" </tool_call>\\", "list": [{"a": {}}, "]"]}"#),
    ("g.h", "{}"),
    ("f", r#"{"n": -1.5e+9}"#),
];

/// An answer as a family writes it.
fn answer(format: ToolFormat, text: &str, calls: usize) -> String {
    let mut answer = text.to_owned();
    for (index, (name, arguments)) in CALLS[..calls].iter().enumerate() {
        if index == 0 {
            answer += format.marker;
            answer += format.opening;
        } else {
            answer += format.separator.expect("a family of several calls");
        }
        answer += &[name, format.middle, arguments, format.after].concat();
    }
    answer + format.closing
}

/// Text and calls of an answer that comes in pieces.
fn read<'a>(
    format: ToolFormat,
    begins_with_call: bool,
    pieces: impl IntoIterator<Item = &'a str>,
) -> (String, Vec<ToolCall>) {
    let mut reader = ToolCallReader::new(format, begins_with_call, &[1, 2], [3, 0]);
    let (mut text, mut calls) = (String::new(), vec![]);
    for piece in pieces {
        let step = reader.push(0, piece);
        text += &step.text;
        step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
    }
    assert_eq!(reader.has_calls(), !calls.is_empty());
    (text + &reader.finish(), calls)
}

fn parts(calls: &[ToolCall]) -> Vec<(&str, &str)> {
    calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect()
}

#[test]
fn each_family_writes_calls_its_way() {
    let expected = [
        "<tool_call>\n{\"name\": \"g.h\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n[\n  {\"name\": \"g.h\", \"arguments\": {}}\n]\n</tool_call>",
        "{\"name\": \"g.h\", \"parameters\": {}}",
    ];
    for (format, text) in FORMATS.into_iter().zip(expected) {
        let (shown, calls) = read(format, true, [text]);
        assert_eq!((shown.as_str(), parts(&calls)), ("", vec![("g.h", "{}")]), "{text}");
        assert_eq!(read(format, false, [text]), (shown, calls), "{text}");
        assert_eq!(ToolFormat::named(format.name), Some(format));
    }
}

#[test]
fn ids_are_of_the_request_and_the_place() {
    let text = answer(ToolFormat::HERMES, "", 3);
    let ids = |prompt: &[u32], seeds| {
        let mut reader = ToolCallReader::new(ToolFormat::HERMES, true, prompt, seeds);
        let deltas = reader.push(0, &text).calls;
        deltas.into_iter().filter_map(|delta| delta.id).collect::<Vec<_>>()
    };
    let all = [ids(&[1], [1, 0]), ids(&[1], [2, 0]), ids(&[1], [1, 1]), ids(&[2], [1, 0])].concat();
    assert_eq!(ids(&[1], [1, 0]), all[..3]);
    let mut different = all.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 12);
    for id in all {
        assert_eq!(id.len(), 9);
        assert!(id.chars().all(|letter| letter.is_ascii_alphanumeric()), "{id}");
    }
}

#[test]
fn text_goes_out_as_soon_as_it_can_be_no_call() {
    let mut reader = ToolCallReader::new(ToolFormat::HERMES, false, &[], [0, 0]);
    let mut shown = |piece: &str| {
        let step = reader.push(0, piece);
        (step.text, step.calls.len())
    };
    assert_eq!(shown("Well, \n"), ("Well, ".to_owned(), 0));
    assert_eq!(shown("a <tool"), ("\na ".to_owned(), 0));
    assert_eq!(shown("box> and"), ("<toolbox> and".to_owned(), 0));
    assert_eq!(shown("\n<tool_call>\n{\"name\": \"f"), (String::new(), 0));
    assert_eq!(shown("\", \"arguments\": {\"a"), (String::new(), 1));
    assert_eq!(shown("\": 1}}\n</tool_call"), (String::new(), 1));
    assert_eq!(shown(">"), (String::new(), 0));
}

#[test]
fn a_call_of_llama_stands_at_the_start_alone() {
    let text = "Say {\"name\": \"f\", \"parameters\": {}}";
    assert_eq!(read(ToolFormat::LLAMA, false, [text]), (text.to_owned(), vec![]));
    for text in ["{\"name\": 3}", "{\"na", "{", " {\"name\": \"f\""] {
        assert_eq!(
            read(ToolFormat::LLAMA, false, text.split_inclusive(' ')),
            (text.to_owned(), vec![])
        );
    }
}

#[test]
fn a_call_that_is_cut_keeps_what_there_is() {
    let whole = answer(ToolFormat::HERMES, "Yes.\n", 1);
    let (_, calls) = read(ToolFormat::HERMES, false, [&whole[..whole.len() - 30]]);
    assert_eq!(calls[0].name, "f");
    assert!(CALLS[0].1.starts_with(&calls[0].arguments), "{}", calls[0].arguments);
    let (text, calls) = read(ToolFormat::HERMES, false, ["Yes.\n<tool_call>\n{\"name\": \"f"]);
    assert_eq!((text.as_str(), calls), ("Yes.", vec![]));
}

#[test]
fn arguments_that_are_no_object_end_behind_a_character() {
    for format in FORMATS {
        let text = [format.marker, format.opening, "f", format.middle, "\u{e9} \"a\""].concat();
        let (shown, calls) = read(format, true, [&*text]);
        assert_eq!((shown.as_str(), parts(&calls)), ("", vec![("f", "\u{e9}")]), "{text}");
    }
}

#[test]
fn a_conversation_goes_on_with_calls_and_results() {
    let call = ToolCall { id: "123456789".into(), name: "f".into(), arguments: "{}".into() };
    let messages = [Message::calls("", std::slice::from_ref(&call)), Message::tool(&call, "sunny")];
    let written = serde_json::to_value(messages).expect("JSON");
    let expected = json!([
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "123456789", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ]},
        {"role": "tool", "content": "sunny", "tool_call_id": "123456789", "name": "f"},
    ]);
    assert_eq!(written, expected);
    assert_eq!(Message::calls("a", &[]), Message::assistant("a"));
}

#[test]
fn special_tokens_of_calls_are_read_as_what_they_spell() {
    let mut reader = ToolCallReader::new(ToolFormat::HERMES, false, &[], [0, 0])
        .with_tags(vec![(7, "<tool_call>"), (8, "</tool_call>")]);
    let mut calls = vec![];
    for (token, text) in
        [(1, "Yes"), (7, ""), (1, "\n{\"name\": \"f\", \"arguments\": {}}\n"), (8, "")]
    {
        let step = reader.push(token, text);
        assert_eq!(step.text, if text == "Yes" { "Yes" } else { "" });
        step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
    }
    assert_eq!(parts(&calls), [("f", "{}")]);
}

/// A JSON text may be a call of Llama's and a document of a format. The beginning decides.
#[test]
fn beside_a_format_a_text_that_begins_like_a_call_of_a_known_function_is_one() {
    let read = |text: &str| {
        let reader = ToolCallReader::new(ToolFormat::LLAMA, false, &[], [0, 0]);
        let mut reader = reader.beside_format(["f", "g.h"].into_iter());
        let (mut shown, mut calls) = (String::new(), vec![]);
        for piece in text.split_inclusive(' ') {
            let step = reader.push(0, piece);
            shown += &step.text;
            step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
        }
        (shown + &reader.finish(), calls)
    };
    for name in ["f", "g.h"] {
        let (text, calls) =
            read(&format!("{{\"name\": \"{name}\", \"parameters\": {{\"a\": 1}}}}"));
        assert_eq!((&*text, parts(&calls)), ("", vec![(name, "{\"a\": 1}")]));
    }
    for text in [
        r#"{"name": "h", "parameters": {"a": 1}}"#,
        r#"{"name": "f", "arguments": {"a": 1}}"#,
        r#"{"name":"f","parameters":{}}"#,
        r#"{"parameters": {}, "name": "f"}"#,
        r#"{"name": "f"}"#,
        r#"[{"name": "f", "parameters": {}}]"#,
    ] {
        assert_eq!(read(text), (text.to_owned(), vec![]));
    }
}

proptest! {
    /// However an answer is cut, its text and calls are the same.
    #[test]
    fn cuts_change_nothing(
        text in "[<{a-z>_é\\n\"]{0,20}",
        calls in 1_usize..4,
        cuts in prop::collection::vec(0_usize..400, 0..12),
    ) {
        for format in FORMATS {
            let text = if format.at_start { "" } else { text.as_str() };
            let calls = if format.separator.is_some() { calls } else { 1 };
            let answer = answer(format, text, calls);
            let is_place = |&cut: &usize| answer.is_char_boundary(cut);
            let mut places: Vec<usize> = cuts.iter().copied().filter(is_place).collect();
            places.extend([0, answer.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).map(|pair| &answer[pair[0]..pair[1]]);
            let (shown, found) = read(format, false, pieces);
            prop_assert_eq!(shown, text.strip_suffix('\n').unwrap_or(text));
            prop_assert_eq!(parts(&found), &CALLS[..calls]);
        }
    }

    /// Without calls nothing is lost.
    #[test]
    fn text_without_calls_is_unchanged(text in "[<\\[{a-zé\\n\"]{0,40}") {
        for format in FORMATS {
            prop_assert_eq!(read(format, false, [text.as_str()]), (text.clone(), vec![]));
        }
    }
}

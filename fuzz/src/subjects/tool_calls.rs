//! Tools up to the first byte of zero, and an answer behind it, whose calls are read.

use setun_text::{ArgumentForm, Tool, ToolCall, ToolCallReader, ToolFormat};

use crate::{MemoryBound, run_bounded};

/// An answer is read in two ways, by eight readers one after the other. Parts of schemas are counted.
const MEMORY: MemoryBound = MemoryBound { fixed: 16 << 20, each: 1 << 10 };

/// Reads the answer as each format has it, whole and letter by letter.
///
/// # Panics
///
/// If that exceeds its bounds, the two differ, or XML becomes arguments that are no JSON.
pub fn run(bytes: &[u8]) {
    run_bounded(bytes.len(), MEMORY, || {
        let mut parts = bytes.splitn(2, |byte| *byte == 0);
        let tools = parts.next().and_then(|json| serde_json::from_slice(json).ok());
        let tools = tools.and_then(|list| Tool::from_json(list).ok()).unwrap_or_default();
        let answer = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        for format in ToolFormat::ALL {
            for begins_with_call in [false, true] {
                let read = |pieces: &mut dyn Iterator<Item = &str>| {
                    let reader = ToolCallReader::new(format, begins_with_call, &[], [0, 0]);
                    read(reader.with_functions(&tools), pieces)
                };
                let whole = read(&mut [&*answer].into_iter());
                let letters = answer.char_indices();
                let mut letters = letters.map(|(at, letter)| &answer[at..at + letter.len_utf8()]);
                assert_eq!(read(&mut letters), whole, "{}", format.name);
                check(format, &whole.1);
            }
        }
    });
}

/// Text and calls.
fn read(
    mut reader: ToolCallReader,
    pieces: &mut dyn Iterator<Item = &str>,
) -> (String, Vec<ToolCall>) {
    let (mut text, mut calls) = (String::new(), vec![]);
    for piece in pieces {
        let step = reader.push(0, piece);
        text += &step.text;
        step.calls.iter().for_each(|delta| ToolCall::join(&mut calls, delta));
    }
    (text + &reader.finish(), calls)
}

/// The last call may be cut. Arguments in JSON are as the model writes them.
fn check(format: ToolFormat, calls: &[ToolCall]) {
    let Some((_, complete)) = calls.split_last().filter(|_| format.arguments == ArgumentForm::Xml)
    else {
        return;
    };
    for call in complete {
        let arguments: Result<serde_json::Value, _> = serde_json::from_str(&call.arguments);
        assert!(arguments.is_ok_and(|value| value.is_object()), "{}", call.arguments);
    }
}

//! Calls of tools, whose arguments are objects.

use serde::{Serialize, de::IgnoredAny};
use setun::ToolCall;

/// A call without its arguments.
#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    index: usize,
    name: &'a str,
}

/// Adds a list of calls as JSON, those left out whose arguments are cut; the first has this number.
///
/// Arguments stay the text that they are: a number that no float holds is not changed.
pub(super) fn push(bytes: &mut Vec<u8>, first: usize, calls: &[ToolCall]) {
    bytes.push(b'[');
    let mut separator: &[u8] = b"";
    for (index, call) in (first..).zip(calls).filter(|(_, call)| is_whole(call)) {
        let call_without = Call { id: &call.id, function: Function { index, name: &call.name } };
        let Ok(json) = serde_json::to_vec(&call_without) else { continue };
        bytes.extend_from_slice(separator);
        bytes.extend_from_slice(json.strip_suffix(b"}}").unwrap_or(&json));
        bytes.extend_from_slice(b",\"arguments\":");
        bytes.extend(compact(&call.arguments));
        bytes.extend_from_slice(b"}}");
        separator = b",";
    }
    bytes.push(b']');
}

/// Whether the arguments are a whole object.
pub(super) fn is_whole(call: &ToolCall) -> bool {
    call.arguments.trim_start().starts_with('{')
        && serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok()
}

/// JSON without white space between its tokens: an answer is one line.
fn compact(json: &str) -> impl Iterator<Item = u8> {
    let (mut is_text, mut is_escaped) = (false, false);
    json.bytes().filter(move |byte| {
        if !is_text {
            is_text = *byte == b'"';
            return !byte.is_ascii_whitespace();
        }
        is_text = is_escaped || *byte != b'"';
        is_escaped = !is_escaped && *byte == b'\\';
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(arguments: &[&str]) -> String {
        let call = |arguments: &&str| ToolCall {
            id: "c1".to_owned(),
            name: "f".to_owned(),
            arguments: (*arguments).to_owned(),
        };
        let calls: Vec<ToolCall> = arguments.iter().map(call).collect();
        let mut bytes = vec![];
        push(&mut bytes, 1, &calls);
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn arguments_are_objects_on_one_line_with_their_own_digits() {
        let text =
            written(&["{ \"a\" :\n[1e999, 12345678901234567890123], \"b \\\" \\\\\": \" \"}"]);
        let arguments = "{\"a\":[1e999,12345678901234567890123],\"b \\\" \\\\\":\" \"}";
        let call = "{\"id\":\"c1\",\"function\":{\"index\":1,\"name\":\"f\",\"arguments\":";
        assert_eq!(text, format!("[{call}{arguments}}}}}]"));
    }

    #[test]
    fn a_call_that_was_cut_is_left_out() {
        assert_eq!(written(&["{\"a\": \"b", "3", ""]), "[]");
        let text = written(&["{\"a\":", "{}"]);
        assert!(text.contains("\"index\":2") && !text.contains(",,"), "{text}");
    }
}

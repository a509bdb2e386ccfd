//! Server-sent events as bytes.

use serde::Serialize;
use setun::text::escape_line_breaks;

use crate::error::ApiError;

/// Type of an answer of events.
pub(crate) const CONTENT_TYPE: &str = "text/event-stream";

/// The last event of a stream of the `OpenAI` API.
const DONE: &str = "data: [DONE]\n\n";

/// Adds an event with a value as its data.
pub(crate) fn push(events: &mut Vec<u8>, value: &impl Serialize) {
    let begin = events.len();
    events.extend_from_slice(b"data: ");
    match serde_json::to_writer(&mut *events, value) {
        Ok(()) => {
            escape_line_breaks(events, begin);
            events.extend_from_slice(b"\n\n");
        }
        Err(_) => events.truncate(begin), // every key of an answer is a string
    }
}

/// Adds an event with its name.
pub(crate) fn push_named(events: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    events.extend_from_slice(b"event: ");
    events.extend_from_slice(name.as_bytes());
    events.push(b'\n');
    push(events, value);
}

/// Adds the end of a stream.
pub(crate) fn push_done(events: &mut Vec<u8>) {
    events.extend_from_slice(DONE.as_bytes());
}

/// Adds an error, after which nothing comes: clients raise it.
pub(crate) fn push_error(events: &mut Vec<u8>, error: &ApiError) {
    push(events, &error.body());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_line_of_data() {
        let mut events = vec![];
        push(&mut events, &json!({"text": "a\nb\r\u{b}\u{1e}\u{85}\u{2028}\u{2029}é"}));
        push_error(&mut events, &ApiError::invalid("n", "expected 1"));
        push_done(&mut events);
        let expected = "data: {\"text\":\"a\\nb\\r\\u000b\\u001e\\u0085\\u2028\\u2029é\"}\n\n\
            data: {\"error\":{\"message\":\"n: expected 1\",\"type\":\"invalid_request_error\",\
            \"param\":\"n\",\"code\":\"invalid_value\"}}\n\ndata: [DONE]\n\n";
        assert_eq!(String::from_utf8(events).expect("UTF-8"), expected);
    }
}

//! Server-sent events as bytes.

use serde::Serialize;

use crate::error::ApiError;

/// Type of an answer of events.
pub(crate) const CONTENT_TYPE: &str = "text/event-stream";

/// The last event of a stream of the `OpenAI` API.
const DONE: &str = "data: [DONE]\n\n";

/// Adds an event with a value as its data.
pub(crate) fn push(events: &mut Vec<u8>, value: &impl Serialize) {
    let begin = events.len();
    events.extend_from_slice(b"data: ");
    // JSON has no line breaks outside of strings, and none inside that are not escaped.
    match serde_json::to_writer(&mut *events, value) {
        Ok(()) => events.extend_from_slice(b"\n\n"),
        Err(_) => events.truncate(begin), // every key of an answer is a string
    }
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
        push(&mut events, &json!({"text": "a\nb\r\u{2028}"}));
        push_error(&mut events, &ApiError::invalid("n", "expected 1"));
        push_done(&mut events);
        let expected = "data: {\"text\":\"a\\nb\\r\u{2028}\"}\n\n\
            data: {\"error\":{\"message\":\"n: expected 1\",\"type\":\"invalid_request_error\",\
            \"param\":\"n\",\"code\":\"invalid_value\"}}\n\ndata: [DONE]\n\n";
        assert_eq!(String::from_utf8(events).expect("UTF-8"), expected);
    }
}

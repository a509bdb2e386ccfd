//! Requests of batch files.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What may be asked for.
pub const URLS: [&str; 4] =
    ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"];

/// The url whose `input` is a list of texts. That of responses is one conversation.
const EMBEDDINGS: &str = "/v1/embeddings";

/// The option with the time that a chat template has.
const TIME: &str = "chat_template_time";

/// Fields of conversations, whose template may write the date.
const CONVERSATIONS: [&str; 2] = ["/v1/chat/completions", "/v1/responses"];

/// A request of a batch file.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchRequest {
    /// Its key, which no other request of the file has.
    pub custom_id: String,
    /// One of [`URLS`].
    pub url: String,
    /// What is sent there.
    pub body: Map<String, Value>,
}

/// Why a line is no request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchLineError {
    /// It is no JSON object with the fields of a request.
    #[error("{0}")]
    Json(#[from] serde_json::Error),

    /// It has another method than POST.
    #[error("the method {found}, expected POST")]
    Method {
        /// The method.
        found: String,
    },

    /// Its url is none of [`URLS`].
    #[error("the url `{found}`, expected one of {}", URLS.join(", "))]
    Url {
        /// The url.
        found: String,
    },

    /// An earlier line has its key.
    #[error("the custom_id `{found}` again")]
    Repeated {
        /// The key.
        found: String,
    },
}

/// A request as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedRequest {
    /// Its body without the model.
    pub body: Map<String, Value>,
    /// The model that it names.
    pub model: Option<Value>,
}

#[derive(Deserialize)]
struct Line {
    custom_id: String,
    method: Option<String>,
    url: String,
    body: Map<String, Value>,
}

impl BatchRequest {
    /// Reads a line; none of an empty one.
    ///
    /// # Errors
    ///
    /// If the line is no request.
    pub fn read(line: &[u8]) -> Result<Option<Self>, BatchLineError> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line); // a byte order mark
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let Line { custom_id, method, url, body } = serde_json::from_slice(line)?;
        if let Some(found) = method.filter(|method| method != "POST") {
            return Err(BatchLineError::Method { found });
        }
        if !URLS.contains(&&*url) {
            return Err(BatchLineError::Url { found: url });
        }
        Ok(Some(Self { custom_id, url, body }))
    }

    /// The same of a line whose key is none of those of earlier lines, whose ids are kept in `keys`.
    ///
    /// # Errors
    ///
    /// If the line is no request, or has the key of another.
    pub fn read_new(
        line: &[u8],
        keys: &mut HashSet<String>,
    ) -> Result<Option<Self>, BatchLineError> {
        let Some(request) = Self::read(line)? else { return Ok(None) };
        if !keys.insert(super::id_of(&request.custom_id)) {
            return Err(BatchLineError::Repeated { found: request.custom_id });
        }
        Ok(Some(request))
    }
}

impl PreparedRequest {
    /// A request as one answer, with a seed of its own where it has none, and with this time for the chat
    /// template of a conversation.
    #[must_use]
    pub fn new(url: &str, mut body: Map<String, Value>, seed: u64, time: Option<u64>) -> Self {
        let model = body.shift_remove("model");
        if body.get("stream").is_none_or(|stream| stream.is_boolean() || stream.is_null()) {
            body.shift_remove("stream");
        }
        body.shift_remove("stream_options");
        let has_seed = body.get("seed").is_some_and(|seed| !seed.is_null() && *seed != json!(-1));
        if !has_seed {
            body.insert("seed".to_owned(), seed.into());
        }
        if let Some(time) = time
            && CONVERSATIONS.contains(&url)
            && body.get(TIME).is_none_or(Value::is_null)
        {
            body.insert(TIME.to_owned(), time.into());
        }
        Self { body, model }
    }
}

/// The status and the body that answer a request which no batch has: one whose answer is streamed.
#[must_use]
pub fn refusal(body: &Map<String, Value>) -> Option<(u16, String)> {
    let is_streamed = body.get("stream") == Some(&Value::Bool(true));
    is_streamed.then(|| {
        let error = json!({
            "message": "stream: not supported: an answer of a batch is whole",
            "type": "invalid_request_error",
            "param": "stream",
            "code": "unsupported_parameter",
        });
        (400, json!({ "error": error }).to_string())
    })
}

/// How many texts a request has: prompts, or inputs of embeddings, each `n` times.
#[must_use]
pub fn texts_of(url: &str, body: &Map<String, Value>) -> usize {
    // An array of numbers is one prompt, of tokens.
    let list = |name| match body.get(name).and_then(Value::as_array) {
        Some(list) if !list.iter().all(Value::is_number) => list.len(),
        _ => 1,
    };
    let texts = if url == EMBEDDINGS { list("input") } else { list("prompt") };
    let choices = ["n", "best_of"].map(|name| body.get(name).and_then(Value::as_u64).unwrap_or(1));
    let choices = usize::try_from(choices.into_iter().max().unwrap_or(1)).unwrap_or(usize::MAX);
    texts.saturating_mul(choices).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(body: &str) -> Map<String, Value> {
        serde_json::from_str(body).expect("an object")
    }

    fn prepared(url: &str, body: &str, time: Option<u64>) -> PreparedRequest {
        PreparedRequest::new(url, object(body), 7, time)
    }

    #[test]
    fn a_line_is_a_request_or_says_why_it_is_none() {
        let line = r#"{"custom_id": "a", "url": "/v1/completions", "body": {"prompt":  "Once"}}"#;
        let request = BatchRequest::read(line.as_bytes()).expect("a line").expect("a request");
        assert_eq!((&*request.custom_id, &*request.url), ("a", "/v1/completions"));
        assert_eq!(Value::Object(request.body).to_string(), r#"{"prompt":"Once"}"#);
        let marked = [b"\xef\xbb\xbf", line.as_bytes()].concat();
        assert!(BatchRequest::read(&marked).expect("a line").is_some());
        assert_eq!(BatchRequest::read(b" \r").expect("a line"), None);
        let with = |one: &str, other: &str| line.replace(one, other);
        for (line, expected) in [
            ("{".to_owned(), "EOF while parsing"),
            (with(r#", "url""#, r#", "method": "GET", "url""#), "the method GET, expected POST"),
            (with("/v1/completions", "/v1/files"), "the url `/v1/files`, expected one of /v1/chat"),
            (with(r#"{"prompt":  "Once"}"#, "[]"), "invalid type: sequence, expected a map"),
            (with("custom_id", "id"), "missing field `custom_id`"),
        ] {
            let error = BatchRequest::read(line.as_bytes()).expect_err("it is refused").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let mut keys = HashSet::new();
        assert!(BatchRequest::read_new(line.as_bytes(), &mut keys).is_ok());
        let error = BatchRequest::read_new(line.as_bytes(), &mut keys).expect_err("it is there");
        assert_eq!(error.to_string(), "the custom_id `a` again");
    }

    #[test]
    fn a_request_has_a_seed_and_is_answered_at_once() {
        let body = r#"{"model": "other", "prompt": "Once", "stream": false, "stream_options": {}}"#;
        let request = prepared("/v1/completions", body, Some(9));
        assert_eq!(Value::Object(request.body).to_string(), r#"{"prompt":"Once","seed":7}"#);
        assert_eq!(request.model, Some(json!("other")));
        for (seed, expected) in [("3", 3), ("null", 7), ("-1", 7)] {
            let request = prepared("/v1/completions", &format!(r#"{{"seed": {seed}}}"#), None);
            assert_eq!(Value::Object(request.body), json!({"seed": expected}));
        }
        let odd = prepared("/v1/completions", r#"{"stream": "yes"}"#, None);
        assert_eq!(odd.body["stream"], "yes", "its route refuses it");
    }

    #[test]
    fn conversations_have_the_time_of_the_batch() {
        for (time, expected) in [("null", 9), ("3", 3)] {
            let body = format!(r#"{{"seed":7,"chat_template_time":{time}}}"#);
            let request = prepared("/v1/chat/completions", &body, Some(9));
            assert_eq!(request.body["chat_template_time"], expected);
        }
        for (url, time, has_time) in [
            ("/v1/chat/completions", Some(9), true),
            ("/v1/responses", Some(9), true),
            ("/v1/chat/completions", None, false),
            ("/v1/completions", Some(9), false),
        ] {
            assert_eq!(prepared(url, "{}", time).body.contains_key(TIME), has_time, "{url}");
        }
    }

    #[test]
    fn a_streamed_answer_is_refused() {
        let (status, body) = refusal(&object(r#"{"stream": true}"#)).expect("it is refused");
        assert!(status == 400 && body.contains(r#""param":"stream""#), "{body}");
        assert!(
            refusal(&object(r#"{"stream": false}"#)).is_none() && refusal(&Map::new()).is_none()
        );
    }

    #[test]
    fn a_request_takes_the_room_of_its_texts() {
        for (url, body, texts) in [
            ("/v1/completions", r#"{"prompt": "Once"}"#, 1),
            ("/v1/completions", r#"{"prompt": "Once", "n": 4, "best_of": 9}"#, 9),
            ("/v1/completions", r#"{"prompt": ["Once", "Twice"], "n": 3}"#, 6),
            ("/v1/completions", r#"{"prompt": [1, 2, 3]}"#, 1),
            ("/v1/embeddings", r#"{"input": ["a", "b", "c"]}"#, 3),
            ("/v1/responses", r#"{"input": [{}, {}, {}]}"#, 1),
            ("/v1/chat/completions", r#"{"messages": [], "n": 2}"#, 2),
            ("/v1/completions", r#"{"prompt": [], "n": 0}"#, 1),
        ] {
            assert_eq!(texts_of(url, &object(body)), texts, "{body}");
        }
        let many = object(r#"{"prompt": ["a", "b"], "n": 18446744073709551615}"#);
        assert_eq!(texts_of("/v1/completions", &many), usize::MAX);
    }
}

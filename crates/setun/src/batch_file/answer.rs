//! Answers of batch files.

use serde_json::{Value, json};
use setun_text::escape_line_breaks;

use super::id_of;

/// Fields with the time of an answer.
const TIMES: [&str; 2] = ["created", "created_at"];

/// Fields of the usage that say what the cache had.
const CACHE_DETAILS: [&str; 2] = ["prompt_tokens_details", "input_tokens_details"];

/// What a request has ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome<'a> {
    /// An answer of its route, which may be an error.
    Answer {
        /// Its status.
        status: u16,
        /// Its body: JSON, or a text.
        body: &'a str,
    },
    /// None: the request did not reach its route.
    Error {
        /// The kind of fault.
        code: &'a str,
        /// What is wrong.
        message: &'a str,
    },
}

/// Tokens of an answer, by its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerTokens {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Those of them that the prefix cache had.
    pub cached: usize,
    /// Tokens generated.
    pub completion: usize,
}

/// The answer of a request as a line, with its end. Line breaks in texts are escaped.
#[must_use]
pub fn answer_line(custom_id: &str, outcome: BatchOutcome<'_>) -> Vec<u8> {
    let id = id_of(custom_id);
    let (response, error) = match outcome {
        BatchOutcome::Answer { status, body } => {
            let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
            let request_id = format!("req_{id}");
            (json!({"status_code": status, "request_id": request_id, "body": body}), Value::Null)
        }
        BatchOutcome::Error { code, message } => {
            (Value::Null, json!({"code": code, "message": message}))
        }
    };
    let line = json!({
        "id": format!("batch_req_{id}"),
        "custom_id": custom_id,
        "response": response,
        "error": error,
    });
    let mut line = line.to_string().into_bytes();
    escape_line_breaks(&mut line, 0);
    line.push(b'\n');
    line
}

/// An answer that depends on its request alone: its ids are hashes of the key, its time is 0, its model the
/// one that was asked for, and it does not say what the cache had.
#[must_use]
pub fn settled(answer: &str, key: &str, model: Option<Value>) -> (String, AnswerTokens) {
    let Ok(mut body) = serde_json::from_str::<Value>(answer) else {
        return (answer.to_owned(), AnswerTokens::default());
    };
    settle_ids(&mut body, &id_of(key));
    if let Some(fields) = body.as_object_mut()
        && fields.shift_remove("model").is_some()
        && let Some(model) = model
    {
        fields.insert("model".to_owned(), model);
    }
    for field in TIMES {
        if let Some(time) = body.get_mut(field) {
            *time = json!(0);
        }
    }
    let mut tokens = AnswerTokens::default();
    if let Some(usage) = body.get_mut("usage") {
        tokens = tokens_of(usage);
        if let Some(usage) = usage.as_object_mut() {
            usage.retain(|field, _| !CACHE_DETAILS.contains(&&**field));
        }
    }
    (body.to_string(), tokens)
}

/// Gives an answer and its items ids that follow from this one. Their kinds stay.
fn settle_ids(body: &mut Value, id: &str) {
    if let Some(found) = body.get_mut("id") {
        let kind = kind_of(found).unwrap_or("req-");
        *found = json!(format!("{kind}{id}"));
    }
    let items = body.get_mut("output").and_then(Value::as_array_mut);
    for (index, item) in items.into_iter().flatten().enumerate() {
        if let Some(found) = item.get_mut("id") {
            let kind = kind_of(found).unwrap_or("item_");
            *found = json!(format!("{kind}{id}_{index}"));
        }
    }
}

/// The beginning of an id that tells of what it is, such as `chatcmpl-`.
fn kind_of(id: &Value) -> Option<&str> {
    let id = id.as_str()?;
    id.find(['-', '_']).map(|end| &id[..=end])
}

fn tokens_of(usage: &Value) -> AnswerTokens {
    let count = |pointers: [&str; 2]| {
        let found = pointers.iter().find_map(|pointer| usage.pointer(pointer)?.as_u64());
        found.unwrap_or(0).try_into().unwrap_or(usize::MAX)
    };
    AnswerTokens {
        prompt: count(["/prompt_tokens", "/input_tokens"]),
        cached: count(CACHE_POINTERS),
        completion: count(["/completion_tokens", "/output_tokens"]),
    }
}

/// The tokens that the cache had, in a usage.
const CACHE_POINTERS: [&str; 2] =
    ["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_depends_on_its_request_alone() {
        let answer = |id: &str, created, cached| {
            let details = json!({"cached_tokens": cached});
            let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": details});
            json!({"id": id, "created": created, "model": id, "usage": usage}).to_string()
        };
        let (one, tokens) = settled(&answer("cmpl-1", 17, 0), "a", None);
        assert_eq!(tokens, AnswerTokens { prompt: 9, cached: 0, completion: 4 });
        let (other, tokens) = settled(&answer("cmpl-2", 18, 8), "a", None);
        assert_eq!((&one, tokens.cached), (&other, 8));
        assert_ne!(one, settled(&answer("cmpl-2", 18, 8), "b", None).0);
        let named = settled(&answer("cmpl-2", 18, 8), "a", Some(json!("gpt"))).0;
        assert!(named.ends_with(r#","model":"gpt"}"#), "{named}");
        assert_eq!(settled("no JSON", "a", None).0, "no JSON");
    }

    #[test]
    fn items_of_a_response_have_ids_that_follow_from_the_request() {
        let response = |unique: &str, cached| {
            let item =
                |kind: &str, at| json!({"type": "message", "id": format!("{kind}_{unique}_{at}")});
            let usage = json!({"input_tokens": 3, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": 2});
            let output = [item("rs", 0), item("msg", 1)];
            json!({"id": format!("resp_{unique}"), "created_at": cached, "output": output, "usage": usage})
                .to_string()
        };
        let (one, tokens) = settled(&response("9f", 2), "a", None);
        assert_eq!(tokens, AnswerTokens { prompt: 3, cached: 2, completion: 2 });
        assert_eq!(one, settled(&response("7e", 0), "a", None).0);
        let body: Value = serde_json::from_str(&one).expect("JSON");
        let id = id_of("a");
        assert_eq!(body["id"], format!("resp_{id}"));
        assert_eq!(body["output"][1]["id"], format!("msg_{id}_1"));
    }

    #[test]
    fn a_line_is_one_line_for_every_reader() {
        let body = json!({"text": "a\u{2028}b\nc"}).to_string();
        let line = answer_line("k\u{85}", BatchOutcome::Answer { status: 200, body: &body });
        let line = String::from_utf8(line).expect("UTF-8");
        let id = id_of("k\u{85}");
        assert_eq!(
            line,
            format!(
                "{{\"id\":\"batch_req_{id}\",\"custom_id\":\"k\\u0085\",\"response\":{{\"status_code\":200,\
                 \"request_id\":\"req_{id}\",\"body\":{{\"text\":\"a\\u2028b\\nc\"}}}},\"error\":null}}\n"
            )
        );
        let error =
            answer_line("k", BatchOutcome::Error { code: "batch_expired", message: "late" });
        let error: Value = serde_json::from_slice(&error).expect("JSON");
        assert_eq!(error["response"], Value::Null);
        assert_eq!(error["error"], json!({"code": "batch_expired", "message": "late"}));
    }
}

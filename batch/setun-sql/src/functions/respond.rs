//! `respond`: answers to requests of an HTTP API, without HTTP.

use std::{sync::Arc, time::Duration};

use datafusion::arrow::{
    array::{ArrayRef, StringViewArray, StructArray, UInt32Array},
    datatypes::{DataType, Field, Fields},
};
use serde_json::{Value, json};
use setun::text::OptionValue;
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::Call;
use crate::{error::Error, handle::RowTokens, identity::digits};

/// The places of the arguments.
const BODY: usize = 0;
const PATH: usize = 1;
const KEY: usize = 2;

/// An answer.
struct Answer {
    status: u16,
    body: String,
    tokens: RowTokens,
}

/// The statuses of a server that has no room, and of a request that has waited too long for it.
const BUSY: u16 = 429;
const TIMEOUT: u16 = 408;

/// The option with the time that a chat template has.
const TIME: &str = "chat_template_time";

/// How often a request is tried again where there is no room, and the first pause.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Characters of an id.
const ID_LENGTH: usize = 24;

pub(crate) fn fields() -> Fields {
    let count = |name| Field::new(name, DataType::UInt32, true);
    let text = |name| Field::new(name, DataType::Utf8View, true);
    let counts = ["prompt_tokens", "completion_tokens", "cached_tokens"].map(count);
    [text("body"), count("status")].into_iter().chain(counts).chain([text("error")]).collect()
}

pub(super) async fn respond(call: &Call<'_>) -> Result<ArrayRef, Error> {
    let respond = call.loaded.respond.clone().ok_or_else(|| Error::Argument {
        function: call.function.name(),
        reason: "this process answers no requests".into(),
    })?;
    let most = call.loaded.engine.max_requests_of_a_device();
    let texts = |row| call.text(BODY, row, "body").map_or(1, texts_of);
    let rows = call.model.each_row_of(call.rows, texts, |row| {
        let respond = Arc::clone(&respond);
        Box::pin(async move {
            let (body, path) = (call.text(BODY, row, "body")?, call.text(PATH, row, "path")?);
            let key = call.text(KEY, row, "key")?;
            let (request, model) = prepared(body, call.settings.row_seed(key), call.time())?;
            let (mut status, mut answer) = respond(path.to_owned(), request.clone()).await;
            // For one of more texts than the engine takes, there is never room: that is its answer.
            let may_pass = texts_of(body) <= most;
            for attempt in 1..=ATTEMPTS {
                if status != BUSY || !may_pass {
                    break;
                }
                sleep(PAUSE * attempt).await;
                (status, answer) = respond(path.to_owned(), request.clone()).await;
            }
            if status >= 500 || status == TIMEOUT || (status == BUSY && may_pass) {
                return Err(Error::Answer { status, body: answer });
            }
            let (body, tokens) = settled(&answer, key, model);
            Ok((Answer { status, body, tokens }, tokens))
        })
    });
    Ok(column(&rows.await?))
}

/// How many texts a request has: prompts or inputs, each `n` times.
fn texts_of(body: &str) -> usize {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    // An array of numbers is one prompt, of tokens.
    let list = |name| match body[name].as_array() {
        Some(list) if !list.iter().all(Value::is_number) => list.len(),
        _ => 1,
    };
    let number =
        |name: &str| serde_json::from_value::<OptionValue>(body[name].clone()).ok()?.integer();
    let choices = ["n", "best_of"].into_iter().filter_map(number).max().unwrap_or(1).max(1);
    let choices = usize::try_from(choices).unwrap_or(usize::MAX);
    (list("prompt") * list("input")).saturating_mul(choices).max(1)
}

/// A request with a seed of its own, for the model that is here, as one answer, with the job's time for its chat
/// template; and the model that it names.
fn prepared(body: &str, seed: u64, time: Option<u64>) -> Result<(String, Option<Value>), Error> {
    let wrong = |reason: &dyn std::fmt::Display| Error::Row(format!("body: {reason}"));
    let mut body: Value = serde_json::from_str(body).map_err(|error| wrong(&error))?;
    let fields = body.as_object_mut().ok_or_else(|| wrong(&"expected an object"))?;
    let model = fields.shift_remove("model");
    fields.shift_remove("stream");
    fields.shift_remove("stream_options");
    let given =
        fields.get("seed").is_some_and(|seed| !seed.is_null() && seed.as_f64() != Some(-1.0));
    if !given {
        fields.insert("seed".to_owned(), seed.into());
    }
    if let Some(time) = time
        && fields.contains_key("messages")
        && fields.get(TIME).is_none_or(Value::is_null)
    {
        fields.insert(TIME.to_owned(), time.into());
    }
    Ok((body.to_string(), model))
}

/// An answer that depends on its request alone: its id is a hash of the key, its time is 0, its model the one that was
/// asked for, and it does not say what the cache had.
fn settled(answer: &str, key: &str, model: Option<Value>) -> (String, RowTokens) {
    let Ok(mut body) = serde_json::from_str::<Value>(answer) else {
        return (answer.to_owned(), RowTokens::default());
    };
    if let Some(id) = body.get_mut("id") {
        let kind = id.as_str().and_then(|id| id.split_once('-')).map_or("req", |(kind, _)| kind);
        *id = json!(format!("{kind}-{}", id_of(key)));
    }
    if let Some(fields) = body.as_object_mut()
        && fields.shift_remove("model").is_some()
        && let Some(model) = model
    {
        fields.insert("model".to_owned(), model);
    }
    if let Some(created) = body.get_mut("created") {
        *created = json!(0);
    }
    let count = |usage: &Value, pointer| {
        usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0).try_into().unwrap_or(usize::MAX)
    };
    let mut tokens = RowTokens::default();
    if let Some(usage) = body.get_mut("usage") {
        tokens.prompt = count(usage, "/prompt_tokens");
        tokens.completion = count(usage, "/completion_tokens");
        tokens.cached = count(usage, "/prompt_tokens_details/cached_tokens");
        usage.as_object_mut().map(|usage| usage.shift_remove("prompt_tokens_details"));
    }
    (body.to_string(), tokens)
}

/// The id of what has this key.
pub(crate) fn id_of(key: &str) -> String {
    let mut id = digits(&Sha256::digest(key));
    id.truncate(ID_LENGTH);
    id
}

fn column(rows: &[Result<Answer, String>]) -> ArrayRef {
    let counts = |count: fn(&Answer) -> usize| -> ArrayRef {
        let column = rows.iter().map(|row| u32::try_from(count(row.as_ref().ok()?)).ok());
        Arc::new(column.collect::<UInt32Array>())
    };
    let bodies: StringViewArray =
        rows.iter().map(|row| row.as_ref().ok().map(|row| row.body.as_str())).collect();
    let errors: StringViewArray = rows.iter().map(|row| row.as_ref().err()).collect();
    let columns = vec![
        Arc::new(bodies) as ArrayRef,
        counts(|row| row.status.into()),
        counts(|row| row.tokens.prompt),
        counts(|row| row.tokens.completion),
        counts(|row| row.tokens.cached),
        Arc::new(errors),
    ];
    Arc::new(StructArray::new(fields(), columns, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_seed_and_is_answered_at_once_by_the_model_that_is_here() {
        let body = r#"{"model": "other", "prompt": "Once", "stream": true}"#;
        let (request, model) = prepared(body, 7, Some(9)).expect("a request");
        assert_eq!(request, r#"{"prompt":"Once","seed":7}"#);
        assert_eq!(model, Some(json!("other")));
        for (seed, expected) in [("3", 3), ("null", 7), ("-1", 7), ("-1.0", 7)] {
            let body = format!(r#"{{"seed": {seed}}}"#);
            let expected = format!(r#"{{"seed":{expected}}}"#);
            assert_eq!(prepared(&body, 7, None).expect("a request").0, expected);
        }
        for (time, expected) in [("null", 9), ("3", 3)] {
            let body = format!(r#"{{"messages":[],"seed":7,"chat_template_time":{time}}}"#);
            let (request, _) = prepared(&body, 7, Some(9)).expect("a request");
            let expected = json!({"messages": [], "seed": 7, "chat_template_time": expected});
            assert_eq!(serde_json::from_str::<Value>(&request).expect("JSON"), expected);
        }
        let chat = r#"{"messages": []}"#;
        let expected = r#"{"messages":[],"seed":7,"chat_template_time":9}"#;
        assert_eq!(prepared(chat, 7, Some(9)).expect("a request").0, expected);
        assert_eq!(prepared(chat, 7, None).expect("a request").0, r#"{"messages":[],"seed":7}"#);
        assert!(
            matches!(prepared("[]", 7, None), Err(Error::Row(reason)) if reason == "body: expected an object")
        );
        assert!(matches!(prepared("{", 7, None), Err(Error::Row(_))));
    }

    #[test]
    fn a_request_takes_the_room_of_its_texts() {
        for (body, texts) in [
            (r#"{"prompt": "Once"}"#, 1),
            (r#"{"prompt": "Once", "n": 4, "best_of": 9}"#, 9),
            (r#"{"prompt": ["Once", "Twice"], "n": 3}"#, 6),
            (r#"{"prompt": [1, 2, 3]}"#, 1),
            (r#"{"input": ["a", "b", "c"]}"#, 3),
            (r#"{"messages": [], "n": 2}"#, 2),
            (r#"{"messages": [], "n": 2.0}"#, 2),
            (r#"{"prompt": [], "n": 0}"#, 1),
            ("{", 1),
        ] {
            assert_eq!(texts_of(body), texts, "{body}");
        }
        assert_eq!(texts_of(r#"{"prompt": ["a", "b"], "n": 18446744073709551615}"#), usize::MAX);
    }

    #[test]
    fn an_answer_depends_on_its_request_alone() {
        let answer = |id: &str, created, cached| {
            let details = json!({"cached_tokens": cached});
            let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": details});
            json!({"id": id, "created": created, "model": id, "usage": usage}).to_string()
        };
        let (one, tokens) = settled(&answer("cmpl-1", 17, 0), "a", None);
        assert_eq!((tokens.prompt, tokens.completion, tokens.cached), (9, 4, 0));
        assert_eq!(one, settled(&answer("cmpl-2", 18, 8), "a", None).0);
        assert_ne!(one, settled(&answer("cmpl-2", 18, 8), "b", None).0);
        assert_eq!(settled("no JSON", "a", None).0, "no JSON");
    }
}

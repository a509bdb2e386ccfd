//! `respond`: answers to requests of an HTTP API, without HTTP.

use std::sync::Arc;

use datafusion::arrow::{
    array::{ArrayRef, StringViewArray, StructArray, UInt32Array},
    datatypes::{DataType, Field, Fields},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

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
    let rows = call.model.each_row(call.rows, |row| {
        let respond = Arc::clone(&respond);
        Box::pin(async move {
            let (body, path) = (call.text(BODY, row, "body")?, call.text(PATH, row, "path")?);
            let key = call.text(KEY, row, "key")?;
            let request = prepared(body, call.settings.row_seed(key))?;
            let (status, answer) = respond(path.to_owned(), request).await;
            if status >= 500 {
                return Err(Error::Answer { status, body: answer });
            }
            let (body, tokens) = settled(&answer, key);
            Ok((Answer { status, body, tokens }, tokens))
        })
    });
    Ok(column(&rows.await?))
}

/// A request with a seed of its own, for the model that is here, as one answer.
fn prepared(body: &str, seed: u64) -> Result<String, Error> {
    let wrong = |reason: &dyn std::fmt::Display| Error::Row(format!("body: {reason}"));
    let mut body: Value = serde_json::from_str(body).map_err(|error| wrong(&error))?;
    let fields = body.as_object_mut().ok_or_else(|| wrong(&"expected an object"))?;
    fields.remove("model");
    fields.remove("stream");
    fields.remove("stream_options");
    fields.entry("seed").or_insert_with(|| seed.into());
    Ok(body.to_string())
}

/// An answer that depends on its request alone: its id is a hash of the key, its time is 0, and it does not say what the
/// cache had.
fn settled(answer: &str, key: &str) -> (String, RowTokens) {
    let Ok(mut body) = serde_json::from_str::<Value>(answer) else {
        return (answer.to_owned(), RowTokens::default());
    };
    if let Some(id) = body.get_mut("id") {
        let kind = id.as_str().and_then(|id| id.split_once('-')).map_or("req", |(kind, _)| kind);
        *id = json!(format!("{kind}-{}", id_of(key)));
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
        usage.as_object_mut().map(|usage| usage.remove("prompt_tokens_details"));
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
        assert_eq!(prepared(body, 7).expect("a request"), r#"{"prompt":"Once","seed":7}"#);
        assert_eq!(prepared(r#"{"seed": 3}"#, 7).expect("a request"), r#"{"seed":3}"#);
        assert!(
            matches!(prepared("[]", 7), Err(Error::Row(reason)) if reason == "body: expected an object")
        );
        assert!(matches!(prepared("{", 7), Err(Error::Row(_))));
    }

    #[test]
    fn an_answer_depends_on_its_request_alone() {
        let answer = |id: &str, created, cached| {
            let details = json!({"cached_tokens": cached});
            let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": details});
            json!({"id": id, "created": created, "usage": usage}).to_string()
        };
        let (one, tokens) = settled(&answer("cmpl-1", 17, 0), "a");
        assert_eq!((tokens.prompt, tokens.completion, tokens.cached), (9, 4, 0));
        assert_eq!(one, settled(&answer("cmpl-2", 18, 8), "a").0);
        assert_ne!(one, settled(&answer("cmpl-2", 18, 8), "b").0);
        assert_eq!(settled("no JSON", "a").0, "no JSON");
    }
}

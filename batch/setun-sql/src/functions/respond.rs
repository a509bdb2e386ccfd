//! `respond`: answers to requests of an HTTP API, without HTTP.

use std::{sync::Arc, time::Duration};

use datafusion::arrow::{
    array::{ArrayRef, StringViewArray, StructArray, UInt32Array},
    datatypes::{DataType, Field, Fields},
};
use serde_json::{Map, Value};
use setun::batch_file::{AnswerTokens, PreparedRequest, refusal, settled, texts_of};
use tokio::time::sleep;

use super::Call;
use crate::{error::Error, handle::RowTokens};

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

/// How often a request is tried again where there is no room, and the first pause.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

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
    let texts = |row| {
        let (body, path) = (call.text(BODY, row, "body").ok()?, call.text(PATH, row, "path").ok()?);
        Some(texts_of(path, &object(body).ok()?))
    };
    let rows = call.model.each_row_of(
        call.rows,
        |row| texts(row).unwrap_or(1),
        |row| {
            let respond = Arc::clone(&respond);
            Box::pin(async move {
                let (body, path) = (call.text(BODY, row, "body")?, call.text(PATH, row, "path")?);
                let (body, key) = (object(body)?, call.text(KEY, row, "key")?);
                if let Some((status, body)) = refusal(&body) {
                    let tokens = RowTokens::default();
                    return Ok((Answer { status, body, tokens }, tokens));
                }
                // For one of more texts than the engine takes, there is never room: that is its answer.
                let may_pass = texts_of(path, &body) <= most;
                let seed = call.settings.row_seed(key);
                let PreparedRequest { body, model } =
                    PreparedRequest::new(path, body, seed, call.time());
                let request = Value::Object(body).to_string();
                let (mut status, mut answer) = respond(path.to_owned(), request.clone()).await;
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
                let AnswerTokens { prompt, cached, completion } = tokens;
                let tokens = RowTokens { prompt, cached, completion };
                Ok((Answer { status, body, tokens }, tokens))
            })
        },
    );
    Ok(column(&rows.await?))
}

/// A request in the form of its batch file's line, for the model that is here.
fn object(body: &str) -> Result<Map<String, Value>, Error> {
    let wrong = |reason: &dyn std::fmt::Display| Error::Row(format!("body: {reason}"));
    match serde_json::from_str(body).map_err(|error| wrong(&error))? {
        Value::Object(fields) => Ok(fields),
        _ => Err(wrong(&"expected an object")),
    }
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
    fn a_body_is_an_object() {
        assert_eq!(object(r#"{"prompt": "Once"}"#).expect("a body")["prompt"], "Once");
        assert!(
            matches!(object("[]"), Err(Error::Row(reason)) if reason == "body: expected an object")
        );
        assert!(matches!(object("{"), Err(Error::Row(_))));
    }
}

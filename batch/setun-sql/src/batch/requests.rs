//! Files of requests, as `OpenAI`'s batch API has them: rows of a table, in and out.

use std::{collections::HashSet, sync::Arc};

use datafusion::arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, StringViewArray, StructArray},
    datatypes::UInt32Type,
};
use serde_json::Value;
use setun::batch_file::{BatchOutcome, BatchRequest, answer_line};

/// Columns of requests.
pub(super) const KEY: &str = "custom_id";
pub(super) const PATH: &str = "url";
pub(super) const BODY: &str = "body";

/// The requests of a file, whose keys are none of those of other files; the error says which line is wrong.
pub(super) fn read(text: &[u8], keys: &mut HashSet<String>) -> Result<RecordBatch, String> {
    let mut rows = vec![];
    for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let request = BatchRequest::read_new(line, keys);
        if let Some(request) = request.map_err(|error| format!("line {number}: {error}"))? {
            rows.push([request.custom_id, request.url, Value::Object(request.body).to_string()]);
        }
    }
    let column = |number: usize| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(&row[number])).collect::<StringViewArray>())
    };
    let columns = [(KEY, column(0)), (PATH, column(1)), (BODY, column(2))];
    RecordBatch::try_from_iter(columns).map_err(|error| error.to_string())
}

/// Answers as lines, each with the `custom_id` of its request.
pub(super) fn lines(rows: &RecordBatch, answers: &StructArray) -> Vec<u8> {
    let text = |column: Option<&ArrayRef>, row: usize| {
        let column = column?.as_string_view_opt()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let status = answers.column_by_name("status");
    let status = status.and_then(|status| status.as_primitive_opt::<UInt32Type>());
    let mut lines = vec![];
    for row in 0..rows.num_rows() {
        let key = text(rows.column_by_name(KEY), row).unwrap_or_default();
        let body = text(answers.column_by_name("body"), row);
        let error = text(answers.column_by_name("error"), row);
        let status = status.and_then(|status| u16::try_from(status.value(row)).ok());
        let outcome = if let (Some(body), Some(status)) = (&body, status) {
            BatchOutcome::Answer { status, body }
        } else {
            let message = error.as_deref().unwrap_or_default();
            BatchOutcome::Error { code: "invalid_request", message }
        };
        lines.extend(answer_line(&key, outcome));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<RecordBatch, String> {
        super::read(text, &mut HashSet::new())
    }

    #[test]
    fn requests_are_rows() {
        let text = br#"
{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt":  "Once"}}

{"custom_id": "b", "url": "/v1/embeddings", "body": {"input": "x"}}"#;
        let rows = read(text).expect("requests");
        assert_eq!(rows.num_rows(), 2);
        let bodies = rows.column_by_name(BODY).expect("bodies").as_string_view();
        assert_eq!(bodies.value(0), r#"{"prompt":"Once"}"#);
        assert_eq!(read(b"\n \n").expect("no request").num_rows(), 0);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let line = |key: &str, more: &str| {
            format!(r#"{{"custom_id": "{key}", "url": "/v1/completions", "body": {{}}{more}}}"#)
        };
        for (text, expected) in [
            (line("a", "") + "\n{", "line 2: "),
            (line("a", "") + "\n\n" + &line("a", ""), "line 3: the custom_id `a` again"),
            (line("a", r#", "method": "GET""#), "line 1: the method GET, expected POST"),
            (line("a", "").replace("/v1/completions", "/v1/files"), "line 1: the url `/v1/files`"),
            (line("a", "").replace("{}", "[]"), "line 1: invalid type: sequence, expected a map"),
            (line("a", "").replace("custom_id", "id"), "line 1: missing field `custom_id`"),
        ] {
            let error = read(text.as_bytes()).expect_err("it is refused");
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

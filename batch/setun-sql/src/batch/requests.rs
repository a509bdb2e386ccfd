//! Files of requests, as `OpenAI`'s batch API has them
//! (<https://platform.openai.com/docs/guides/batch>): a JSON object a line, in and out.

use std::{collections::HashSet, sync::Arc};

use datafusion::arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, StringViewArray, StructArray},
    datatypes::UInt32Type,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use setun::text::{escape_line_breaks, without_mark};

use crate::functions::id_of;

/// Columns of requests.
pub(super) const KEY: &str = "custom_id";
pub(super) const PATH: &str = "url";
pub(super) const BODY: &str = "body";

/// What may be asked for.
const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"];

#[derive(Deserialize)]
struct Request {
    custom_id: String,
    method: Option<String>,
    url: String,
    body: Map<String, Value>,
}

/// The requests of a file, whose keys are none of those of other files; the error says which line is wrong.
pub(super) fn read(text: &[u8], keys: &mut HashSet<String>) -> Result<RecordBatch, String> {
    let mut rows = vec![];
    for (number, line) in (1..).zip(without_mark(text).split(|&byte| byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let wrong = |reason: String| format!("line {number}: {reason}");
        let request: Request =
            serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        let method = request.method.as_deref().unwrap_or("POST");
        if method != "POST" {
            return Err(wrong(format!("the method {method}, expected POST")));
        }
        if !PATHS.contains(&request.url.as_str()) {
            let (url, expected) = (request.url, PATHS.join(", "));
            return Err(wrong(format!("the url `{url}`, expected one of {expected}")));
        }
        if !keys.insert(request.custom_id.clone()) {
            return Err(wrong(format!("the custom_id `{}` again", request.custom_id)));
        }
        rows.push([request.custom_id, request.url, Value::Object(request.body).to_string()]);
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
    let mut lines = String::new();
    for row in 0..rows.num_rows() {
        let key = text(rows.column_by_name(KEY), row).unwrap_or_default();
        let body = text(answers.column_by_name("body"), row);
        let error = text(answers.column_by_name("error"), row);
        let id = id_of(&key);
        let response = body.map(|body| {
            let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
            let status = status.map(|status| status.value(row));
            json!({"status_code": status, "request_id": format!("req_{id}"), "body": body})
        });
        let error = error.map(|reason| json!({"code": "invalid_request", "message": reason}));
        let line = json!({
            "id": format!("batch_req_{id}"),
            KEY: key,
            "response": response,
            "error": error,
        });
        lines += &line.to_string();
        lines.push('\n');
    }
    let mut lines = lines.into_bytes();
    escape_line_breaks(&mut lines, 0);
    lines
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

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
    fn a_byte_order_mark_is_passed_over_and_lines_have_no_breaks_but_their_own() {
        let text = "\u{feff}{\"custom_id\": \"a\u{2028}b\", \"url\": \"/v1/embeddings\", \"body\": {\"input\": \"x\"}}";
        let rows = read(text.as_bytes()).expect("a request");
        let bodies = StringViewArray::from(vec![Some("{\"x\":\"c\u{85}d\u{2029}\"}")]);
        let answers = StructArray::from(vec![(
            Arc::new(Field::new("body", DataType::Utf8View, true)),
            Arc::new(bodies) as ArrayRef,
        )]);
        let lines = String::from_utf8(lines(&rows, &answers)).expect("UTF-8");
        assert!(lines.contains("a\\u2028b") && lines.contains("c\\u0085d\\u2029"), "{lines}");
        let value: Value = serde_json::from_str(&lines).expect("one line");
        assert_eq!(value["response"]["body"]["x"], "c\u{85}d\u{2029}");
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

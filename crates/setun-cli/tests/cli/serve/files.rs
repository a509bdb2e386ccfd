//! `setun serve --files`: files and batches across processes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Server;
use crate::{
    support::{send, setun},
    wait::wait_for,
};

/// Requests of a batch, and tokens of each.
const REQUESTS: usize = 60;
const TOKENS: usize = 60;

const FORM: &str = "content-type: multipart/form-data; boundary=part\r\n";

#[test]
fn a_batch_goes_on_after_the_death_of_its_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = folder.path().join("files");
    let files = files.to_str().expect("UTF-8");
    let start = || Server::start(&["--files", files, "--batch-concurrency", "1"], "setun-stories");
    let mut server = start();
    setun(&["serve", "--port", "0", "--files", files])
        .wrong_usage("another server uses this folder");
    let line = |key: usize| {
        let body = json!({"prompt": "A cat", "max_tokens": TOKENS, "min_tokens": TOKENS, "temperature": 1});
        json!({"custom_id": key.to_string(), "url": "/v1/completions", "body": body}).to_string()
    };
    let content = (0..REQUESTS).map(line).collect::<Vec<_>>().join("\n");
    let head = |name| format!("--part\r\nContent-Disposition: form-data; name={name}\r\n\r\n");
    let form = format!(
        "{}batch\r\n{}{content}\r\n--part--\r\n",
        head("purpose"),
        head("file; filename=a")
    );
    let file = super::read_body(server.open_with("POST /v1/files", FORM, &form));
    let file: Value = serde_json::from_str(&file).expect("JSON");
    let body = json!({"input_file_id": file["id"], "endpoint": "/v1/completions", "completion_window": "24h"});
    let batch = server.ask("POST /v1/batches", &body.to_string());
    let path = format!("GET /v1/batches/{}", batch["id"].as_str().expect("an id"));
    let completed = |server: &Server| {
        server.ask(&path, "")["request_counts"]["completed"].as_u64().expect("a count")
    };
    wait_for("an answer", || completed(&server) > 0);
    send("-KILL", &server.child);
    server.child.wait().expect("its end");
    drop(server);

    let server = start();
    let mut ended = Value::Null;
    wait_for("the end of the batch", || {
        ended = server.ask(&path, "");
        ended["status"] == "completed"
    });
    assert_eq!(ended["request_counts"]["completed"], REQUESTS, "{ended}");
    let output = ended["output_file_id"].as_str().expect("a file");
    let answers = server.body(&format!("GET /v1/files/{output}/content"), "");
    let key = |line: &str| {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        answer["custom_id"].as_str().expect("a key").to_owned()
    };
    let keys: Vec<_> = answers.lines().map(key).collect();
    assert_eq!((keys.len(), keys.iter().collect::<BTreeSet<_>>().len()), (REQUESTS, REQUESTS));
    server.end();
}

//! Batches from their validation to their end.

use std::time::Duration;

use serde_json::{Value, json};
use setun::Clock;
use setun_serve::{ApiKeys, FileLimits, FileStore, Lifecycle, Limits, ServeOptions};
use tempfile::TempDir;
use tokio::{
    task::{spawn_blocking, yield_now},
    time::timeout,
};

use super::{Kept, PATIENCE, id, keys, line, text};
use crate::{
    support::{Gate, post, shared},
    wait::comes,
};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A server whose batches answer one request at a time, and hold those of more than two tokens.
async fn held(gate: &Gate, folder: &TempDir, options: ServeOptions) -> (Kept, String) {
    let server =
        Kept::within(gate.engine(), folder, options, |limits| limits.batch_concurrency = 1);
    let batch = server.batch(&(text("a", 2) + &text("b", 8) + &text("c", 2))).await;
    server.until(&batch, |batch| batch["request_counts"]["completed"] == 1).await;
    let waiting = gate.clone();
    spawn_blocking(move || waiting.wait()).await.expect("no panic");
    (server, batch)
}

/// Waits until no server uses a folder.
async fn until_free(folder: &TempDir) {
    let path = folder.path().to_owned();
    let is_free = move || comes(|| FileStore::open(&path, FileLimits::default()).is_ok());
    assert!(spawn_blocking(is_free).await.expect("no panic"), "the folder stays in use");
}

fn counts(batch: &Value) -> [u64; 3] {
    ["total", "completed", "failed"]
        .map(|name| batch["request_counts"][name].as_u64().expect("a count"))
}

#[tokio::test]
async fn answers_and_errors_are_files() {
    let folder = folder();
    let server = Kept::new(shared(), &folder, ServeOptions::new());
    let wrong =
        |key, more: Value| line(key, &crate::support::with(&json!({"prompt": "A cat"}), &more));
    let input = [
        text("a", 3),
        wrong("b", json!({"temperature": -1})),
        wrong("c", json!({"stream": true})),
        wrong("d", json!({"model": "absent"})),
        "\n".to_owned(),
        wrong("e", json!({"model": "stories:latest", "n": 2, "max_tokens": 2})),
    ];
    let metadata = json!({"night": "first"});
    let body = json!({
        "input_file_id": server.file(&input.concat()).await, "endpoint": "/v1/completions",
        "completion_window": "24h", "metadata": metadata,
    });
    let created = server.post("/v1/batches", &body).await.json();
    assert_eq!(created["status"], "validating");
    assert_eq!(
        created["expires_at"].as_u64(),
        created["created_at"].as_u64().map(|time| time + 86_400)
    );
    let batch = server.ended(&id(&created)).await;
    assert_eq!((&batch["status"], counts(&batch)), (&json!("completed"), [5, 2, 3]), "{batch}");
    assert_eq!((&batch["metadata"], &batch["errors"]), (&metadata, &Value::Null));
    let times = ["created_at", "in_progress_at", "finalizing_at", "completed_at"];
    let times = times.map(|name| batch[name].as_u64().expect(name));
    assert!(times.is_sorted(), "{times:?}");
    let answers = server.lines(&batch, "output_file_id").await;
    assert_eq!(keys(&answers), ["a", "e"]);
    assert!(
        answers
            .iter()
            .all(|line| line["response"]["status_code"] == 200 && line["error"].is_null())
    );
    let errors = server.lines(&batch, "error_file_id").await;
    let of = |key: &str| errors.iter().find(|line| line["custom_id"] == key).expect("a line");
    for (key, status, param) in
        [("b", 400, "temperature"), ("c", 400, "stream"), ("d", 404, "model")]
    {
        let response = &of(key)["response"];
        assert_eq!(response["status_code"], status, "{response}");
        assert_eq!(response["body"]["error"]["param"], param, "{response}");
    }
    let output = batch["output_file_id"].as_str().expect("a file");
    let file = server.get(&format!("/v1/files/{output}")).await.json();
    assert_eq!(
        (&file["purpose"], &file["filename"]),
        (&json!("batch_output"), &json!(format!("{}_output.jsonl", id(&batch))))
    );
    let list = server.get("/v1/batches?limit=1").await.json();
    assert_eq!((&list["data"][0], &list["has_more"]), (&batch, &json!(false)));
    let metrics = server.get("/metrics").await.text;
    assert!(metrics.contains("batch_requests_total{status=\"200\"} 2"), "{metrics}");
    // It is an output: no batch can be made of it.
    let again = crate::support::with(&body, &json!({"input_file_id": output}));
    assert_eq!(server.post("/v1/batches", &again).await.error()["param"], "input_file_id");
}

#[tokio::test]
async fn every_endpoint_has_batches() {
    let folder = folder();
    let server = Kept::new(shared(), &folder, ServeOptions::new());
    let messages = json!([{"role": "user", "content": "A cat"}]);
    for (url, body) in [
        ("/v1/chat/completions", json!({"messages": messages, "max_tokens": 2})),
        ("/v1/embeddings", json!({"input": ["A cat", "A dog"]})),
        ("/v1/responses", json!({"input": "A cat", "max_output_tokens": 2})),
    ] {
        let line =
            json!({"custom_id": "a", "method": "POST", "url": url, "body": body}).to_string();
        let batch = server.batch_of(url, &line).await;
        let batch = server.ended(&batch).await;
        assert_eq!((&batch["status"], counts(&batch)), (&json!("completed"), [1, 1, 0]), "{batch}");
        assert_eq!(server.lines(&batch, "output_file_id").await.len(), 1);
        assert_eq!(batch["error_file_id"], Value::Null);
    }
}

#[tokio::test]
async fn lines_that_are_wrong_fail_the_batch_by_their_numbers() {
    let folder = folder();
    let server =
        Kept::within(shared(), &folder, ServeOptions::new().max_body_bytes(1000), |limits| {
            limits.batch_requests = 3;
        });
    let good = text("a", 2);
    let other = |from: &str, to: &str| good.replace(from, to);
    for (input, expected) in [
        (good.clone() + "{\n", json!([["invalid_json_line", 2]])),
        (good.clone() + "\n" + &good, json!([["duplicate_custom_id", 3]])),
        (
            other("POST", "GET") + &other("\"body\"", "\"no\""),
            json!([["invalid_method", 1], ["invalid_json_line", 2]]),
        ),
        (other("/v1/completions", "/v1/files"), json!([["invalid_url", 1]])),
        (other("/v1/completions", "/v1/embeddings"), json!([["mismatched_endpoint", 1]])),
        (
            good.clone() + &"x".repeat(70_000) + "\n" + &good,
            json!([["line_too_long", 2], ["duplicate_custom_id", 3]]),
        ),
        ("\n \n".to_owned(), json!([["empty_file", null]])),
        (
            ["a", "b", "c", "d"].map(|key| text(key, 2)).concat(),
            json!([["too_many_requests", null]]),
        ),
    ] {
        let batch = server.batch(&input).await;
        let batch = server.ended(&batch).await;
        assert_eq!(batch["status"], "failed", "{batch}");
        assert!(batch["failed_at"].is_u64() && batch["output_file_id"].is_null(), "{batch}");
        let faults = batch["errors"]["data"].as_array().expect("faults");
        let found: Vec<_> =
            faults.iter().map(|fault| json!([fault["code"], fault["line"]])).collect();
        assert_eq!(json!(found), expected, "{batch}");
    }
}

#[tokio::test]
async fn requests_for_batches_name_what_is_wrong() {
    let folder = folder();
    let server = Kept::new(shared(), &folder, ServeOptions::new());
    let file = server.file(&text("a", 2)).await;
    let right =
        json!({"input_file_id": file, "endpoint": "/v1/completions", "completion_window": "24h"});
    let lasts = |anchor, seconds| json!({"anchor": anchor, "seconds": seconds});
    for (param, value) in [
        ("input_file_id", json!(null)),
        ("endpoint", json!("/v1/audio")),
        ("completion_window", json!("1h")),
        ("metadata", json!({"a": 1})),
        ("metadata", json!({"a": "b".repeat(513)})),
        ("output_expires_after.anchor", lasts("now", 3600)),
        ("output_expires_after.seconds", lasts("created_at", 1)),
    ] {
        let field = param.split('.').next().expect("a name");
        let mut body = right.clone();
        body[field] = value;
        let answer = server.post("/v1/batches", &body).await;
        assert_eq!((answer.status.as_u16(), &answer.error()["param"]), (400, &json!(param)));
    }
    let mut absent = right;
    absent["input_file_id"] = json!("file-0");
    assert_eq!(server.post("/v1/batches", &absent).await.status, 404);
}

/// What is answered is kept, and the others end at once.
#[tokio::test]
async fn a_batch_is_cancelled() {
    let (folder, gate) = (folder(), Gate::default());
    let (server, batch) = held(&gate, &folder, ServeOptions::new()).await;
    let input = server.get(&format!("/v1/batches/{batch}")).await.json()["input_file_id"].clone();
    let path = format!("/v1/files/{}", input.as_str().expect("a file"));
    assert_eq!(server.delete(&path).await.error()["code"], "conflict", "the batch needs it");
    let cancelling = server.post(&format!("/v1/batches/{batch}/cancel"), &json!({})).await.json();
    assert!(cancelling["cancelling_at"].is_u64(), "{cancelling}");
    let ended = server.ended(&batch).await;
    gate.open();
    assert_eq!((&ended["status"], counts(&ended)), (&json!("cancelled"), [3, 1, 0]), "{ended}");
    assert_eq!(keys(&server.lines(&ended, "output_file_id").await), ["a"]);
    assert_eq!(ended["error_file_id"], Value::Null);
    let again = server.post(&format!("/v1/batches/{batch}/cancel"), &json!({})).await.json();
    assert_eq!(again["status"], "cancelled");
    server.delete(&path).await.json();
    let whole = server.batch(&text("a", 2)).await;
    server.ended(&whole).await;
    let late = server.post(&format!("/v1/batches/{whole}/cancel"), &json!({})).await;
    assert_eq!((late.status.as_u16(), &late.error()["code"]), (409, &json!("conflict")));
}

#[tokio::test]
async fn a_batch_goes_on_after_a_restart() {
    let (folder, gate, lifecycle) = (folder(), Gate::default(), Lifecycle::new());
    let options = ServeOptions::new().lifecycle(lifecycle.clone());
    let (server, batch) = held(&gate, &folder, options).await;
    lifecycle.drain();
    drop(server);
    // The batch ends at once, while the engine still holds the text.
    until_free(&folder).await;
    gate.open();
    let server = Kept::new(shared(), &folder, ServeOptions::new());
    let ended = server.ended(&batch).await;
    assert_eq!((&ended["status"], counts(&ended)), (&json!("completed"), [3, 3, 0]), "{ended}");
    assert_eq!(keys(&server.lines(&ended, "output_file_id").await), ["a", "b", "c"]);
    let metrics = server.get("/metrics").await.text;
    assert!(metrics.contains("batch_requests_total{status=\"200\"} 2"), "one was done: {metrics}");
    drop(server);
    until_free(&folder).await;
    let server = Kept::new(shared(), &folder, ServeOptions::new());
    assert_eq!(server.get(&format!("/v1/batches/{batch}")).await.json(), ended, "it is as it was");
}

#[tokio::test]
async fn a_batch_expires() {
    let (folder, gate, clock) = (folder(), Gate::default(), Clock::held());
    let (server, batch) = held(&gate, &folder, ServeOptions::new().clock(clock.clone())).await;
    clock.advance(Duration::from_hours(24));
    let ended = server.ended(&batch).await;
    gate.open();
    assert_eq!((&ended["status"], counts(&ended)), (&json!("expired"), [3, 1, 2]), "{ended}");
    assert_eq!(keys(&server.lines(&ended, "output_file_id").await), ["a"]);
    let errors = server.lines(&ended, "error_file_id").await;
    assert_eq!(keys(&errors), ["b", "c"]);
    assert!(
        errors
            .iter()
            .all(|line| line["error"]["code"] == "batch_expired" && line["response"].is_null())
    );
}

/// A client's request comes before those of batches, whatever they ask for.
#[tokio::test]
async fn a_client_waits_for_no_batch() {
    let (folder, gate) = (folder(), Gate::default());
    let server = Kept::new(gate.engine(), &folder, ServeOptions::new());
    let body = |priority| json!({"prompt": "A cat", "max_tokens": 8, "min_tokens": 8, "priority": priority});
    let input: String = (0..4).map(|key| line(&key.to_string(), &body(2_147_483_647))).collect();
    let batch = server.batch(&input).await;
    let waiting = gate.clone();
    spawn_blocking(move || waiting.wait()).await.expect("no panic");
    let request = json!({"prompt": "A dog", "max_tokens": 2});
    let (router, stepping) = (server.router.clone(), gate.clone());
    let asked = tokio::spawn(async move { post(&router, "/v1/completions", &request).await });
    let listed =
        async || server.get("/ui/requests").await.json()["data"].as_array().expect("a list").len();
    while listed().await < 5 {
        yield_now().await;
    }
    // There is one place, which a text of the batch has. It is held again before its next token.
    spawn_blocking(move || stepping.step()).await.expect("no panic");
    let answer = timeout(PATIENCE, asked).await.expect("it waits for the batch");
    answer.expect("no panic").json();
    assert_eq!(counts(&server.get(&format!("/v1/batches/{batch}")).await.json()), [4, 0, 0]);
    gate.open();
    assert_eq!(counts(&server.ended(&batch).await), [4, 4, 0]);
}

#[tokio::test]
async fn a_batch_counts_in_the_limits_of_its_key() {
    let folder = folder();
    let mut limits = Limits::default();
    (limits.concurrent_requests, limits.concurrent_texts) = (Some(2), Some(3));
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    let options = ServeOptions::new().limits(limits).api_keys(keys.clone());
    let server = Kept::new(shared(), &folder, options).with_key("first");
    let of = |key: &str, n| line(key, &json!({"prompt": "A cat", "n": n, "max_tokens": 2}));
    let input: String = (0..6).map(|key| of(&key.to_string(), 2)).collect();
    let batch = server.batch(&(input + &of("many", 4))).await;
    let ended = server.ended(&batch).await;
    assert_eq!(counts(&ended), [7, 6, 1], "the others wait, and one never has room: {ended}");
    let errors = server.lines(&ended, "error_file_id").await;
    assert_eq!(errors[0]["response"]["body"]["error"]["param"], "n", "{errors:?}");
    // A batch whose key is taken away ends.
    let gate = Gate::default();
    let options = ServeOptions::new().api_keys(keys.clone());
    let other = tempfile::tempdir().expect("a folder");
    let server =
        Kept::within(gate.engine(), &other, options, |limits| limits.batch_concurrency = 1);
    let first = server.with_key("first");
    let batch = first.batch(&(text("a", 8) + &text("b", 2))).await;
    let waiting = gate.clone();
    spawn_blocking(move || waiting.wait()).await.expect("no panic");
    let both = keys.clone();
    keys.replace(&ApiKeys::parse("second").expect("a key"));
    gate.open();
    // It ends by itself: nobody may ask for it.
    let end = other.path().join(format!("batches/{batch}.json"));
    let is_over = move || {
        comes(|| {
            std::fs::read_to_string(&end).is_ok_and(|text| text.contains("\"status\":\"failed\""))
        })
    };
    assert!(spawn_blocking(is_over).await.expect("no panic"), "the batch goes on");
    both.replace(&ApiKeys::parse("first\nsecond").expect("keys"));
    let ended = first.ended(&batch).await;
    assert_eq!(ended["errors"]["data"][0]["code"], "invalid_api_key", "{ended}");
}

/// There is room for some answers. They are kept.
#[tokio::test]
async fn a_batch_without_room_for_its_answers_keeps_what_it_has() {
    let folder = folder();
    let input: String = (0..20).map(|key| text(&key.to_string(), 2)).collect();
    let server = Kept::within(shared(), &folder, ServeOptions::new(), |limits| {
        limits.total_bytes = input.len() as u64 + 2_000;
        limits.batch_concurrency = 1;
    });
    let batch = server.batch(&input).await;
    let ended = server.ended(&batch).await;
    assert_eq!(
        (&ended["status"], &ended["errors"]["data"][0]["code"]),
        (&json!("failed"), &json!("storage_full"))
    );
    let answers = server.lines(&ended, "output_file_id").await;
    let [_, completed, _] = counts(&ended);
    assert!(completed > 0 && completed < 20 && answers.len() as u64 == completed, "{ended}");
}

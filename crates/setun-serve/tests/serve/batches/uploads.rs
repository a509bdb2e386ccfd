//! Files: uploads, lists, contents, limits and owners.

use std::{convert::Infallible, fs};

use axum::{
    body::{Body, Bytes},
    http::Method,
};
use futures::stream;
use serde_json::{Value, json};
use setun::Clock;
use setun_serve::{ApiKeys, FileLimits, FileStore, FilesError, ServeOptions, router};

use super::{BOUNDARY, Kept, form, id, text};
use crate::support::{Answer, get, shared};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn kept(folder: &tempfile::TempDir) -> Kept {
    Kept::new(shared(), folder, ServeOptions::new())
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, code: &str, param: &Value) {
    let error = answer.error();
    assert_eq!((answer.status.as_u16(), error["code"].as_str()), (status, Some(code)), "{error}");
    assert_eq!(error["param"], *param, "{error}");
}

#[tokio::test]
async fn a_file_comes_back_as_it_was_sent() {
    let folder = folder();
    let server = kept(&folder);
    let content = "{\"é\": 1}\r\n\n\u{2028} no newline at the end";
    let file = server.upload(content, &[("purpose", "batch")]).await.json();
    let expected = json!({
        "id": file["id"], "object": "file", "bytes": content.len(), "created_at": file["created_at"],
        "expires_at": null, "filename": "in.jsonl", "purpose": "batch", "status": "processed",
        "status_details": null,
    });
    assert_eq!(file, expected);
    let path = format!("/v1/files/{}", id(&file));
    assert_eq!(server.get(&path).await.json(), file);
    let answer = server.get(&format!("{path}/content")).await;
    assert_eq!((answer.status.as_u16(), &*answer.text), (200, content));
    assert_eq!(answer.headers["content-length"], content.len().to_string());
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    let removed = server.delete(&path).await.json();
    assert_eq!(removed, json!({"id": file["id"], "object": "file", "deleted": true}));
    for answer in [server.get(&path).await, server.delete(&path).await] {
        assert_refused(&answer, 404, "not_found", &json!("file_id"));
    }
    let left = fs::read_dir(folder.path().join("files")).expect("a folder").count();
    assert_eq!(left, 0, "nothing is left of it");
}

#[tokio::test]
async fn lists_have_pages() {
    let folder = folder();
    let server = kept(&folder);
    let mut ids = vec![];
    for number in 0..5 {
        ids.push(server.file(&format!("{number}")).await);
    }
    let page = async |query: &str| {
        let page = server.get(&format!("/v1/files?{query}")).await.json();
        let data = page["data"].as_array().expect("files").iter().map(id).collect::<Vec<_>>();
        assert_eq!(page["first_id"].as_str(), data.first().map(String::as_str));
        assert_eq!(page["last_id"].as_str(), data.last().map(String::as_str));
        (data, page["has_more"] == true)
    };
    let newest: Vec<_> = ids.iter().rev().cloned().collect();
    assert_eq!(page("").await, (newest.clone(), false));
    assert_eq!(page("limit=2").await, (newest[..2].to_vec(), true));
    assert_eq!(page(&format!("limit=3&after={}", newest[1])).await, (newest[2..].to_vec(), false));
    assert_eq!(page("order=asc&purpose=batch").await, (ids, false));
    assert_eq!(page("purpose=batch_output").await, (vec![], false));
    for (query, param) in [("limit=0", "limit"), ("order=up", "order"), ("after=file-1", "after")] {
        let answer = server.get(&format!("/v1/files?{query}")).await;
        assert_refused(&answer, 400, "invalid_value", &json!(param));
    }
    let unknown = server.get("/v1/files?colour=red").await;
    assert_eq!(unknown.headers["x-setun-warning"], "`colour` is unknown and is ignored");
}

#[tokio::test]
async fn forms_that_are_wrong_name_their_fields() {
    let folder = folder();
    let server = kept(&folder);
    let batch = ("purpose", "batch");
    for (content, fields, code, param) in [
        ("a", &[][..], "missing_required_parameter", "purpose"),
        ("a", &[("purpose", "fine-tune")], "invalid_value", "purpose"),
        ("", &[batch], "invalid_value", "file"),
        ("a", &[batch, batch], "invalid_value", "purpose"),
        ("a", &[batch, ("file", "b")], "invalid_value", "file"),
        (
            "a",
            &[batch, ("expires_after[anchor]", "created_at")],
            "invalid_value",
            "expires_after.seconds",
        ),
        (
            "a",
            &[batch, ("expires_after[seconds]", "3600")],
            "invalid_value",
            "expires_after.anchor",
        ),
    ] {
        assert_refused(&server.upload(content, fields).await, 400, code, &json!(param));
    }
    let typed = async |form: String, content_type: &str| {
        server.ask(Method::POST, "/v1/files", form, content_type).await
    };
    let whole = form("a", "a", &[batch]);
    let boundary = format!("multipart/form-data; boundary={BOUNDARY}");
    assert_refused(
        &typed(whole.clone(), "application/json").await,
        400,
        "invalid_value",
        &json!("content-type"),
    );
    assert_refused(
        &typed("{}".into(), "multipart/form-data").await,
        400,
        "invalid_value",
        &json!("content-type"),
    );
    let cut = whole[..whole.len() - 40].to_owned();
    assert_refused(&typed(cut, &boundary).await, 400, "incomplete_body", &Value::Null);
    let without_file = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{BOUNDARY}--\r\n"
    );
    assert_refused(
        &typed(without_file, &boundary).await,
        400,
        "missing_required_parameter",
        &json!("file"),
    );
    let name = form("a/..", "a", &[batch]);
    assert_refused(&typed(name, &boundary).await, 400, "invalid_value", &json!("file"));
    let endless = format!("--{BOUNDARY}\r\nContent-Disposition: {}", "a".repeat(1 << 20));
    assert_refused(&typed(endless, &boundary).await, 400, "invalid_value", &json!("body"));
    let files = fs::read_dir(folder.path().join("files")).expect("a folder").count();
    assert_eq!(files, 0, "nothing is left of what was refused");
    let named = typed(form("../../etc/passwd", "a", &[batch]), &boundary).await.json();
    assert_eq!(named["filename"], "passwd");
}

/// A body in pieces of any size, with what looks like a boundary in it.
#[tokio::test]
async fn an_upload_may_be_cut_anywhere() {
    let folder = folder();
    let server = kept(&folder);
    let content = format!("a\r\n--{}\r\n----\r\n", &BOUNDARY[..6]).repeat(50);
    let form = form("in.jsonl", &content, &[("purpose", "batch")]);
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    for size in [1, 7, 64, 4096] {
        let pieces: Vec<_> = form.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
        let body = Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)));
        let file = server.ask(Method::POST, "/v1/files", body, &content_type).await.json();
        let path = format!("/v1/files/{}/content", id(&file));
        assert_eq!(server.get(&path).await.text, content, "{size}");
    }
}

#[tokio::test]
async fn files_have_limits() {
    let folder = folder();
    let server = Kept::within(shared(), &folder, ServeOptions::new(), |limits| {
        (limits.file_bytes, limits.total_bytes, limits.files) = (100, 150, 3);
    });
    let large = server.upload(&"a".repeat(101), &[("purpose", "batch")]).await;
    assert_refused(&large, 413, "request_too_large", &Value::Null);
    let first = server.file(&"a".repeat(100)).await;
    let full = server.upload(&"a".repeat(51), &[("purpose", "batch")]).await;
    assert_refused(&full, 507, "storage_full", &Value::Null);
    assert_eq!(full.headers["x-should-retry"], "false");
    server.file("b").await;
    server.file("c").await;
    let many = server.upload("d", &[("purpose", "batch")]).await;
    assert_refused(&many, 507, "storage_full", &Value::Null);
    server.delete(&format!("/v1/files/{first}")).await.json();
    server.file(&"e".repeat(100)).await;
}

#[tokio::test]
async fn a_file_expires() {
    let (folder, clock) = (folder(), Clock::held());
    let server = Kept::new(shared(), &folder, ServeOptions::new().clock(clock.clone()));
    let fields = [
        ("purpose", "batch"),
        ("expires_after[anchor]", "created_at"),
        ("expires_after[seconds]", "3600"),
    ];
    let file = server.upload("a", &fields).await.json();
    let [created, end] =
        ["created_at", "expires_at"].map(|field| file[field].as_u64().expect("a time"));
    assert_eq!(end, created + 3600);
    let path = format!("/v1/files/{}", id(&file));
    clock.advance(std::time::Duration::from_secs(3599));
    server.get(&path).await.json();
    clock.advance(std::time::Duration::from_secs(2));
    assert_refused(&server.get(&path).await, 404, "not_found", &json!("file_id"));
    assert_eq!(server.get("/v1/files").await.json()["data"], json!([]));
    let left = fs::read_dir(folder.path().join("files")).expect("a folder").count();
    assert_eq!(left, 0, "the list has removed it");
}

#[tokio::test]
async fn each_key_has_its_own_files_and_batches() {
    let folder = folder();
    let keys = ApiKeys::parse("first\nsecond").expect("keys");
    let server = Kept::new(shared(), &folder, ServeOptions::new().api_keys(keys));
    let (first, second) = (server.with_key("first"), server.with_key("second"));
    assert_eq!(server.get("/v1/files").await.status, 401);
    let batch = first.batch(&text("a", 2)).await;
    let ended = first.ended(&batch).await;
    let file = ended["output_file_id"].as_str().expect("a file").to_owned();
    let input = ended["input_file_id"].as_str().expect("a file").to_owned();
    for path in [
        &format!("/v1/files/{file}"),
        &format!("/v1/files/{file}/content"),
        &format!("/v1/batches/{batch}"),
    ] {
        assert_eq!(second.get(path).await.status, 404, "{path}");
        assert_eq!(first.get(path).await.status, 200, "{path}");
    }
    assert_eq!(second.delete(&format!("/v1/files/{file}")).await.status, 404);
    let cancel = second.post(&format!("/v1/batches/{batch}/cancel"), &json!({})).await;
    assert_refused(&cancel, 404, "not_found", &json!("batch_id"));
    let body =
        json!({"input_file_id": input, "endpoint": "/v1/completions", "completion_window": "24h"});
    assert_refused(
        &second.post("/v1/batches", &body).await,
        404,
        "not_found",
        &json!("input_file_id"),
    );
    for path in ["/v1/files", "/v1/batches"] {
        assert_eq!(second.get(path).await.json()["data"], json!([]));
    }
    assert_eq!(first.get("/v1/files").await.json()["data"].as_array().expect("files").len(), 2);
    // No file of the folder has a key, or its hash.
    let hash = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"; // of `first`
    for name in ["files", "batches"] {
        for entry in fs::read_dir(folder.path().join(name)).expect("a folder") {
            let text = fs::read_to_string(entry.expect("an entry").path()).expect("it is read");
            assert!(!text.contains("first\"") && !text.contains(&hash[..16]), "{text}");
        }
    }
}

#[tokio::test]
async fn a_server_without_files_says_which_option_it_needs() {
    let router = router(shared(), ServeOptions::new());
    for path in ["/v1/files", "/v1/files/a", "/v1/files/a/content", "/v1/batches", "/v1/batches/a"]
    {
        let answer = get(&router, path).await;
        assert_refused(&answer, 404, "files_disabled", &Value::Null);
        assert!(answer.text.contains("--files DIR"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_folder_is_taken_once_and_what_is_damaged_stays() {
    let folder = folder();
    let server = kept(&folder);
    let open = || FileStore::open(folder.path(), FileLimits::default());
    assert!(matches!(open(), Err(FilesError::InUse { .. })));
    let [good, cut, gone, damaged] = [
        server.file("good").await,
        server.file("cut short").await,
        server.file("gone").await,
        server.file("d").await,
    ];
    drop(server);
    let path = |id: &str, ending: &str| folder.path().join("files").join(format!("{id}.{ending}"));
    fs::write(path(&cut, "jsonl"), "cut").expect("it is written");
    fs::remove_file(path(&gone, "jsonl")).expect("it is removed");
    fs::write(path(&damaged, "json"), "{\"id\":").expect("it is written");
    fs::write(path("file-0", "part"), "half of an upload").expect("it is written");
    let store = open().expect("a folder");
    assert!(store.damaged().len() == 1 && store.damaged()[0].contains(&damaged), "{store:?}");
    let server = Kept { router: router(shared(), ServeOptions::new().files(store)), key: None };
    assert_eq!(server.get(&format!("/v1/files/{good}/content")).await.text, "good");
    for (id, reason) in [(&cut, "expected 9 bytes, found 3"), (&gone, "it is missing")] {
        let answer = server.get(&format!("/v1/files/{id}/content")).await;
        assert_refused(&answer, 500, "internal_error", &Value::Null);
        assert!(answer.text.contains(reason), "{}", answer.text);
    }
    assert_eq!(server.get(&format!("/v1/files/{damaged}")).await.status, 404);
    assert!(path(&damaged, "jsonl").exists() && !path("file-0", "part").exists());
    let error =
        FileStore::open(path(&good, "jsonl"), FileLimits::default()).expect_err("no folder");
    assert!(error.to_string().contains(&good), "{error}");
}

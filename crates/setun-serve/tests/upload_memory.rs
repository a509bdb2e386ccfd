//! Memory of an upload, which passes to the disk in pieces.
//!
//! A program of its own, because all its memory is counted.

#[path = "../../../tests/support/memory.rs"]
mod memory;

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes, to_bytes},
    http::Request,
};
use futures::stream;
use memory::live;
use setun::{Engine, Model};
use setun_serve::{FileLimits, FileStore, ServeOptions, router};
use tower::ServiceExt;

/// A file of 64 MiB in pieces, and the memory that it may take.
const PIECE: usize = 256 << 10;
const PIECES: usize = 256;
const MOST: usize = 8 << 20;

#[tokio::test]
async fn an_upload_is_never_in_memory_as_a_whole() {
    let engine = Engine::builder(Model::embedded().expect("a model")).threads(1);
    let folder = tempfile::tempdir().expect("a folder");
    let store = FileStore::open(folder.path(), FileLimits::default()).expect("a store");
    let engine = engine.build().expect("an engine");
    let router = router(engine, ServeOptions::new().files(store));
    let head =
        |name: &str| format!("--part\r\nContent-Disposition: form-data; name={name}\r\n\r\n");
    let begin = head("purpose") + "batch\r\n" + &head("file; filename=a");
    let content = (0..PIECES).map(|_| Bytes::from(vec![b'a'; PIECE]));
    let pieces =
        std::iter::once(begin.into()).chain(content).chain([Bytes::from("\r\n--part--\r\n")]);
    let before = live();
    let counted = pieces.map(move |piece| {
        let used = live().saturating_sub(before);
        assert!(used < MOST, "{used} bytes are in use");
        Ok::<_, Infallible>(piece)
    });
    let request = Request::post("/v1/files")
        .header("content-type", "multipart/form-data; boundary=part")
        .body(Body::from_stream(stream::iter(counted)))
        .expect("a request");
    let answer = router.oneshot(request).await.expect("an answer");
    let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["bytes"], PIECE * PIECES, "{body}");
}

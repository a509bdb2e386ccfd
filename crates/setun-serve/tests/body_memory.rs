//! Memory of bodies that are parsed at once.
//!
//! A program of its own, because all its memory is counted. With `-- --nocapture` it says what it sees.

#![expect(clippy::print_stdout, reason = "a run by hand says what it sees")]

#[path = "../../../tests/support/memory.rs"]
mod memory;

use axum::{Router, body::Body, http::Request};
use futures::future::join_all;
use memory::peak_of;
use setun::{Engine, Model};
use setun_serve::{ServeOptions, router};
use tokio::runtime::Builder;
use tower::ServiceExt;

/// Bodies that come at once.
const BODIES: usize = 16;

/// Bytes of the values of all bodies, and of the bodies themselves in two copies.
const MOST: usize = (256 + 128) << 20;

#[test]
fn bodies_of_many_values_have_a_bounded_memory_together() {
    let model = Model::embedded().expect("a model");
    let engine = Engine::builder(model).threads(1).build().expect("an engine");
    let router = router(engine, ServeOptions::new());
    let runtime = Builder::new_multi_thread().worker_threads(8).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let most = (256 << 20) / 512;
    for (piece, pieces, status) in
        [("[0],", most, 400), ("{\"a\":1},", most / 2, 400), ("{\"a\":1},", 900_000, 413)]
    {
        let body = format!("{{\"messages\": [{}0]}}", piece.repeat(pieces));
        let alone = peak_of(|| serde_json::from_str::<serde_json::Value>(&body).is_ok()).1;
        let (found, peak) = peak_of(|| {
            let sent = (0..BODIES).map(|_| runtime.spawn(send(router.clone(), body.clone())));
            runtime.block_on(join_all(sent))
        });
        println!("{piece} {} bytes: {alone} bytes alone, {peak} for {BODIES}", body.len());
        assert!(found.into_iter().all(|found| found.expect("no panic") == status), "{piece}");
        assert!(peak < MOST, "{piece}: {peak} bytes, {alone} alone");
    }
}

async fn send(router: Router, body: String) -> u16 {
    let request = Request::post("/v1/chat/completions").header("host", "localhost");
    let request = request.body(Body::from(body)).expect("a request");
    router.oneshot(request).await.expect("an answer").status().as_u16()
}

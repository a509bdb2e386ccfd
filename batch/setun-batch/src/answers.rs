//! Answers to requests as `setun serve` gives them, without a socket.

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    http::{
        Request,
        header::{CONTENT_TYPE, HOST},
    },
    response::Response,
};
use setun::Engine;
use setun_serve::{ServeOptions, router};
use setun_sql::Respond;
use tower::ServiceExt;

/// What answers with this engine.
pub(super) fn respond(engine: &Engine) -> Respond {
    let router = router(engine.clone(), ServeOptions::default());
    Arc::new(move |path, body| {
        let router = router.clone();
        Box::pin(async move {
            let request = Request::post(path)
                .header(HOST, "localhost")
                .header(CONTENT_TYPE, "application/json")
                .body(Body::from(body));
            let Ok(request) = request else { return (404, String::new()) };
            match router.oneshot(request).await {
                Ok(answer) => text(answer).await,
                Err(never) => match never {},
            }
        })
    })
}

async fn text(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    match to_bytes(answer.into_body(), usize::MAX).await {
        Ok(body) => (status, String::from_utf8_lossy(&body).into_owned()),
        Err(error) => (500, error.to_string()),
    }
}

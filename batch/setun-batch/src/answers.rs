//! The model of this process, and its answers to requests as `setun serve` gives them, without a socket.

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
use setun_cli::EngineArgs;
use setun_serve::{ServeOptions, router};
use setun_sql::{Load, MakeRespond, ModelHandle, Respond};
use tower::ServiceExt;

/// The model of this process, which answers requests as `setun serve` does.
pub(crate) fn model(engine: EngineArgs) -> ModelHandle {
    let load: Load = Box::new(move || Ok(engine.default_engine()?));
    ModelHandle::answering(load, respond as MakeRespond)
}

/// What answers with this engine.
fn respond(engine: &Engine) -> Respond {
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

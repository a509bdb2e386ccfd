//! The probes of an executor: `/healthz`, `/readyz` and `/metrics`.

use std::{fmt::Write, io};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use ballista_executor::health::ExecutorHealth;
use tokio::net::TcpListener;

use crate::handle::{ModelHandle, RowCounts};

/// Serves the probes.
pub(super) async fn serve(
    listener: TcpListener,
    health: ExecutorHealth,
    model: ModelHandle,
) -> io::Result<()> {
    let ready = |State((health, _)): State<(ExecutorHealth, ModelHandle)>| async move {
        if health.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    };
    let metrics = |State((_, model)): State<(ExecutorHealth, ModelHandle)>| async move {
        ([(CONTENT_TYPE, "text/plain; version=0.0.4")], exposition(&model.counts())).into_response()
    };
    let router = Router::new()
        .route("/healthz", get(|| async { StatusCode::OK }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics));
    axum::serve(listener, router.with_state((health, model))).await
}

/// The counts as Prometheus reads them.
fn exposition(counts: &RowCounts) -> String {
    let counters = [
        ("rows", "Rows answered.", counts.rows),
        ("row_errors", "Rows with an error.", counts.errors),
        ("prompt_tokens", "Tokens of prompts.", counts.prompt_tokens),
        ("cached_tokens", "Tokens of prompts that the prefix cache had.", counts.cached_tokens),
        ("generation_tokens", "Tokens generated.", counts.completion_tokens),
    ];
    let mut text = String::new();
    for (name, help, count) in counters {
        let name = format!("setun_batch_{name}_total");
        _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_in_the_text_format() {
        let counts = RowCounts { rows: 7, completion_tokens: 90, ..RowCounts::default() };
        let text = exposition(&counts);
        assert!(text.starts_with("# HELP setun_batch_rows_total Rows answered.\n# TYPE setun_batch_rows_total counter\nsetun_batch_rows_total 7\n"));
        assert!(text.ends_with("setun_batch_generation_tokens_total 90\n"));
    }
}

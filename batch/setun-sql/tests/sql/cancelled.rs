//! Queries whose consumer leaves.

use std::time::Duration;

use futures::StreamExt;
use setun::{Engine, EngineMetrics, Model};
use setun_sql::ModelHandle;
use tokio::time::{sleep, timeout};

use crate::support::context_of;

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_query_gives_its_blocks_back() {
    let engine = Engine::builder(Model::embedded().expect("it is compiled in")).build();
    let engine = engine.expect("an engine");
    let model = ModelHandle::from(engine.clone());
    let context = context_of(&model, 0);
    let sql =
        r#"SELECT generate('A' || value, '{"max_tokens": 200}') FROM generate_series(1, 400)"#;
    let mut rows = context.sql(sql).await.expect("a plan").execute_stream().await.expect("rows");
    tokio::select! {
        row = rows.next() => panic!("400 texts are not done when the first runs: {row:?}"),
        () = until(&engine, |metrics| metrics.running > 0) => {}
    }
    drop(rows);
    until(&engine, |metrics| metrics.running == 0 && metrics.waiting == 0).await;
    let aborted = engine.metrics().await.expect("metrics").aborted;
    assert!(aborted > 0, "they were cancelled");
    let again = context.sql("SELECT generate('A', '{\"max_tokens\": 2}')").await;
    assert_eq!(again.expect("a plan").collect().await.expect("rows")[0].num_rows(), 1);
}

/// Waits for a state of an engine, a minute at most.
async fn until(engine: &Engine, is: impl Fn(&EngineMetrics) -> bool) {
    let wait = async {
        while !is(&engine.metrics().await.expect("metrics")) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_mins(1), wait).await.expect("it comes");
}

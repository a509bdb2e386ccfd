//! Queries whose consumer leaves.

use std::time::Duration;

use futures::StreamExt;
use setun::{Engine, Model};
use setun_sql::ModelHandle;

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
    let waited = tokio::time::timeout(Duration::from_millis(300), rows.next()).await;
    assert!(waited.is_err(), "400 texts take longer");
    let running = engine.metrics().await.expect("metrics");
    assert!(running.running > 0, "{running:?}");
    drop(rows);
    for _ in 0..200 {
        let metrics = engine.metrics().await.expect("metrics");
        if metrics.running == 0 && metrics.waiting == 0 {
            let again = context.sql("SELECT generate('A', '{\"max_tokens\": 2}')").await;
            assert_eq!(again.expect("a plan").collect().await.expect("rows")[0].num_rows(), 1);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("generations of a cancelled query go on");
}

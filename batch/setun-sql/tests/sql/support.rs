//! A session over the embedded model, and its results as JSON.

use std::sync::LazyLock;

use datafusion::{
    arrow::{json::ArrayWriter, record_batch::RecordBatch},
    error::DataFusionError,
    prelude::SessionContext,
};
use serde_json::Value;
use setun::{Engine, Model};
use setun_sql::{ModelHandle, Settings, session};

/// One engine for all tests.
static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    Engine::builder(Model::embedded().expect("it is compiled in")).build().expect("an engine")
});

pub(crate) fn engine() -> Engine {
    ENGINE.clone()
}

pub(crate) fn context() -> SessionContext {
    context_of(&engine().into(), 0)
}

pub(crate) fn context_of(model: &ModelHandle, seed: u64) -> SessionContext {
    let settings = Settings::new(seed);
    session(model, settings).expect("functions are accepted")
}

/// The rows of a query, as objects.
pub(crate) async fn query(context: &SessionContext, sql: &str) -> Vec<Value> {
    let rows = try_query(context, sql).await;
    rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

pub(crate) async fn try_query(
    context: &SessionContext,
    sql: &str,
) -> Result<Vec<Value>, DataFusionError> {
    let batches = context.sql(sql).await?.collect().await?;
    Ok(objects(&batches))
}

fn objects(batches: &[RecordBatch]) -> Vec<Value> {
    let mut writer = ArrayWriter::new(vec![]);
    writer.write_batches(&batches.iter().collect::<Vec<_>>()).expect("JSON");
    writer.finish().expect("JSON");
    let bytes = writer.into_inner();
    if bytes.is_empty() { vec![] } else { serde_json::from_slice(&bytes).expect("JSON") }
}

/// The only value of a query.
pub(crate) async fn value(context: &SessionContext, sql: &str) -> Value {
    let rows = query(context, sql).await;
    assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
    let row = rows[0].as_object().expect("an object");
    assert_eq!(row.len(), 1, "{sql}: {row:?}");
    row.values().next().cloned().expect("a value")
}

//! Calls at every place of a query.

use serde_json::json;
use setun_sql::ModelHandle;

use crate::support::{context, context_of, engine, query, value};

const TEXTS: &str = r#"(SELECT CAST(value AS VARCHAR) AS n,
    generate('Day ' || value, '{"temperature": 0, "max_tokens": 6}')['text'] AS text
    FROM generate_series(1, 4))"#;

const GREEDY: &str = r#"'{"temperature": 0, "max_tokens": 6}'"#;

#[tokio::test]
async fn a_call_in_a_call() {
    let context = context();
    let inner = value(&context, &format!("SELECT generate('A dog', {GREEDY})['text']")).await;
    let inner = inner.as_str().expect("a text").replace('\'', "''");
    let two = format!("SELECT generate('{inner}', {GREEDY})['text']");
    let expected = value(&context, &two).await;
    let call = |prompt: &str| format!("generate({prompt}, {GREEDY})['text']");
    let nested = format!("SELECT {}", call(&call("'A dog'")));
    assert_eq!(value(&context, &nested).await, expected);
    let subquery = format!("SELECT {} FROM (SELECT {} AS t)", call("t"), call("'A dog'"));
    assert_eq!(value(&context, &subquery).await, expected);
    let thrice = format!("SELECT {}", call(&call(&call("'A dog'"))));
    let text = expected.as_str().expect("a text").replace('\'', "''");
    let third = value(&context, &format!("SELECT {}", call(&format!("'{text}'")))).await;
    assert_eq!(value(&context, &thrice).await, third);
    let scored = format!("SELECT perplexity('A dog' || {})['tokens'] > 1", call("'A dog'"));
    assert_eq!(value(&context, &scored).await, json!(true));
}

#[tokio::test]
async fn calls_in_where_and_in_aggregates() {
    let context = context();
    let all = query(&context, &format!("SELECT n, text FROM {TEXTS} ORDER BY n")).await;
    let lengths: Vec<u64> =
        all.iter().map(|row| row["text"].as_str().map_or(0, str::len) as u64).collect();
    let longest = lengths.iter().max().expect("rows");
    let filtered = format!("SELECT n FROM {TEXTS} WHERE octet_length(text) = {longest} ORDER BY n");
    let expected = lengths.iter().filter(|length| *length == longest).count();
    assert_eq!(query(&context, &filtered).await.len(), expected);
    let sum = format!("SELECT sum(octet_length(text)) FROM {TEXTS}");
    assert_eq!(value(&context, &sum).await, json!(lengths.iter().sum::<u64>()));
    let nested =
        format!("SELECT count(*) FROM {TEXTS} WHERE perplexity('Day' || text)['perplexity'] > 0");
    assert_eq!(value(&context, &nested).await, json!(4));
    let grouped = format!(
        "SELECT generate('Day 1', {GREEDY})['finish_reason'] AS why, count(*) AS rows FROM {TEXTS} GROUP BY 1"
    );
    assert_eq!(query(&context, &grouped).await, [json!({"why": "length", "rows": 4})]);
    let labels =
        format!("SELECT text AS label, count(*) AS rows FROM {TEXTS} GROUP BY 1 ORDER BY 2");
    let rows = query(&context, &labels).await;
    assert_eq!(rows.iter().filter_map(|row| row["rows"].as_u64()).sum::<u64>(), 4);
    let having = format!(
        "SELECT n, max(octet_length(text)) FROM {TEXTS} GROUP BY n HAVING max(octet_length(text)) = {longest}"
    );
    assert_eq!(query(&context, &having).await.len(), expected);
    let ordered =
        format!("SELECT n FROM {TEXTS} ORDER BY perplexity('Day' || text)['perplexity'] LIMIT 2");
    assert_eq!(query(&context, &ordered).await.len(), 2);
}

#[tokio::test]
async fn a_limit_stops_what_is_not_needed() {
    let model = ModelHandle::from(engine());
    let sql = r#"SELECT generate('A' || value, '{"max_tokens": 2}') FROM generate_series(1, 100000) LIMIT 3"#;
    assert_eq!(query(&context_of(&model, 0), sql).await.len(), 3);
    assert!(model.counts().rows <= 512, "{:?}", model.counts());
}

//! Calls at every place of a query.

use serde_json::json;
use setun_sql::ModelHandle;

use crate::support::{context, context_of, engine, query, try_query, value};

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
    let keys =
        format!("SELECT n, perplexity('Day ' || n || text)['perplexity'] AS key FROM {TEXTS}");
    let mut keys: Vec<_> = query(&context, &keys).await;
    keys.sort_by(|one, other| {
        one["key"].as_f64().partial_cmp(&other["key"].as_f64()).expect("numbers")
    });
    let ordered = format!(
        "SELECT n FROM {TEXTS} ORDER BY perplexity('Day ' || n || text)['perplexity'] LIMIT 2"
    );
    let ordered = query(&context, &ordered).await;
    assert_eq!(
        ordered.iter().map(|row| &row["n"]).collect::<Vec<_>>(),
        [&keys[0]["n"], &keys[1]["n"]]
    );
}

/// Rows that the functions compute for a query over `t(n, p)` of ten rows, and rows of its result.
async fn computed(sql: &str) -> (u64, usize) {
    let model = ModelHandle::from(engine());
    let context = context_of(&model, 0);
    let table =
        "CREATE TABLE t AS SELECT value AS n, 'Day ' || value AS p FROM generate_series(1, 10)";
    query(&context, table).await;
    let rows = query(&context, sql).await.len();
    (model.counts().rows, rows)
}

#[tokio::test]
async fn each_call_is_computed_once_and_for_needed_rows_alone() {
    let call = format!("generate(p, {GREEDY})");
    for (sql, expected) in [
        (format!("SELECT {call}['text'], {call}['error'] FROM t"), (10, 10)),
        (format!("SELECT {call}['text'], {call}['error'] FROM t WHERE n < 4"), (3, 3)),
        (
            format!(
                "SELECT r['text'], r['error'] FROM (SELECT {call} AS r FROM t) WHERE r['error'] IS NULL"
            ),
            (10, 10),
        ),
        (format!("SELECT n FROM t WHERE n < 4 AND octet_length({call}['text']) > 0"), (3, 3)),
        (
            format!(
                "SELECT text FROM (SELECT n, {call}['text'] AS text FROM t) WHERE text <> '' AND n > 8"
            ),
            (2, 2),
        ),
        (format!("SELECT {call}['text'] AS text, count(*) FROM t WHERE n < 3 GROUP BY 1"), (2, 1)),
        (
            format!("SELECT perplexity(p || {call}['text'])['perplexity'] FROM t WHERE n < 4"),
            (6, 3),
        ),
        (
            format!(
                "SELECT n FROM t WHERE n < 4 AND perplexity(p || {call}['text'])['tokens'] > 1"
            ),
            (6, 3),
        ),
        (format!("SELECT DISTINCT {call}['finish_reason'] FROM t WHERE n < 4"), (3, 1)),
        (
            format!(
                "SELECT {call}['text'] FROM t WHERE n = 1 UNION ALL SELECT {call}['text'] FROM t WHERE n = 2"
            ),
            (2, 2),
        ),
        (format!("SELECT n FROM t ORDER BY {call}['text'] LIMIT 2"), (10, 2)),
    ] {
        assert_eq!(computed(&sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_condition_over_both_sides_of_a_join_is_computed_for_its_rows() {
    let join = "FROM t AS a JOIN t AS b ON a.n = b.n + 8";
    let sql = format!("SELECT a.n {join} WHERE score(a.p, ' ' || b.p)['logprob'] < 0");
    assert_eq!(computed(&sql).await, (2, 2));
    let sql = format!("SELECT a.n, b.n, generate(a.p, {GREEDY})['text'] {join} WHERE a.n > 9");
    assert_eq!(computed(&sql).await, (1, 1));
}

#[tokio::test]
async fn places_without_calls_are_named() {
    let context = context();
    let call = format!("generate(p, {GREEDY})['text']");
    let t = "(SELECT value AS n, 'Day ' || value AS p FROM generate_series(1, 3)) AS t";
    for (sql, place) in [
        (
            format!("SELECT n, row_number() OVER (ORDER BY {call}) FROM {t}"),
            "a window function or VALUES",
        ),
        (
            format!("SELECT count(*) FROM {t} GROUP BY ROLLUP({call})"),
            "ROLLUP, CUBE or GROUPING SETS",
        ),
        (
            format!(
                "SELECT t.n FROM {t} LEFT JOIN (VALUES ('a')) AS u(q) ON score(t.p, u.q)['logprob'] < 0"
            ),
            "the condition of an outer join",
        ),
        (
            format!("SELECT t.n FROM {t} JOIN (VALUES ('a')) AS u(q) ON {call} = u.q"),
            "the keys of a join",
        ),
    ] {
        let error = try_query(&context, &sql).await.expect_err(&sql).to_string();
        assert!(
            error.contains(&format!("cannot be called in {place}: call it in a query below")),
            "{error}"
        );
    }
    let below = format!(
        "SELECT count(*) AS rows FROM (SELECT {call} AS text FROM {t}) GROUP BY ROLLUP(text)"
    );
    assert!(query(&context, &below).await.len() > 1);
}

#[tokio::test]
async fn a_limit_stops_what_is_not_needed() {
    let model = ModelHandle::from(engine());
    let sql = r#"SELECT value FROM generate_series(1, 100000)
        WHERE octet_length(generate('A' || value, '{"max_tokens": 2}')['text']) > 0 LIMIT 3"#;
    assert_eq!(query(&context_of(&model, 0), sql).await.len(), 3);
    assert!(model.counts().rows <= 2 * 512, "{:?}", model.counts());
}

//! Rows that cannot be answered, and queries that cannot.

use serde_json::Value;
use setun_sql::ModelHandle;

use crate::support::{context, context_of, engine, query, try_query};

/// The errors of a query with a column `result`.
async fn errors(sql: &str) -> Vec<Option<String>> {
    let rows = query(&context(), sql).await;
    let error = |row: &Value| row["result"]["error"].as_str().map(str::to_owned);
    rows.iter().map(error).collect()
}

fn expect(errors: &[Option<String>], expected: &[Option<&str>]) {
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, expected) in errors.iter().zip(expected) {
        match (error, expected) {
            (None, None) => {}
            (Some(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            _ => panic!("{error:?}, expected {expected:?}"),
        }
    }
}

#[tokio::test]
async fn a_bad_row_is_data() {
    let errors = errors(
        r#"SELECT generate(prompt, options) AS result FROM (VALUES
            (1, 'A dog', '{"max_tokens": 2}'),
            (2, repeat('A dog ran. ', 1000), NULL),
            (3, '', NULL),
            (4, NULL, '{"max_tokens": 2}'),
            (5, 'A dog', '{"max_tokens": 0}'),
            (6, 'A dog', '{"max_token": 1}'),
            (7, 'A dog', 'max_tokens'),
            (8, 'A dog', '{"json_schema": {"type": "object", "unevaluatedProperties": 3}}'),
            (9, 'A dog', '{"regex": "("}'),
            (10, 'A dog', '{"regex": "a", "choice": ["a"]}'),
            (11, 'A cat', '{"max_tokens": 2}')
        ) AS prompts(n, prompt, options) ORDER BY n"#,
    )
    .await;
    let expected = [
        None,
        Some("the context holds"),
        Some("the prompt is empty"),
        Some("the prompt is NULL"),
        Some("`max_tokens` is 0"),
        Some("`max_token` is unknown, expected one of"),
        Some("expected a JSON object"),
        Some("unevaluatedProperties"),
        Some("regular expression"),
        Some("given beside `regex`"),
        None,
    ];
    expect(&errors, &expected);
}

#[tokio::test]
async fn other_functions_have_error_rows_too() {
    let texts = "FROM (VALUES (1, 'A dog'), (2, ''), (3, NULL), (4, repeat('A dog ran. ', 1000)))
        AS texts(n, text) ORDER BY n";
    let expected = [None, Some("is empty"), Some("is NULL"), Some("the context holds")];
    for call in ["embed(text)", "perplexity(text)", "score(text, ' ran.')", "score('A dog', text)"]
    {
        let errors = errors(&format!("SELECT {call} AS result {texts}")).await;
        expect(&errors, &expected);
    }
    let errors = errors(
        r#"SELECT embed('a', options) AS result FROM (VALUES ('{"pooling": "max"}')) AS t(options)"#,
    );
    expect(&errors.await, &[Some("unknown variant")]);
}

#[tokio::test]
async fn what_is_wrong_for_all_rows_is_an_error_before_any_token() {
    let model = ModelHandle::from(engine());
    let context = context_of(&model, 0);
    for (sql, expected) in [
        (
            r#"SELECT generate(p, '{"max_tokens": 0}') FROM (VALUES ('a'), ('b')) AS t(p)"#,
            "`max_tokens` is 0",
        ),
        (r#"SELECT generate(p, '{"choice": []}') FROM (VALUES ('a')) AS t(p)"#, "`choice` is []"),
        (r#"SELECT embed(p, '{"normalise": 1}') FROM (VALUES ('a')) AS t(p)"#, "unknown field"),
        ("SELECT chat('[]')", "no chat template"),
        ("SELECT generate(1)", "generate"),
        ("SELECT generate()", "generate"),
        ("SELECT score('a')", "score"),
        ("SELECT generate(nothing) FROM (VALUES ('a')) AS t(p)", "nothing"),
    ] {
        let error = try_query(&context, sql).await.expect_err(sql).to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    assert_eq!(model.counts().completion_tokens, 0);
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_is_named() {
    let model = ModelHandle::lazy(Box::new(|| Err("no file `x.setun`".into())));
    let error = try_query(&context_of(&model, 0), "SELECT generate('a')").await;
    let error = error.expect_err("no model").to_string();
    assert!(error.contains("the model cannot be loaded: no file `x.setun`"), "{error}");
    let plain = query(&context_of(&model, 0), "SELECT 1 AS one").await;
    assert_eq!(plain[0]["one"], 1);
}

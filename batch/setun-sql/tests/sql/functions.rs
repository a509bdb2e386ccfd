//! Results beside those of the engine.

use serde_json::{Value, json};
use setun::{GenerateOptions, Pooling};
use setun_sql::Settings;

use crate::support::{context, context_of, engine, query, value};

/// `finish_reason` and all, without what a cache changes.
fn fixed(mut result: Value) -> Value {
    result.as_object_mut().expect("a result").remove("cached_tokens");
    result
}

#[tokio::test]
async fn a_text_is_the_engines() {
    let options = GenerateOptions::new().temperature(0.0).max_tokens(12);
    let completion = engine().complete("Once upon a time", options).expect("a text");
    let sql = r#"SELECT generate('Once upon a time', '{"temperature": 0, "max_tokens": 12}')"#;
    let found = fixed(value(&context(), sql).await);
    let usage = completion.done.usage;
    let expected = json!({
        "text": completion.text, "finish_reason": "length",
        "prompt_tokens": usage.prompt_tokens, "completion_tokens": 12,
    });
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_row_has_the_seed_of_its_key() {
    let settings = Settings::new(7);
    let generate = |key| {
        let options = GenerateOptions::new().temperature(1.0).max_tokens(16);
        let options = options.seed(settings.row_seed(key));
        engine().complete("A cat", options).expect("a text").text
    };
    let context = context_of(&engine().into(), 7);
    let text = async |arguments: &str| {
        value(&context, &format!("SELECT generate('A cat'{arguments})['text']")).await
    };
    let options = r#"{"temperature": 1, "max_tokens": 16}"#;
    assert_eq!(text(&format!(", '{options}'")).await, generate("A cat"));
    assert_eq!(text(&format!(", '{options}', 'row 1'")).await, generate("row 1"));
    assert_ne!(generate("row 1"), generate("A cat"));
    let seeded = r#", '{"temperature": 1, "max_tokens": 16, "seed": 3}'"#;
    let given = GenerateOptions::new().temperature(1.0).max_tokens(16).seed(3);
    assert_eq!(text(seeded).await, engine().complete("A cat", given).expect("a text").text);
    query(&context, "SET setun.seed = 8").await;
    assert_ne!(text(&format!(", '{options}'")).await, generate("A cat"));
}

#[tokio::test]
async fn texts_follow_the_schema_of_their_row() {
    let sql = r#"
        SELECT generate(prompt, '{"max_tokens": 40, "choice": ["' || word || '", "no"]}')['text'] AS text
        FROM (VALUES ('Is it red? ', 'red'), ('Is it blue? ', 'blue')) AS prompts(prompt, word)"#;
    let texts = query(&context(), sql).await;
    for (row, word) in texts.iter().zip(["red", "blue"]) {
        assert!(row["text"] == word || row["text"] == "no", "{row}");
    }
    let sql = r#"SELECT generate('A dog', '{"max_tokens": 60,
        "json_schema": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}},
        "required": ["name"], "additionalProperties": false}}')['text']"#;
    let text = value(&context(), sql).await;
    let object: Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    assert!(object["name"].is_string(), "{object}");
}

#[tokio::test]
async fn vectors_and_scores_are_the_engines() {
    let embedding = engine().embed(["A dog ran."], Pooling::Mean, true).await.remove(0);
    let embedding = embedding.expect("a vector");
    let sql = r#"SELECT embed('A dog ran.', '{"pooling": "mean"}')"#;
    let found = value(&context(), sql).await;
    let values: Vec<f32> = serde_json::from_value(found["embedding"].clone()).expect("numbers");
    assert_eq!((values, &found["tokens"]), (embedding.values, &json!(embedding.tokens)));

    let score = engine().score("A dog", &[" ran."]).await.expect("a score").remove(0);
    let found = value(&context(), "SELECT score('A dog', ' ran.')").await;
    assert_close(&found["logprob"], score.logprob);
    assert_close(&found["mean_logprob"], score.mean_logprob());
    assert_eq!(found["tokens"], json!(score.tokens.len()));

    let options = GenerateOptions::new().prompt_logprobs(true);
    let prompt = engine().prefill("A dog ran.", options).expect("it fits").wait().expect("it runs");
    let logprobs: Vec<f64> = prompt.prompt.iter().filter_map(|token| token.logprob).collect();
    let found = value(&context(), "SELECT perplexity('A dog ran.')").await;
    let mean = -logprobs.iter().sum::<f64>() / 4.0;
    assert_close(&found["mean_nll"], mean);
    assert_close(&found["perplexity"], mean.exp());
    assert_eq!((logprobs.len(), &found["tokens"]), (4, &json!(4)));
}

/// JSON is read with an error of a last digit.
fn assert_close(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a number");
    assert!((found - expected).abs() <= 1e-15 * expected.abs() * 4.0, "{found}, {expected}");
}

#[tokio::test]
async fn all_rows_of_a_batch_run_at_once_and_stay_in_order() {
    let sql = r#"
        SELECT n, generate('Number ' || n, '{"temperature": 0, "max_tokens": 8}')['text'] AS text
        FROM (SELECT CAST(value AS VARCHAR) AS n FROM generate_series(1, 300)) ORDER BY CAST(n AS INT)"#;
    let rows = query(&context(), sql).await;
    assert_eq!(rows.len(), 300);
    for number in [1, 2, 150, 300] {
        let options = GenerateOptions::new().temperature(0.0).max_tokens(8);
        let alone = engine().complete(format!("Number {number}"), options).expect("a text");
        assert_eq!(rows[number - 1], json!({"n": number.to_string(), "text": alone.text}));
    }
}

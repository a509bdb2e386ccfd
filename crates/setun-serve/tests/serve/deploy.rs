//! The dashboard of `deploy/` against the metrics that there are.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};

use crate::support::{get, post, shared_router};

/// The expressions of panels, and of the panels in rows.
fn expressions(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("expr").and_then(Value::as_str);
            own.into_iter().chain(fields.values().flat_map(expressions)).collect()
        }
        Value::Array(values) => values.iter().flat_map(expressions).collect(),
        _ => vec![],
    }
}

#[tokio::test]
async fn each_expression_of_the_dashboard_has_its_metrics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("../../deploy/grafana/dashboards/setun.json");
    let dashboard = fs::read_to_string(path).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let router = shared_router();
    post(&router, "/v1/completions", &json!({"prompt": "A cat", "max_tokens": 3})).await.json();
    let page = get(&router, "/metrics").await.text;
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let names: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
    let expressions = expressions(&dashboard);
    assert!(expressions.len() >= 12, "{expressions:?}");
    for expression in expressions {
        let words = expression.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let used: Vec<_> = words.filter(|word| word.starts_with("setun_")).collect();
        assert!(!used.is_empty(), "{expression}");
        for name in used {
            assert!(names.contains(name), "{name} in {expression}");
        }
    }
}

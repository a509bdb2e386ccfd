//! The dashboard and the manifests of `deploy/` against the metrics that there are.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};

use crate::support::{get, post, shared_router};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of metrics after a text.
async fn metrics() -> BTreeSet<String> {
    let router = shared_router();
    post(&router, "/v1/completions", &json!({"prompt": "A cat", "max_tokens": 3})).await.json();
    let page = get(&router, "/metrics").await.text;
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("setun_")).collect()
}

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
    let dashboard: Value =
        serde_json::from_str(&file("grafana/dashboards/setun.json")).expect("JSON");
    let names = metrics().await;
    let expressions = expressions(&dashboard);
    assert!(expressions.len() >= 12, "{expressions:?}");
    for expression in expressions {
        let used = named(expression);
        assert!(!used.is_empty(), "{expression}");
        for name in used {
            assert!(names.contains(name), "{name} in {expression}");
        }
    }
}

/// Autoscalers and endpoint pickers see a wrong name as no load.
#[tokio::test]
async fn each_metric_of_the_manifests_is_there() {
    let names = metrics().await;
    for (manifest, count) in [("server.yaml", 1), ("inference.yaml", 3)] {
        let text = file(&format!("kubernetes/{manifest}"));
        let lines = text.lines().filter(|line| line.contains("metric:") || line.contains("Spec:"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        let used = named(&lines);
        assert_eq!(used.len(), count, "{manifest}: {used:?}");
        for name in used {
            assert!(names.contains(name), "{name} in {manifest}");
        }
    }
}

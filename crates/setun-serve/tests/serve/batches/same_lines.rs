//! The lines of a batch against those of `setun batch run --requests`, whose tests have the same file.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use setun::{Engine, Model};
use setun_serve::ServeOptions;

use super::Kept;

#[tokio::test]
async fn answers_are_the_lines_of_the_command() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/batch");
    let read = |name: &str| fs::read_to_string(fixtures.join(name)).expect(name);
    let (requests, answers) = (read("requests.jsonl"), read("answers.jsonl"));
    let mut by_url: BTreeMap<String, String> = BTreeMap::new();
    for line in requests.lines() {
        let request: Value = serde_json::from_str(line).expect("JSON");
        let url = request["url"].as_str().expect("a url").to_owned();
        by_url.entry(url).or_default().extend([line, "\n"]);
    }
    let engine = Engine::builder(Model::embedded().expect("a model")).build().expect("an engine");
    let folder = tempfile::tempdir().expect("a folder");
    let server = Kept::new(engine, &folder, ServeOptions::new());
    let mut found = vec![];
    for (url, requests) in by_url {
        let batch = server.batch_of(&url, &requests).await;
        let batch = server.ended(&batch).await;
        assert_eq!(batch["status"], "completed", "{batch}");
        for field in ["output_file_id", "error_file_id"] {
            found.extend(server.text(&batch, field).await.lines().map(str::to_owned));
        }
    }
    found.sort_unstable();
    let mut expected: Vec<_> = answers.lines().collect();
    expected.sort_unstable();
    assert!(expected.len() > 8);
    assert_eq!(found, expected);
}

//! `setun score`, `setun classify` and `setun embed`

use pollster::block_on;
use serde_json::Value;
use setun::{Engine, Model, Pooling};

use crate::support::{PROMPT, STORIES, TINY, model, setun, setun_reading};

const LABELS: [&str; 2] = [" there was", " zebra"];

fn engine() -> Engine {
    let opened = Model::open(model(STORIES)).expect("the story model");
    Engine::builder(opened).build().expect("an engine")
}

fn with_labels<'a>(command: &'a str, flag: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let labels = LABELS.iter().flat_map(|label| [flag, *label]);
    [command, PROMPT].into_iter().chain(labels).chain(more.iter().copied()).collect()
}

#[test]
fn scores_are_those_of_the_engine() {
    let model = model(STORIES);
    let expected = block_on(engine().score(PROMPT, &LABELS)).expect("scores");
    let found = setun(&with_labels("score", "--text", &["--model", &model, "--json"])).lines();
    assert_eq!(found.len(), LABELS.len());
    for ((line, label), score) in found.iter().zip(LABELS).zip(&expected) {
        assert_eq!((&line["text"], &line["logprob"]), (&label.into(), &score.logprob.into()));
        assert_eq!(line["tokens"].as_array().map(Vec::len), Some(score.tokens.len()));
    }
    let table = setun(&with_labels("score", "--text", &["--model", &model])).text();
    let rows: Vec<_> = table.lines().collect();
    assert!(rows[0].starts_with("logprob") && rows[1].ends_with(LABELS[0]), "{table}");
    assert!(rows[1].starts_with(&format!("{:.4}", expected[0].logprob)), "{table}");
}

#[test]
fn texts_come_from_files_and_the_prompt_from_standard_input() {
    let model = model(STORIES);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("labels.txt");
    std::fs::write(&file, LABELS.join("\n")).expect("a file");
    let file = file.to_string_lossy();
    let direct = setun(&with_labels("classify", "--label", &["--model", &model, "--json"])).json();
    let args = ["classify", "--labels", &file, "--model", &model, "--json"];
    assert_eq!(setun_reading(&args, format!("{PROMPT}\n").as_bytes()).json(), direct);
    assert_eq!(direct["best"], LABELS[0]);
    let sum: f64 = direct["labels"].as_array().expect("labels").iter().map(probability).sum();
    assert!((sum - 1.0).abs() < 1e-12, "{direct}");
    let table = setun(&with_labels("classify", "--label", &["--model", &model])).text();
    assert!(table.lines().nth(1).is_some_and(|row| row.ends_with(LABELS[0])), "{table}");
}

fn probability(label: &Value) -> f64 {
    label["probability"].as_f64().expect("a number")
}

#[test]
fn embeddings_are_those_of_the_engine() {
    let model = model(STORIES);
    for (how, pooling) in [("last", Pooling::Last), ("mean", Pooling::Mean)] {
        for (flag, normalised) in [(None, true), (Some("--no-normalize"), false)] {
            let texts = [PROMPT, "The dog"];
            let expected = block_on(engine().embed(texts, pooling, normalised));
            let args = ["embed", texts[0], texts[1], "--pooling", how, "--model", &model];
            let args: Vec<_> = args.into_iter().chain(flag).collect();
            let lines = setun(&[&args[..], &["--json"]].concat()).lines();
            let plain = setun(&args).text();
            assert_eq!((lines.len(), plain.lines().count()), (2, 2));
            for ((line, plain), expected) in lines.iter().zip(plain.lines()).zip(expected) {
                let expected = expected.expect("a vector");
                let read = |text: &str| text.parse::<f32>().expect("a number");
                assert_eq!(plain.split(' ').map(read).collect::<Vec<_>>(), expected.values);
                let found: Vec<f32> =
                    serde_json::from_value(line["embedding"].clone()).expect("numbers");
                assert_eq!(
                    (line["tokens"].as_u64(), found),
                    (Some(expected.tokens as u64), expected.values)
                );
            }
        }
    }
    let args = ["embed", "--model", &model, "--json"];
    assert_eq!(
        setun_reading(&args, b"The dog\n").json(),
        setun(&["embed", "The dog", "--model", &model, "--json"]).json()
    );
}

#[test]
fn what_cannot_be_read_is_an_error() {
    setun(&["score", PROMPT]).wrong_usage("--text");
    setun(&["classify", PROMPT]).wrong_usage("--label");
    setun(&["embed", "a", "--pooling", "max"]).wrong_usage("--pooling");
    let stories = model(STORIES);
    let empty = setun(&["score", PROMPT, "--text", "", "--model", &stories]);
    assert!(empty.status == Some(1) && empty.stderr.contains("[bad-option]"), "{}", empty.stderr);
    let blind = setun(&["embed", "a", "--model", &model(TINY)]);
    assert!(blind.status == Some(1) && blind.stderr.contains("tokenizer"), "{}", blind.stderr);
}

/// The tests of the npm package read the same file.
#[cfg(feature = "embedded-model")]
#[test]
fn embeddings_of_the_embedded_model_are_the_same_everywhere() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/embedded-embeddings.json");
    let json = std::fs::read(path).expect("the fixture");
    let golden: Value = serde_json::from_slice(&json).expect("JSON");
    let text = |place: usize| golden["texts"][place].as_str().expect("a text");
    for how in ["last", "mean"] {
        let found = setun(&["embed", text(0), text(1), "--pooling", how, "--json"]).lines();
        for (place, found) in found.iter().enumerate() {
            assert_eq!(found["tokens"], golden["tokens"][place]);
            let expected = golden[how][place].as_array().expect("values");
            let values = found["embedding"].as_array().expect("values");
            assert_eq!(&values[..expected.len()], expected, "{how}, {place}");
        }
    }
}

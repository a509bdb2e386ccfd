//! JSON comes to its end, and a text that does not says so.

use serde_json::Value;

use crate::support::{setun, story};

/// The example of the npm package's README.
const PERSON: &str = r#"{"type": "object", "properties": {"name": {"type": "string"},
    "age": {"type": "integer", "minimum": 0}}, "required": ["name", "age"]}"#;

#[test]
fn json_ends_for_every_seed() {
    for seed in 0..20 {
        let seed = seed.to_string();
        let options = ["--seed", &seed, "--temperature", "1"];
        for (form, limit) in [
            (&["--json-schema", PERSON][..], &[][..]),
            (&["--json-schema", PERSON], &["--max-tokens", "24"]),
            (&["--json-object"], &[]),
            (&["--json-object"], &["--max-tokens", "12"]),
            (&["--json-schema", "{}"], &["--max-tokens", "12"]),
        ] {
            let text = story(&options, &[form, limit].concat()).text();
            let value: Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{seed}: {error}: {text}"));
            if form.contains(&PERSON) {
                let names: Vec<&String> = value.as_object().expect("an object").keys().collect();
                assert_eq!(names, ["name", "age"], "{text}");
            }
        }
    }
}

#[test]
fn objects_are_open_on_request() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "null"}}}"#;
    let names = |more: &[&str]| -> usize {
        let texts = (0..8).map(|seed: u32| {
            let seed = seed.to_string();
            let options = ["--seed", &seed, "--temperature", "1", "--max-tokens", "60"];
            let text = story(&options, &[&["--json-schema", schema], more].concat()).text();
            let value: Value = serde_json::from_str(&text).expect("JSON");
            value.as_object().expect("an object").keys().filter(|name| *name != "a").count()
        });
        texts.sum()
    };
    assert_eq!(names(&[]), 0);
    assert!(names(&["--open-objects"]) > 0);
    setun(&["run", "--open-objects", "a"]).wrong_usage("--json-schema");
    setun(&["run", "--open-objects", "--json-object", "a"]).wrong_usage("--json-object");
}

#[test]
fn an_unfinished_text_has_a_status_of_its_own() {
    let long = r#"{"type": "string", "minLength": 90}"#;
    let options = ["--seed", "1", "--temperature", "1", "--max-tokens", "10"];
    let found = story(&options, &["--json-schema", long]);
    assert_eq!(found.status, Some(3), "{}", found.stderr);
    assert!(found.stderr.contains("unfinished"), "{}", found.stderr);
    assert!(found.stderr.contains("--max-tokens"), "{}", found.stderr);
    assert!(found.stdout.starts_with('"'), "{}", found.stdout);

    let found = story(&options, &["--json-schema", long, "--json"]);
    assert_eq!(found.status, Some(3), "{}", found.stderr);
    let last: Value =
        serde_json::from_str(found.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["finish_reason"], &last["unfinished"]), (&"length".into(), &true.into()));

    // A text that may end where it is cut off is finished.
    story(&options, &["--regex", "[a-z ]*"]).text();
    let found = story(&options, &["--regex", "[a-z ]{90}"]);
    assert_eq!(found.status, Some(3), "{}", found.stderr);
}

#[test]
fn faults_of_expressions_show_no_grammar() {
    for expression in ["(", "a(?=b)", "[z-a]", "\\p{Nothing}", "a{3,2}", "(?<n", "^a^"] {
        let error = story(&[], &["--regex", expression]).failure();
        assert!(!error.contains("start:") && !error.contains("(in "), "{expression}: {error}");
    }
}

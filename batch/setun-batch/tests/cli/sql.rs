//! `setun sql`: queries, formats and files.

use std::{fs, io::Read, process::Stdio};

use serde_json::{Value, json};

use setun::GenerateOptions;

use crate::{
    models::{answer, continued},
    support::{
        Outcome, command, send, setun, setun_reading, statuses, with_chat_template, with_template,
    },
};

const GREEDY: &str = r#"'{"temperature": 0, "max_tokens": 6}'"#;

fn sql(query: &str, more: &[&str]) -> Outcome {
    setun(&[&["sql", "-c", query], more].concat())
}

#[test]
fn rows_are_printed_in_each_format() {
    let query = "SELECT 1 AS number, 'a' AS letter UNION ALL SELECT 2, 'b' ORDER BY number";
    let table = "\
+--------+--------+
| number | letter |
+--------+--------+
| 1      | a      |
| 2      | b      |
+--------+--------+
";
    assert_eq!(sql(query, &[]).text(), table);
    assert_eq!(sql(query, &["--format", "csv"]).text(), "number,letter\n1,a\n2,b\n");
    let lines = sql(query, &["--format", "json"]).lines();
    assert_eq!(lines, [json!({"number": 1, "letter": "a"}), json!({"number": 2, "letter": "b"})]);
    let empty = sql("SELECT 1 AS one WHERE false", &[]).text();
    assert!(empty.contains("| one |"), "{empty}");
}

#[test]
fn a_function_has_the_text_of_the_engine() {
    let greedy = GenerateOptions::new().temperature(0.0).max_tokens(6);
    let query = format!("SELECT generate('Once upon a time', {GREEDY})['text'] AS text");
    let line = sql(&query, &["--format", "json"]).json();
    assert_eq!(line["text"], continued("Once upon a time", greedy));
}

#[test]
fn queries_come_from_files_standard_input_and_several_flags() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("query.sql");
    fs::write(&file, "SELECT 1 AS a;\nSELECT 2 AS b;\n").expect("it is written");
    let path = file.to_str().expect("UTF-8");
    let lines = [json!({"a": 1}), json!({"b": 2})];
    assert_eq!(setun(&["sql", "--file", path, "--format", "json"]).lines(), lines);
    let input = setun_reading(&["sql", "--format", "json"], b"SELECT 1 AS a; SELECT 2 AS b");
    assert_eq!(input.lines(), lines);
    let args = ["sql", "-c", "SELECT 1 AS a", "-c", "SELECT 2 AS b", "--format", "json"];
    assert_eq!(setun(&args).lines(), lines);
}

#[test]
fn rows_are_written_to_files_that_a_query_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "SELECT n, generate('Day ' || n, {GREEDY})['text'] AS text \
        FROM (SELECT CAST(value AS VARCHAR) AS n FROM generate_series(1, 3))"
    );
    let mut found: Vec<Vec<Value>> = vec![];
    for name in ["rows.parquet", "rows.jsonl", "rows.csv"] {
        let path = folder.path().join(name);
        let path = path.to_str().expect("UTF-8");
        assert_eq!(sql(&text, &["--output", path]).text(), "");
        let refused = sql("SELECT 1", &["--output", path]).failure();
        assert!(refused.contains("exists already; --force"), "{refused}");
        assert_eq!(sql(&text, &["--output", path, "--force"]).text(), "");
        let query = format!("SELECT CAST(n AS INT) AS n, text FROM '{path}' ORDER BY n");
        found.push(sql(&query, &["--format", "json"]).lines());
    }
    assert_eq!(found[0].len(), 3);
    assert!(found.iter().all(|rows| *rows == found[0]), "{found:?}");
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 3, "nothing but the files is left");
}

#[test]
fn failures_are_one_line() {
    for (query, expected) in [
        ("SELEC 1", "[bad-option] "),
        ("SELECT nothing", "[bad-option] "),
        ("SELECT * FROM 'not-there.parquet'", "not-there.parquet"),
        (r#"SELECT generate('a', '{"max_tokens": 0}')"#, "`max_tokens` is 0"),
    ] {
        let line = sql(query, &[]).failure();
        assert!(line.contains(expected), "{query}: {line}");
    }
    let nested = sql("SELECT generate('a')", &["--format", "csv"]).failure();
    assert!(nested.contains("CSV has no way to write column"), "{nested}");
    let line = sql("SELECT generate('a')", &["--model", "not-there.setun"]).failure();
    assert!(line.contains("the model cannot be loaded"), "{line}");
    assert_eq!(
        sql("SELECT 1 AS a", &["--model", "not-there.setun", "--format", "csv"]).text(),
        "a\n1\n"
    );
    sql("SELECT 1", &["--output", "rows.txt"]).wrong_usage(".parquet, .jsonl or .csv");
    setun(&["sql", "-c", ""]).wrong_usage("expected a query, found none");
    sql("SELECT 1", &["--backend", "abacus"]).failure();
}

#[test]
fn a_signal_ends_a_query_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.parquet");
    let query =
        r#"SELECT generate('A' || value, '{"max_tokens": 200}') FROM generate_series(1, 100000)"#;
    let args = ["sql", "-c", query, "--output", path.to_str().expect("UTF-8")];
    for (signal, status) in statuses() {
        let mut child =
            command(&args).stderr(Stdio::piped()).spawn().expect("the command is built");
        std::thread::sleep(std::time::Duration::from_secs(2));
        send(signal, &child);
        let mut words = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("UTF-8");
        assert_eq!(child.wait().expect("its end").code(), Some(status), "{words}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}

/// What templates have as now is that of the session, or of a row's options.
#[test]
fn a_template_has_the_time_that_is_set() {
    let (_keep, folder) =
        with_template("It was {{ strftime_now('%B %Y') }}. {{ messages[0].content }}");
    let at = |time| {
        let options = GenerateOptions::new().temperature(0.0).max_tokens(12);
        answer(&folder, "A cat sat.", options.chat_template_time(time))
    };
    let messages = r#"[{"role": "user", "content": "A cat sat."}]"#;
    let query = |before: &str, more: &str| {
        let options = format!(r#"{{"temperature": 0, "max_tokens": 12{more}}}"#);
        let query = format!("{before} SELECT chat('{messages}', '{options}')['text'] AS text");
        let row = sql(&query, &["--model", &folder, "--format", "json"]).json();
        row["text"].as_str().expect("a text").to_owned()
    };
    let (old, late) = (at(0), at(253_402_300_799));
    assert_ne!(old, late, "the date is in the prompt");
    assert_eq!(query("SET setun.time = 0;", ""), old);
    assert_eq!(query("SET setun.time = 0;", r#", "chat_template_time": 253402300799"#), late);
    let wrong = sql("SET setun.time = 253402300800; SELECT 1", &["--model", &folder]).failure();
    assert!(wrong.contains("setun.time is `253402300800`"), "{wrong}");
}

#[test]
fn a_conversation_is_answered_as_the_engine_does() {
    let (_keep, folder) = with_chat_template();
    let greedy = GenerateOptions::new().temperature(0.0).max_tokens(8);
    let expected = answer(&folder, "A cat sat.", greedy);
    let options = r#"{"temperature": 0, "max_tokens": 8}"#;
    let text = |messages: &str| {
        let query = format!("SELECT chat('{messages}', '{options}') AS answer");
        let line = sql(&query, &["--model", &folder, "--format", "json"]).json();
        line["answer"].clone()
    };
    assert_eq!(text(r#"[{"role": "user", "content": "A cat sat."}]"#)["text"], expected);
    for (messages, error) in [
        ("A cat sat.", "expected a JSON array of messages"),
        ("[]", "it is empty"),
        (r#"[{"content": "A cat sat."}]"#, "role"),
    ] {
        let answer = text(messages);
        let found = answer["error"].as_str().expect("an error");
        assert!(found.contains(error), "{found}");
    }
}

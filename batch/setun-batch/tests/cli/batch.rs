//! `setun batch`: jobs that are killed at any moment, and their readers.

mod store;
mod trouble;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Child,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Outcome, command, send, setun, with_chat_template};

/// Rows of the input, and of a chunk.
const ROWS: usize = 60;
const CHUNK: usize = 5;

/// A folder with prompts, and the arguments of a job over them.
pub(crate) struct Job {
    folder: tempfile::TempDir,
}

impl Job {
    fn new() -> Self {
        Self::of(ROWS)
    }

    /// A job of this number of rows, some of which begin alike.
    pub(crate) fn of(rows: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let row = |id: usize| json!({"id": id, "story": format!("Day {} was", id % 7)}).to_string();
        let rows: Vec<_> = (0..rows).map(row).collect();
        fs::write(folder.path().join("in.jsonl"), rows.join("\n")).expect("it is written");
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// The arguments of a run; `more` has pairs that replace others.
    pub(crate) fn args(&self, out: &str, more: &[&str]) -> Vec<String> {
        let chunk = CHUNK.to_string();
        let (input, out) = (self.path("in.jsonl"), self.path(out));
        let options = r#"{"max_tokens": 24, "min_tokens": 24, "temperature": 1}"#;
        let mut pairs = vec![
            ["--in", &input],
            ["--prompt", "story"],
            ["--key", "id"],
            ["--out", &out],
            ["--options", options],
            ["--chunk-rows", &chunk],
            ["--seed", "5"],
        ];
        for pair in more.chunks(2) {
            pairs.retain(|[name, _]| *name != pair[0]);
        }
        pairs.extend(more.chunks(2).map(|pair| [pair[0], pair[1]]));
        let pairs = pairs.concat();
        ["run"].into_iter().chain(pairs).map(str::to_owned).collect()
    }

    /// A job of conversations.
    pub(crate) fn of_talks(rows: usize) -> Self {
        let job = Self::of(0);
        let talk = |id: usize| {
            let messages = json!([{"role": "user", "content": format!("Day {id} was")}]);
            json!({"id": id, "story": messages}).to_string()
        };
        let rows: Vec<_> = (0..rows).map(talk).collect();
        fs::write(job.path("in.jsonl"), rows.join("\n")).expect("it is written");
        job
    }

    /// The arguments of a run of conversations.
    pub(crate) fn args_of_talks(&self, out: &str, more: &[&str]) -> Vec<String> {
        let mut args = self.args(out, more);
        let prompt = args.iter().position(|arg| arg == "--prompt").expect("the flag");
        "--messages".clone_into(&mut args[prompt]);
        args
    }

    pub(crate) fn run(&self, out: &str, more: &[&str]) -> Outcome {
        setun(&strings(&self.args(out, more)))
    }

    fn spawn(&self, out: &str) -> Child {
        command(&strings(&self.args(out, &[]))).spawn().expect("the command is built")
    }

    /// The files that the manifest of a folder names, after their sizes and hashes were compared.
    pub(crate) fn files(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        read_manifest(Path::new(&self.path(out)))
    }

    pub(crate) fn status(&self, out: &str) -> Value {
        setun(&["status", "--out", &self.path(out), "--json"]).json()
    }
}

pub(crate) fn strings(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

pub(crate) fn read_manifest(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder.join("_manifest/chunks")) else { return BTreeMap::new() };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|end| end != "json") {
            continue; // a part, which has another name until it is whole
        }
        let text = fs::read_to_string(&path).expect("it is there");
        let entry: Value = serde_json::from_str(&text).expect("an entry is whole");
        let name = entry["file"].as_str().expect("a name");
        let bytes = fs::read(folder.join(name)).expect("a file that the manifest names is there");
        assert_eq!(entry["bytes"], bytes.len(), "{name} is whole");
        files.insert(name.to_owned(), bytes);
    }
    files
}

#[test]
fn a_job_that_is_killed_ends_complete_and_equal() {
    let job = Job::new();
    let summary = format!("12 chunks: {ROWS} rows, {} tokens\n", 24 * ROWS);
    assert_eq!(job.run("whole", &[]).text(), summary);
    let whole = job.files("whole");
    assert_eq!(whole.len(), ROWS / CHUNK);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        // A reader sees whole files at every moment.
        let out = job.path("killed");
        let reader = scope.spawn(|| {
            let (out, mut most) = (out, 0);
            while !ended.load(Ordering::Relaxed) {
                let found = read_manifest(Path::new(&out));
                assert!(found.len() >= most, "no entry is lost");
                most = found.len();
            }
            most
        });
        let mut seen = vec![];
        for attempt in 0..10_u64 {
            let (mut child, before) = (job.spawn("killed"), job.files("killed").len());
            // Half of the time as soon as a chunk is done, else at some moment.
            if attempt % 2 == 0 {
                while job.files("killed").len() == before
                    && child.try_wait().expect("a child").is_none()
                {
                    thread::sleep(Duration::from_millis(1));
                }
            } else {
                thread::sleep(Duration::from_millis(73 * attempt % 350));
            }
            send("-KILL", &child);
            child.wait().expect("its end");
            seen.push(job.files("killed").len());
        }
        assert!(seen.iter().any(|done| (1..ROWS / CHUNK).contains(done)), "{seen:?}");
        let summary = job.run("killed", &[]);
        assert_eq!(summary.status, Some(0), "{}", summary.stderr);
        ended.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("no panic") <= ROWS / CHUNK);
    });
    assert_eq!(job.files("killed"), whole);
    assert_eq!(job.status("killed"), job.status("whole"));
    let left: Vec<_> = fs::read_dir(job.path("killed")).expect("a folder").flatten().collect();
    let parquet =
        left.iter().filter(|file| file.path().extension().is_some_and(|end| end == "parquet"));
    assert_eq!(parquet.count(), ROWS / CHUNK, "{left:?}");
}

#[test]
fn a_signal_says_how_far_it_is_and_status_agrees() {
    let job = Job::new();
    let mut child = command(&strings(&job.args("out", &[])));
    let mut child =
        child.stderr(std::process::Stdio::piped()).spawn().expect("the command is built");
    while read_manifest(Path::new(&job.path("out"))).is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    send("-INT", &child);
    let mut words = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("a pipe"), &mut words)
        .expect("UTF-8");
    assert_eq!(child.wait().expect("its end").code(), Some(130), "{words}");
    assert!(words.contains(" of 12 chunks: ") && words.contains("goes on from there"), "{words}");
    let status = job.status("out");
    assert_eq!(
        (&status["chunks"], &status["rows"], &status["complete"]),
        (&json!(12), &json!(ROWS), &json!(false))
    );
    let done = status["chunks_done"].as_u64().expect("a number");
    assert!(words.starts_with(&format!("{done} of 12 chunks: ")), "{words}");
    assert!((1..12).contains(&done), "{status}");
    assert_eq!(status["rows_done"], done * CHUNK as u64);
    assert_eq!(
        job.run("out", &[]).text(),
        format!("12 chunks: {ROWS} rows, {} tokens\n", 24 * ROWS)
    );
    assert_eq!(job.status("out")["complete"], true);
}

#[test]
fn a_schema_is_followed_and_bad_rows_are_data() {
    let job = Job::new();
    let schema = job.path("schema.json");
    let text = r#"{"type": "object", "properties": {"day": {"enum": ["good", "bad"]}}, "required": ["day"],
        "additionalProperties": false}"#;
    fs::write(&schema, text).expect("it is written");
    let rows =
        [r#"{"id": "a", "story": "Today was"}"#, r#"{"id": "b", "story": ""}"#, r#"{"id": "c"}"#];
    fs::write(job.path("in.jsonl"), rows.join("\n")).expect("it is written");
    assert!(
        job.run("out", &["--schema", &schema, "--options", "{}"])
            .text()
            .contains("1 chunk: 3 rows, 2 with an error")
    );
    let query = format!(
        "SELECT id, result['text'] AS text, result['error'] AS error FROM '{}'",
        job.path("out/")
    );
    let rows = setun(&["sql", "-c", &query, "--format", "json"]).lines();
    let day: Value = serde_json::from_str(rows[0]["text"].as_str().expect("a text")).expect("JSON");
    assert!(day == json!({"day": "good"}) || day == json!({"day": "bad"}), "{day}");
    assert_eq!(rows[1]["error"], "the prompt is empty");
    assert_eq!(rows[2]["error"], "the prompt is NULL");
}

#[test]
fn what_is_wrong_is_one_line() {
    let job = Job::new();
    for (more, expected) in [
        (&["--model", "not-there.setun"][..], "the model cannot be loaded"),
        (&["--chunk-rows", "0"], "--chunk-rows"),
        (&["--key", "nothing"], "no column `nothing`, expected one of id, story"),
        (&["--schema", "not-there.json"], "not-there.json"),
        (&["--options", "{"], "expected a JSON object"),
    ] {
        let outcome = job.run("out", more);
        assert_ne!(outcome.status, Some(0));
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
    for (rows, expected) in [
        (r#"{"id": 1, "story": "A", "more": {}}"#, "empty"),
        ("{\"id\": \"a\", \"story\": \"A\"}\n{\"id\": 17, \"story\": \"A\"}", "in.jsonl"),
    ] {
        fs::write(job.path("in.jsonl"), rows).expect("it is written");
        let outcome = job.run("out", &[]).failure();
        assert!(outcome.contains(expected) && outcome.lines().count() == 1, "{outcome}");
    }
    let missing = setun(&["status", "--out", &job.path("out")]).failure();
    assert!(missing.contains("_manifest/job.json"), "{missing}");
}

/// Properties come as a schema has them, so their order is part of a job.
#[test]
fn another_order_of_a_schema_is_another_job() {
    let job = Job::of(3);
    let schema = |names: [&str; 2]| {
        let [one, other] = names.map(|name| format!(r#""{name}": {{"enum": ["good", "bad"]}}"#));
        let rest = r#""required": ["a", "b"], "additionalProperties": false"#;
        let text = format!(r#"{{"type": "object", "properties": {{{one}, {other}}}, {rest}}}"#);
        fs::write(job.path("schema.json"), text).expect("it is written");
        job.run("out", &["--schema", &job.path("schema.json"), "--options", "{}"])
    };
    assert!(schema(["a", "b"]).text().starts_with("1 chunk: 3 rows, "));
    let other = schema(["b", "a"]).failure();
    assert!(other.contains("options"), "{other}");
    assert!(schema(["a", "b"]).text().starts_with("1 chunk: 3 rows, "));
}

/// More texts at once than the engine's queue has places: requests wait for each other.
#[test]
fn requests_of_many_texts_wait_for_room() {
    const REQUESTS: usize = 100;
    let job = Job::of(1);
    let request = |id: usize| {
        let body = json!({"prompt": format!("Day {id}"), "n": 16, "max_tokens": 2});
        let url = "/v1/completions";
        json!({"custom_id": format!("r{id}"), "method": "POST", "url": url, "body": body})
            .to_string()
    };
    let lines: Vec<_> = (0..REQUESTS).map(request).collect();
    let (input, out) = (job.path("requests.jsonl"), job.path("out"));
    fs::write(&input, lines.join("\n")).expect("it is written");
    setun(&["run", "--requests", "--in", &input, "--out", &out]).text();
    let lines = String::from_utf8(job.files("out").into_values().flatten().collect());
    let answers = lines.expect("UTF-8");
    let choices = answers.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        answer["response"]["body"]["choices"].as_array().expect("texts").len()
    });
    assert_eq!(choices.collect::<Vec<_>>(), [16; REQUESTS]);
}

/// The tests of `setun serve` compare its batches with the same file.
#[test]
fn answers_are_the_lines_of_the_server() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/batch");
    let (job, input) = (Job::of(1), fixtures.join("requests.jsonl"));
    let (input, out) = (input.to_str().expect("UTF-8"), job.path("out"));
    setun(&["run", "--requests", "--in", input, "--out", &out]).text();
    let found: Vec<u8> = job.files("out").into_values().flatten().collect();
    let found = String::from_utf8(found).expect("UTF-8");
    let expected = fs::read_to_string(fixtures.join("answers.jsonl")).expect("the answers");
    let sorted = |lines: &str| lines.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(sorted(&found), sorted(&expected));
}

/// JSON lines have messages as lists, tables often as text.
#[test]
fn conversations_are_lists_or_their_text() {
    let (job, (_keep, model)) = (Job::new(), with_chat_template());
    let messages = json!([{"role": "user", "content": "A cat sat."}]);
    let mut texts = vec![];
    for (out, messages) in [("lists", messages.clone()), ("texts", json!(messages.to_string()))] {
        let row = json!({"id": 1, "talk": messages}).to_string();
        fs::write(job.path("in.jsonl"), row).expect("it is written");
        let input = job.path("in.jsonl");
        let out = job.path(out);
        let args = ["run", "--in", &input, "--out", &out, "--messages", "talk", "--key", "id"];
        let options = ["--options", r#"{"max_tokens": 8}"#, "--model", &model];
        setun(&[&args[..], &options].concat()).text();
        let query =
            format!("SELECT result['text'] AS text, result['error'] AS error FROM '{out}/'");
        texts.push(setun(&["sql", "-c", &query, "--format", "json"]).json());
    }
    assert!(texts[0]["text"].is_string(), "{texts:?}");
    assert_eq!(texts[0], texts[1]);
}

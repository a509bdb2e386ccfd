//! `setun simulate`: tables, lines of JSON, pictures and traces; what is refused.

use std::fs;

use crate::support::{Outcome, setun};

/// A request of 65 tokens each second, in turn of two keys.
fn trace() -> String {
    let line = |at: u32| {
        let key = ["a", "b"][at as usize % 2];
        let at = 1000 * at;
        format!(r#"{{"at_ms":{at},"key":"{key}","prompt":[["{key}",65]],"output":1}}"#) + "\n"
    };
    (0..6).map(line).collect()
}

fn simulate(args: &[&str]) -> Outcome {
    setun(&[&["simulate"], args].concat())
}

#[test]
fn policies_are_rows_of_a_table() {
    let args = ["--replicas", "1,2", "--policy", "hash,round-robin", "--requests", "50"];
    let text = simulate(&args).text();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("replicas  policy       cached  first token"), "{text}");
    let starts =
        ["       1  hash ", "       1  round-robin ", "       2  hash ", "       2  round-robin "];
    for (line, start) in lines[1..].iter().zip(starts) {
        assert!(line.starts_with(start), "{text}");
    }
    assert_eq!(lines[5..], ["", "steps: 2b4t, two threads, Emerald Rapids"]);
    assert_eq!(simulate(&args).text(), text, "the same bytes");
}

#[test]
fn a_trace_of_a_file_is_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (file, costs, written) = (path("trace.jsonl"), path("costs.json"), path("written.jsonl"));
    fs::write(&file, trace()).expect("a file");
    let table = r#"{"name": "n", "decode": [[1, 1.0], [2, 2.0]], "prefill": [[1, 1.0], [2, 2.0]]}"#;
    fs::write(&costs, table).expect("a file");
    let args =
        ["--trace", &file, "--costs", &costs, "--policy", "hash", "--replicas", "2", "--json"];
    let more = ["--lose", "1@2.5", "--write-trace", &written];
    let report = simulate(&[&args[..], &more].concat()).json();
    // Two blocks of each prompt but the first of a key, and of a key that has moved.
    let loss = &report["loss"];
    let moved = loss["moved_keys"].as_u64().expect("a number");
    assert_eq!(report["cached_tokens"], 4 * 64 - 64 * moved);
    assert_eq!(
        (&report["prompt_tokens"], &report["first_token_ms"]["p99"]),
        (&390.into(), &65.0.into())
    );
    assert_eq!(loss["at_ms"], 2500);
    assert_eq!(fs::read_to_string(&written).expect("a trace"), trace());
    let again = simulate(&[&args[..], &more].concat());
    assert!(again.stderr.contains("exists already; --force"), "{}", again.stderr);
}

#[test]
fn results_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_string_lossy().into_owned();
    let file = folder.path().join("all.svg").to_string_lossy().into_owned();
    let args = |svg| ["--replicas", "1,2", "--requests", "20", "--json", "--svg", svg];
    simulate(&args(&file)).text();
    simulate(&args(&place)).text();
    let drawn = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
    let counts = ["all.svg", "replicas-1.svg", "replicas-2.svg"].map(|name| {
        let svg = drawn(name);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        svg.matches(">bounded-hash<").count()
    });
    assert_eq!(counts, [2, 1, 1]);
}

#[test]
fn bad_values_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.jsonl").to_string_lossy().into_owned();
    let bad = folder.path().join("bad.jsonl").to_string_lossy().into_owned();
    fs::write(&file, trace()).expect("a file");
    fs::write(&bad, trace().replacen("\"output\":1", "\"output\":0", 1)).expect("a file");
    let cases: &[(&[&str], &str)] = &[
        (&["--replicas", "0"], "0 is not in 1..=1000"),
        (&["--replicas", "1001"], "1001 is not in 1..=1000"),
        (&["--policy", "random"], "expected round-robin, least-load, hash, bounded-hash, index"),
        (&["--requests", "0"], "0 is not in 1..=1000000"),
        (&["--turns", "201"], "201 is not in 1..=200"),
        (&["--rate", "0"], "a number above 0, up to 1000000"),
        (&["--rate", "nan"], "a number above 0, up to 1000000"),
        (&["--rate", "1", "--rate-per-replica", "1"], "cannot be used with"),
        (&["--cache", "31"], "31 is not in 32..=1073741824"),
        (&["--cache", "64", "--prefix", "65"], "--prefix: expected at most --cache 64"),
        (&["--cache", "64"], "has 66 tokens with its output, and the cache of a replica 64"),
        (&["--factor", "100"], "100 is not in 101..=1048576"),
        (&["--open", "0"], "0 is not in 1..=1048576"),
        (&["--lose", "1"], "expected a replica and seconds, such as 2@60"),
        (&["--lose", "1@-1"], "expected a replica and seconds, such as 2@60"),
        (&["--lose", "0@1"], "--lose 0@…: no replica would be left of 1"),
        (&["--lose", "2@1", "--replicas", "2,3"], "expected a replica from 0 to 1 of 2"),
        (&["--trace", &bad], "line 1 of the trace: `output` is 0, expected 1 to 16777216"),
        (&["--trace", &file, "--seed", "1", "--turns", "3"], "--turns has no effect on the trace"),
        (&["--costs", &file], "step costs: unknown field `at_ms`"),
    ];
    for (args, words) in cases {
        let args: Vec<_> = match *words {
            words if words.starts_with("has 66") => [*args, &["--trace", &file]].concat(),
            _ => args.to_vec(),
        };
        let outcome = simulate(&args);
        assert!(outcome.stderr.contains(words), "{args:?}: {}", outcome.stderr);
        outcome.wrong_usage(words);
    }
    let missing = simulate(&["--trace", "/no/such/trace"]);
    assert_eq!((missing.status, &*missing.stdout), (Some(1), ""));
    assert!(missing.stderr.contains("/no/such/trace"), "{}", missing.stderr);
}

//! Traces as JSON lines, and those that are made up.

use setun_simulate::{Request, TraceKind, TraceOptions, generate, read, write};

const LINE: &str = r#"{"at_ms":0,"key":"conversation-7","prompt":[["system-3",120],["conversation-7/1",40]],"output":16}"#;

#[test]
fn a_trace_is_read_and_written() {
    let text = format!("{LINE}\n\n{}\n", LINE.replace("\"at_ms\":0", "\"at_ms\":9"));
    let requests = read(&text).expect("two requests");
    assert_eq!((requests.len(), requests[0].prompt_tokens(), requests[1].at_ms), (2, 160, 9));
    assert_eq!(write(&requests), text.replace("\n\n", "\n"));
}

#[test]
fn bad_lines_are_refused_with_their_numbers() {
    let refused = |from: &str, to: &str| {
        let text = format!("{LINE}\n\n{}\n", LINE.replace(from, to));
        read(&text).expect_err(to).to_string()
    };
    let cases = [
        (("\"at_ms\":0", "\"at_ms\":-1"), "invalid value: integer `-1`, expected u64 at column 11"),
        (("\"at_ms\":0", "\"at_ms\":2000000000000"), "`at_ms` is 2000000000000, expected at most"),
        (("16}", "16"), "EOF while parsing an object at column 97"),
        (("\"output\":16", "\"out\":16"), "missing field `output` at column 95"),
        (("16}", "0}"), "`output` is 0, expected 1 to 16777216"),
        (("40", "0"), "the segment `conversation-7/1` has 0 tokens, expected at least 1"),
        (("[\"system-3\",120]", "[\"system-3\"]"), "invalid length 1, expected"),
        (("120", "4000000000"), "the prompt has 4000000040 tokens, expected 1 to 16777216"),
    ];
    for ((from, to), expected) in cases {
        let error = refused(from, to);
        assert!(error.starts_with(&format!("line 3 of the trace: {expected}")), "{error}");
    }
    let empty =
        format!("{LINE}\n{}", LINE.replace(r#"["system-3",120],["conversation-7/1",40]"#, ""));
    let error = read(&empty).expect_err("no prompt").to_string();
    assert_eq!(error, "line 2 of the trace: the prompt has 0 tokens, expected 1 to 16777216");
    let back = format!("{}\n{LINE}", LINE.replace("\"at_ms\":0", "\"at_ms\":9"));
    let error = read(&back).expect_err("back in time").to_string();
    assert_eq!(error, "line 2 of the trace: `at_ms` is 0, expected at least 9, as above it");
    assert_eq!(read("\n").expect_err("nothing").to_string(), "the trace has no requests");
}

fn trace(kind: TraceKind, seed: u64) -> Vec<Request> {
    let options = TraceOptions { requests: 3000, rate: 20.0, seed, ..TraceOptions::default() };
    generate(kind, &options).expect("a trace")
}

#[test]
fn made_up_traces_have_their_number_rate_and_order() {
    for kind in [TraceKind::Conversations, TraceKind::Prompts, TraceKind::Bursts] {
        let trace = trace(kind, 1);
        assert_eq!(trace.len(), 3000);
        assert!(trace.is_sorted_by_key(|request| request.at_ms));
        let last = trace.last().map_or(0, |request| request.at_ms);
        assert!((100_000..220_000).contains(&last), "{kind:?}: 20 a second, {last} ms");
        assert_eq!(read(&write(&trace)), Ok(trace.clone()), "{kind:?}");
        assert_eq!(trace, self::trace(kind, 1));
        assert_ne!(trace, self::trace(kind, 2));
    }
}

#[test]
fn turns_of_a_conversation_follow_each_other() {
    let trace = trace(TraceKind::Conversations, 3);
    let mut last = std::collections::HashMap::new();
    let mut follow = 0;
    for request in &trace {
        if let Some(before) = last.insert(&request.key, request) {
            assert!(request.follows(before), "{request:?}");
            follow += 1;
        }
    }
    assert!(follow > 2000, "{follow}: five turns each");
}

#[test]
fn some_system_prompts_are_frequent() {
    let trace = trace(TraceKind::Prompts, 4);
    let count = |key: &str| trace.iter().filter(|request| request.key == key).count();
    let [first, tenth] = ["system-0", "system-9"].map(count);
    assert!(first > 5 * tenth && tenth > 0, "{first} {tenth}");
}

#[test]
fn traces_of_nothing_are_refused() {
    let options = TraceOptions { turns: 0, ..TraceOptions::default() };
    let error = generate(TraceKind::Prompts, &options).expect_err("no turns").to_string();
    assert_eq!(error, "turns: found 0, expected at least 1");
    let options = TraceOptions { rate: f64::NAN, ..TraceOptions::default() };
    let error = generate(TraceKind::Prompts, &options).expect_err("no rate").to_string();
    assert_eq!(error, "rate: found NaN, expected a number above 0");
}

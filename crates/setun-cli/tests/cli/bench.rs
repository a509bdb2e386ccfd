//! `setun bench`

use serde_json::Value;

use crate::support::{STORIES, TINY, model, setun};

fn reports(args: &[&str]) -> Vec<Value> {
    setun(&[&["bench", "--json", "--repeat", "1"], args].concat()).lines()
}

#[test]
fn a_line_for_each_batch_size_has_the_fixed_fields() {
    let folder = model(TINY);
    let size = ["--prompt", "20", "--generate", "6", "--batch", "1,3", "--threads", "2"];
    let reports = reports(&[&["--model", &folder], &size[..]].concat());
    assert_eq!(reports.len(), 2);
    for (report, batch) in reports.iter().zip([1, 3]) {
        let fields: Vec<_> = report.as_object().expect("an object").keys().collect();
        assert_eq!(
            fields,
            [
                "backend",
                "level",
                "threads",
                "batch",
                "shape",
                "head",
                "repeats",
                "tokens_hash",
                "first_tokens_hash",
                "prefill_tokens_per_second",
                "decode_tokens_per_second",
                "weight_bytes_per_token",
                "read_bandwidth_gb_per_second",
                "peak_tera_operations_per_second",
                "peak_rss_bytes",
                "memory",
                "candidates",
            ]
        );
        assert_eq!(report["batch"], batch);
        assert_eq!(report["repeats"], 1);
        assert_eq!(report["head"], "stored");
        assert_eq!(report["candidates"], Value::Null, "nothing is screened");
        for rate in ["prefill_tokens_per_second", "decode_tokens_per_second"] {
            assert!(number(report, rate) > 0.0);
        }
    }
    let first = |report: &Value| report["first_tokens_hash"].clone();
    assert_eq!(first(&reports[0]), reports[0]["tokens_hash"]);
    assert_eq!(first(&reports[0]), first(&reports[1]), "a sequence is the same in each batch");
    assert_ne!(first(&reports[1]), reports[1]["tokens_hash"]);
    let bytes = |report: &Value| report["weight_bytes_per_token"].as_u64().expect("bytes");
    // A batch shares what it reads; what one sequence does not need another may.
    let (alone, shared) = (bytes(&reports[0]), bytes(&reports[1]));
    assert!(alone / 3 <= shared && shared < alone, "{alone} alone, {shared} of three");
}

#[test]
fn streams_compute_what_their_requests_need() {
    let folder = model(STORIES);
    let size = ["--prompt", "20", "--generate", "6", "--streams", "1,3"];
    let reports = reports(&[&["--model", &folder], &size[..]].concat());
    assert_eq!(reports.len(), 3);
    for (report, streams) in reports.iter().zip([1, 3]) {
        assert_eq!(report["streams"], streams);
        let computed = report["computed_by_needed"].as_f64().expect("a ratio");
        assert!((1.0..1.05).contains(&computed), "{report}");
        for rate in ["decode_tokens", "sampled_tokens", "prefill_rows", "headless_rows"] {
            assert!(number(report, &format!("{rate}_per_second")) > 0.0, "{report}");
        }
    }
    // 512 positions: a beginning of 503 tokens, of which 15 blocks are whole.
    let shared = &reports[2];
    assert_eq!(shared["shared_tokens"], 503);
    let [computed, needed] =
        ["computed_rows", "needed_rows"].map(|name| shared[name].as_u64().expect("a count"));
    assert_eq!(needed, 503 + 8 * 8);
    assert_eq!(computed, needed + 7 * (503 - 480), "what is no whole block is computed by each");
}

#[test]
fn guessing_ahead_is_measured_on_equal_texts() {
    let folder = model(STORIES);
    let reports = reports(&["--model", &folder, "--generate", "40", "--speculate"]);
    let texts: Vec<_> = reports.iter().map(|report| report["text"].clone()).collect();
    assert_eq!(texts, ["repeats its prompt", "a refrain", "an ordinary story"]);
    let accepted = |report: &Value| report["accepted"].as_f64().expect("a share");
    // A model as small as this one hardly takes up what it read.
    assert!((0.1..=1.0).contains(&accepted(&reports[0])), "{}", reports[0]);
    assert!(reports[0]["tokens_per_verification"].as_f64().is_some_and(|tokens| tokens > 1.1));
}

#[test]
fn a_model_that_is_its_own_draft_is_always_right() {
    let folder = model(STORIES);
    let reports =
        reports(&["--model", &folder, "--generate", "24", "--speculate", "--draft", &folder]);
    let drafted = &reports[3];
    assert_eq!(drafted["text"], "an ordinary story, with a draft model");
    assert_eq!(drafted["accepted"], 1.0, "{drafted}");
    assert!(drafted["tokens_per_verification"].as_f64().is_some_and(|tokens| tokens > 1.5));
}

#[test]
fn drafts_are_right_as_often_as_was_asked() {
    let folder = model(STORIES);
    let of = ["--model", &folder, "--generate", "120", "--speculate", "--accept", "0,0.6,1"];
    let reports = reports(&of);
    let accepted = |report: &Value| report["accepted"].as_f64().expect("a share");
    assert_eq!(reports.len(), 3);
    assert_eq!(accepted(&reports[0]), 0.0, "{}", reports[0]);
    // A share of all that are proposed, also of those behind a wrong one.
    assert!((0.3..0.75).contains(&accepted(&reports[1])), "{}", reports[1]);
    assert_eq!(accepted(&reports[2]), 1.0, "{}", reports[2]);
    assert!(reports[2]["tokens_per_verification"].as_f64().is_some_and(|tokens| tokens > 6.0));
}

#[test]
fn a_shape_has_no_texts_to_speculate_on() {
    let found = setun(&["bench", "--shape", "small", "--speculate"]);
    assert_eq!(found.status, Some(2));
    assert!(found.stderr.contains("--accept measures without one"), "{}", found.stderr);
}

#[test]
fn texts_of_a_schema_are_measured_beside_others() {
    let folder = model(STORIES);
    let reports = reports(&["--model", &folder, "--generate", "24", "--constrained"]);
    let texts: Vec<_> = reports.iter().map(|report| report["text"].clone()).collect();
    assert_eq!(texts, ["greedy", "sampled"]);
    for report in &reports {
        assert_eq!((&report["tokens"], &report["accepted"]), (&24.into(), &Value::Null));
        for rate in ["plain_tokens_per_second", "tokens_per_second"] {
            assert!(number(report, rate) > 0.0, "{report}");
        }
    }
}

#[test]
fn tokens_do_not_depend_on_how_they_are_computed() {
    let folder = model(TINY);
    let hash = |more: &[&str]| {
        let size = ["--model", &folder, "--prompt", "30", "--generate", "8", "--batch", "2"];
        reports(&[&size[..], more].concat())[0]["tokens_hash"].clone()
    };
    let expected = hash(&[]);
    assert_eq!(hash(&["--backend", "scalar"]), expected);
    assert_eq!(hash(&["--threads", "3"]), expected);
    let longer =
        reports(&["--model", &folder, "--prompt", "31", "--generate", "8", "--batch", "2"]);
    assert_ne!(longer[0]["tokens_hash"], expected);
}

/// Operations of a model whose queries, keys and values share an input, with their roles.
const SHARED_INPUT: [&str; 10] = [
    "embed",
    "quantize",
    "ternary_matmul qkv",
    "rope_append",
    "attention",
    "ternary_matmul o",
    "gate",
    "ternary_matmul down",
    "rms_norm",
    "head",
];

/// Operations of a model where each linear layer has a norm of its own.
const OWN_NORMS: [&str; 12] = [
    "embed",
    "rms_norm",
    "quantize",
    "ternary_matmul q",
    "ternary_matmul k",
    "ternary_matmul v",
    "rope_append",
    "attention",
    "ternary_matmul o",
    "gate",
    "ternary_matmul down",
    "head",
];

fn number(object: &Value, field: &str) -> f64 {
    let number = object[field].as_f64().unwrap_or_else(|| panic!("{field} of {object}"));
    assert!(number.is_finite() && number >= 0.0, "{field} is {number}");
    number
}

fn check_phase(phase: &Value, operations: &[&str]) {
    let ops = phase["ops"].as_array().expect("operations");
    let name = |op: &Value| {
        let role = op["role"].as_str().map_or(String::new(), |role| format!(" {role}"));
        format!("{}{role}", op["op"].as_str().expect("a name"))
    };
    assert_eq!(ops.iter().map(name).collect::<Vec<_>>(), operations);
    for op in ops {
        number(op, "ms_per_step");
        number(op, "ms_per_token");
        let reads = number(op, "weight_bytes_per_step") > 0.0;
        assert_eq!(reads, op["op"] != "attention", "{op}");
        let is_product = op["op"] == "ternary_matmul" || op["op"] == "gate";
        let products = op["multiply_adds_per_second"].as_f64();
        assert_eq!(products.is_some_and(|speed| speed > 0.0), is_product, "{op}");
    }
    let shares: f64 = ops.iter().map(|op| number(op, "share")).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert!(number(phase, "jobs_per_token") > 0.0);
    number(phase, "overhead_us_per_token");
}

fn check_densities(phase: &Value, closes_gates: bool) {
    let spread = |field: &str| {
        let [least, mean, most] = ["least", "mean", "most"].map(|at| number(&phase[field], at));
        assert!(0.0 < least && least <= mean && mean <= most && most < 1.0, "{field} of {phase}");
    };
    spread("down_nonzero");
    if closes_gates {
        spread("gates_open");
    } else {
        assert_eq!(phase["gates_open"], Value::Null);
    }
}

#[test]
fn a_profile_names_every_operation_once() {
    let size = ["--prompt", "20", "--generate", "6", "--batch", "1,2", "--threads", "2"];
    for (name, operations) in [(TINY, &SHARED_INPUT[..]), ("llama-rmsnorm-bias/packed", &OWN_NORMS)]
    {
        let folder = model(name);
        let args = [&["--model", &folder], &size[..]].concat();
        let plain = reports(&args);
        let profiled = reports(&[&args[..], &["--profile"]].concat());
        for ((report, plain), batch) in profiled.iter().zip(&plain).zip([1.0, 2.0]) {
            assert_eq!(report["tokens_hash"], plain["tokens_hash"]);
            assert!(plain.get("profile").is_none(), "not asked for");
            let (prefill, decode) = (&report["profile"]["prefill"], &report["profile"]["decode"]);
            check_phase(prefill, operations);
            check_phase(decode, operations);
            check_densities(decode, name == TINY);
            assert!(number(prefill, "tokens") >= 20.0 * batch, "{prefill}");
            let (steps, tokens) = (number(decode, "steps"), number(decode, "tokens"));
            assert!(steps >= 5.0 && (steps..=steps * batch).contains(&tokens), "{decode}");
        }
    }
}

#[test]
fn a_head_is_read_once_a_step_whatever_the_batch() {
    let folder = model(TINY);
    let size = ["--model", &folder, "--prompt", "9", "--generate", "4", "--batch", "1,3"];
    let reports = reports(&[&size[..], &["--profile", "--threads", "1"]].concat());
    let bytes = |report: &Value, op: &str| {
        let ops = report["profile"]["decode"]["ops"].as_array().expect("operations");
        number(ops.iter().find(|line| line["op"] == op).expect(op), "weight_bytes_per_step")
    };
    let bf16_table = 263.0 * 64.0 * 2.0;
    for report in &reports {
        assert!((bytes(report, "head") - bf16_table).abs() < 0.5, "{report}");
    }
    assert!(bytes(&reports[1], "embed") > bytes(&reports[0], "embed"), "a row for each sequence");
}

/// The tiny model: 263 tokens of 64 columns in bf16; 3 layers with one key and value head of 32.
#[test]
fn memory_is_reported_part_by_part() {
    let folder = model(TINY);
    let memory = |more: &[&str]| {
        let size = ["--model", &folder, "--prompt", "20", "--generate", "6"];
        let report = reports(&[&size[..], more].concat()).remove(0);
        let memory = report["memory"].clone();
        let bytes = |part: &str| memory[part].as_u64().expect("bytes");
        let parts = ["body_bytes", "head_bytes", "screen_bytes", "cache_bytes"].map(bytes);
        assert_eq!(bytes("sum_bytes"), parts.iter().sum::<u64>());
        if let Some(peak) = report["peak_rss_bytes"].as_u64() {
            assert!(peak > bytes("sum_bytes"));
            assert!(number(&memory, "peak_by_sum") > 1.0);
        }
        parts
    };
    let blocks = 8 * 32; // positions that a cache has at least
    let cache = blocks * 3 * 2 * 32;
    let [body, head, screen, found] = memory(&["--head", "stored", "--kv", "f32"]);
    assert_eq!((head, screen, found), (263 * 64 * 2, 0, cache * 4));
    let [same, head, screen, found] = memory(&["--head", "screened", "--kv", "f16"]);
    assert_eq!((same, head, found), (body, 263 * 64 * 2, cache * 2));
    assert!(screen >= 263 * 64, "a byte for each element: {screen}");
    let [same, head, screen, _] = memory(&["--head", "int8"]);
    assert_eq!((same, head, screen), (body, 263 * (64 + 4), 0));
}

#[test]
fn candidates_are_reported_where_the_head_is_screened() {
    let folder = model(TINY);
    let size = ["--prompt", "9", "--generate", "11", "--batch", "1,3", "--head", "screened"];
    let args = [&["--model", &folder], &size[..]].concat();
    for (report, batch) in reports(&args).iter().zip([1, 3]) {
        let candidates = &report["candidates"];
        let [median, percentile, most] =
            ["median", "percentile_99", "most"].map(|at| candidates[at].as_u64().expect(at));
        assert!(median <= percentile && percentile <= most && most <= 263, "{candidates}");
        let rows = ["rows", "full_heads"].map(|at| candidates[at].as_u64().expect(at));
        // The first token of each is a prompt's; those that wait for others generate more.
        assert!(rows.iter().sum::<u64>() >= 10 * batch, "{candidates}");
    }
    let text = setun(&[&["bench", "--repeat", "1"], &args[..]].concat()).text();
    assert_eq!(text.matches("\nscreened head: exact logits of ").count(), 2, "{text}");
    assert_eq!(text.matches("\nMB: body ").count(), 2, "{text}");
}

#[test]
fn gates_of_a_random_model_are_closed_at_the_requested_rate() {
    let size = ["--shape", "small", "--prompt", "8", "--generate", "17", "--profile"];
    for (closed, expected) in [(None, 0.5), (Some("0.75"), 0.25)] {
        let closed = closed.map_or(vec![], |share| vec!["--closed", share]);
        let report = &reports(&[&size[..], &closed].concat())[0];
        let open = &report["profile"]["decode"]["gates_open"];
        for at in ["least", "mean", "most"] {
            assert!((number(open, at) - expected).abs() < 0.06, "{open}, not {expected}");
        }
    }
}

#[test]
fn absurd_sizes_and_untimed_levels_are_wrong_usage() {
    for (args, expected) in [
        (&["--batch", "100000"][..], "1..=256"),
        (&["--prompt", "2000000000"], "1..=262144"),
        (&["--generate", "2000000000"], "1..=262144"),
        (&["--repeat", "2000000000"], "1..=1000"),
        (&["--batch", "1,200", "--prompt", "5000"], "expected at most 262144"),
        (&["--closed", "0.5"], "--shape <SHAPE>"),
        (&["--shape", "small", "--closed", "1.5"], "a number from 0 to 1"),
        (&["--backend", "scalar", "--profile"], "level `scalar` does not time its operations"),
    ] {
        setun(&[&["bench"], args].concat()).wrong_usage(expected);
    }
}

#[test]
fn without_json_it_is_a_table() {
    let folder = model(TINY);
    let args = ["bench", "--model", &folder, "--prompt", "5", "--generate", "3", "--repeat", "1"];
    let text = setun(&[&args[..], &["--bandwidth"]].concat()).text();
    assert!(text.contains("median of 1; memory bandwidth "), "{text}");
    assert!(text.contains("prefill tokens/s"), "{text}");
    assert!(!text.contains("ternary_matmul"), "{text}");
    let text = setun(&[&args[..], &["--profile"]].concat()).text();
    for part in [
        "\nbatch 1\nprefill: ",
        "\n\ndecode: ",
        "\nternary_matmul down ",
        "\nopen gates: ",
        "nonzero inputs of down: ",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[cfg(unix)]
#[test]
fn peers_run_in_turn_and_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let peer = |name: &str, script: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("permissions");
        format!("{name}={}", path.display())
    };
    let log = folder.path().join("log");
    let printed =
        r#"[{"n_prompt":7,"n_gen":0,"avg_ts":2.0},{"n_prompt":0,"n_gen":5,"avg_ts":4.0}]"#;
    let good = peer("good", &format!("echo \"$@\" >>{}; echo '{printed}'", log.display()));
    let bad = peer("bad", "echo 'cannot read x.gguf' >&2; exit 3");
    let silent = peer("silent", "echo done");
    let model = model(TINY);
    let size = ["--model", &model, "--prompt", "7", "--generate", "5", "--threads", "1"];

    let report = &reports(&[&size[..], &["--peer", &good, "--peer-model", "x.gguf"]].concat())[0];
    let found = &report["peers"][0];
    assert_eq!((&found["name"], &found["decode_tokens_per_second"]), (&"good".into(), &4.0.into()));
    let ours = report["prefill_tokens_per_second"].as_f64().expect("a speed");
    let ratio = found["prefill_ratio"].as_f64().expect("a ratio");
    assert!((ratio * 2.0 / ours - 1.0).abs() < 1e-9, "{ratio} and {ours}");
    let asked = std::fs::read_to_string(&log).expect("the peer ran");
    assert_eq!(asked, "-m x.gguf -r 1 -o json -p 7 -n 5 -t 1\n");

    for (peer, expected) in [
        (&*bad, "the peer `bad` failed: exit status: 3: cannot read x.gguf"),
        (&*silent, "the peer `silent` failed: its output is not the JSON of llama-bench"),
        ("none=/nowhere/at/all", "the peer `none` failed: cannot start `/nowhere/at/all`"),
    ] {
        let args = [&["bench"], &size[..], &["--peer", peer, "--peer-model", "x.gguf"]].concat();
        let error = setun(&args).failure();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(setun(&[&["bench"], &size[..], &["--peer", &good]].concat()).status, Some(2));
}

//! `setun run`

use std::io::Read;

use serde_json::Value;

use crate::support::{
    PROMPT, STORIES, TINY, command, copy_without, model, setun, setun_reading, story,
};

fn golden(prompt: &str) -> (String, usize) {
    let json = std::fs::read(format!("{}/golden.json", model(STORIES))).expect("golden.json");
    let json: Value = serde_json::from_slice(&json).expect("golden.json");
    let text = json[prompt]["text"].as_str().expect("a text").to_owned();
    (text, json[prompt]["greedy_ids"].as_array().expect("tokens").len())
}

#[test]
fn greedy_text_is_that_of_the_reference() {
    let stories = model(STORIES);
    for (name, prompt) in [("once", PROMPT), ("dog", "The little dog was sad because")] {
        let (text, tokens) = golden(name);
        let tokens = tokens.to_string();
        let args =
            ["run", "--model", &stories, "--temperature", "0", "--max-tokens", &tokens, prompt];
        // The reference decodes its tokens without the prompt, which loses a leading space.
        let found = setun(&args).text();
        assert_eq!(found.strip_prefix(' ').unwrap_or(&found), format!("{text}\n"), "{name}");
    }
}

#[test]
fn a_draft_changes_no_text() {
    let stories = model(STORIES);
    let run =
        |more: &[&str]| story(&["--seed", "4", "--temperature", "1", "--max-tokens", "40"], more);
    let text = run(&[]).text();
    assert_eq!(run(&["--draft", &stories]).text(), text);
    assert_eq!(run(&["--draft", &stories, "--lookahead", "2", "--n", "1"]).text(), text);
    let error = run(&["--draft", &model(TINY)]).failure();
    assert!(error.contains("the vocabulary of a draft"), "{error}");
}

#[test]
fn an_image_of_the_weights_changes_no_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("weights.image");
    let image = image.to_str().expect("a name");
    let run = |more: &[&str]| story(&["--backend", "cpu", "--max-tokens", "20"], more);
    let expected = run(&[]).text();
    for place in ["written", "mapped"] {
        let draft = model(STORIES); // has none of its own
        assert_eq!(run(&["--weight-image", image, "--draft", &draft]).text(), expected, "{place}");
    }
    assert!(std::fs::metadata(image).expect("the image").len() > 100_000);
    let error = run(&["--weight-image", folder.path().to_str().expect("a name")]).failure();
    assert!(error.contains("it is a folder, expected a file"), "{error}");
    let error = setun(&["run", "--backend", "cpu", "--weight-image", image, PROMPT]).failure();
    assert!(error.contains("`--weight-image`"), "{error}");
    assert!(error.contains("a model in files of this machine"), "{error}");
}

#[test]
fn a_text_satisfies_its_constraint() {
    let run = |more: &[&str]| story(&["--seed", "4", "--temperature", "1"], more);
    let schema = r#"{"type": "array", "items": {"type": "boolean"}, "maxItems": 4}"#;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("schema.json");
    std::fs::write(&file, schema).expect("a file");
    let text = run(&["--json-schema", schema]).text();
    let value: Vec<bool> = serde_json::from_str(&text).expect("JSON");
    assert!(value.len() <= 4, "{text}");
    assert_eq!(run(&["--json-schema", file.to_str().expect("UTF-8")]).text(), text);
    assert_eq!(run(&["--json-schema", schema, "--lookahead", "8"]).text(), text);

    let grammar = folder.path().join("answer.gbnf");
    std::fs::write(&grammar, "root ::= \"yes\" | \"no\"\n").expect("a file");
    let answer = run(&["--grammar", grammar.to_str().expect("UTF-8")]).text();
    assert!(["yes\n", "no\n"].contains(&answer.as_str()), "{answer}");
    assert!(["a\n", "b\n"].contains(&run(&["--choice", "a", "--choice", "b"]).text().as_str()));

    let error = run(&["--json-schema", r#"{"unevaluatedItems": false}"#]).failure();
    assert!(error.contains("`unevaluatedItems`"), "{error}");
    let error = run(&["--regex", &"a?".repeat(720)]).failure();
    assert!(error.contains("the grammar is too complex: optional parts in sequence"), "{error}");
    for (more, words) in [
        (&["--json-schema", "{"][..], "is no JSON"),
        (&["--regex", "a", "--json-object"], "cannot be used with"),
    ] {
        run(more).wrong_usage(words);
    }
}

#[test]
fn what_is_not_to_be_shown_is_replaced_or_ends_the_text() {
    let run = |more: &[&str]| story(&["--temperature", "0", "--max-tokens", "60"], more);
    let plain = run(&[]).text();
    let found = run(&["--filter-regex", "the", "--filter-action", "replace:<the>"]).text();
    assert_eq!(found, plain.replace("the", "<the>"));
    let found = run(&[&["--filter-word", "e"], &["--filter-anywhere"][..]].concat()).text();
    assert_eq!(found, plain.replace(['e', 'E'], "***"));
    let at = plain.find(" the ").expect("a story");
    let stop = ["--filter-word", "THE", "--filter-action", "stop"];
    assert_eq!(run(&stop).text(), format!("{}\n", &plain[..=at]));
    let events = run(&[&stop[..], &["--json"]].concat()).text();
    assert!(events.contains(r#""finish_reason":"content_filter""#), "{events}");

    let error = run(&["--filter-word", "a", "--filter-regex", "b(c"]).failure();
    let expected =
        "pattern 1 of the filter, `b(c`, cannot be looked for: unclosed group, at character 2";
    assert!(error.contains(expected), "{error}");
    run(&["--filter-action", "drop"]).wrong_usage("expected `stop`");
}

#[test]
fn a_template_with_its_variables_is_a_prompt() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--temperature", "0", "--max-tokens", "12"];
    let run = |more: &[&str]| setun(&[&args[..], more].concat());
    let expected = run(&["Ada, Alan: Once upon a time"]).text();
    let text =
        "{% for name in names %}{{ name }}{{ ', ' if not loop.last }}{% endfor %}: {{ begin }}";
    let values = ["--var", "begin=Once upon a time", "--var-json", r#"names=["Ada", "Alan"]"#];
    assert_eq!(run(&[&["--template", text], &values[..]].concat()).text(), expected);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("story.jinja");
    std::fs::write(&file, format!("{text}\n")).expect("a file");
    let file = file.to_str().expect("UTF-8");
    assert_eq!(run(&[&["--template", file], &values[..]].concat()).text(), expected);

    let error = run(&["--template", file, "--var", "begin=a"]).failure();
    assert!(error.contains("story.jinja` needs the variable `names` at line 1"), "{error}");
    for wrong in [
        &["--var", "a=b", PROMPT][..],
        &["--template", text, PROMPT],
        &["--template", text, "--var", "a"],
    ] {
        run(wrong).wrong_usage("--");
    }
}

#[test]
fn standard_input_is_a_prompt() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--temperature", "0", "--max-tokens", "12"];
    let expected = setun(&[&args[..], &[PROMPT]].concat()).text();
    for end in ["", "\n", "\r\n"] {
        let found = setun_reading(&args, format!("{PROMPT}{end}").as_bytes()).text();
        assert_eq!(found, expected, "ends with {end:?}");
    }
    let error = setun_reading(&args, b"Once \xff").failure();
    assert!(error.contains("not UTF-8: byte 5"), "{error}");
}

#[test]
fn a_seed_gives_the_same_text_again_anywhere() {
    let text = |seed: &str, more: &[&str]| {
        let filters =
            ["--temperature", "1.2", "--top-k", "50", "--top-p", "0.95", "--min-p", "0.01"];
        story(&[&filters[..], &["--max-tokens", "40", "--seed", seed]].concat(), more).text()
    };
    let expected = text("7", &[]);
    assert_eq!(text("7", &[]), expected);
    assert_eq!(text("7", &["--backend", "scalar"]), expected);
    assert_eq!(text("7", &["--threads", "3"]), expected);
    assert_ne!(text("8", &[]), expected);
}

#[test]
fn events_join_to_the_text() {
    let args = ["--seed", "5", "--max-tokens", "30"];
    let plain = story(&args, &[]).text();
    let mut events = story(&args, &["--json"]).lines();
    let done = events.pop().expect("a last event");
    assert!(events.iter().all(|event| event["type"] == "text" && event["token"].is_u64()));
    let joined: String = events.iter().map(|event| event["text"].as_str().expect("text")).collect();
    assert_eq!(format!("{joined}\n"), plain);
    assert_eq!(done["type"], "done");
    assert_eq!(done["finish_reason"], "length");
    assert_eq!(done["usage"]["completion_tokens"], 30);
    assert_eq!(done["seed"], 5);
    assert_eq!(done["backend"], "cpu");
    assert_eq!(done["model"], STORIES);
    assert!(done["timings"]["tokens_per_second"].is_f64());
}

#[test]
fn a_stop_string_ends_the_text_before_it() {
    let (text, _) = golden("once");
    let stop = ["--stop", "never said", "--stop", "Lily"];
    let found = story(&["--temperature", "0", "--max-tokens", "60"], &stop).text();
    let (before, _) = text.split_once("Lily").expect("her name");
    assert_eq!(found, format!("{before}\n"));
}

#[test]
fn verbose_names_the_seed_on_standard_error() {
    let outcome = story(&["--max-tokens", "3", "--seed", "11"], &["-v"]);
    assert_eq!(outcome.status, Some(0));
    assert!(outcome.stderr.contains("seed 11"), "{}", outcome.stderr);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--temperature", "1", "--max-tokens", "400", PROMPT];
    let mut child = command(&args).spawn().expect("the command is built");
    let mut first = [0; 1];
    child.stdout.take().expect("a pipe").read_exact(&mut first).expect("a byte");
    let output = child.wait_with_output().expect("its end"); // the pipe is closed
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_closed_standard_error_is_no_failure() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--max-tokens", "3", "-v", PROMPT];
    for (args, status) in [(&args[..], 0), (&["run", "--model", "no-such-model", PROMPT], 1)] {
        let mut child = command(args).spawn().expect("the command is built");
        drop(child.stderr.take());
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
    }
}

/// A penalty at the end of what floats hold overflows once a token is unlikely enough.
#[test]
fn an_error_after_some_text_has_a_line_of_its_own() {
    let outcome = story(&["--temperature", "0"], &["--repetition-penalty", "5e37"]);
    assert_eq!(outcome.stdout, ", there was the bear\n");
    let error = outcome.failure();
    assert!(error.contains("the logit of token 378 is -inf"), "{error}");
}

#[test]
fn banned_texts_and_repetitions_do_not_come() {
    let text = |more: &[&str]| story(&["--temperature", "0"], more).text();
    assert!(golden("once").0.contains("Lily"));
    let found = text(&["--max-tokens", "60", "--bad-words", "Lily"]);
    assert!(!found.contains("Lily") && found.len() > 60, "{found}");

    let repeats = |more: &[&str]| {
        let lines = text(&[&["--json", "--max-tokens", "300"], more].concat());
        let token =
            |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["token"].as_u64();
        let tokens: Vec<u64> = lines.lines().filter_map(token).collect();
        let mut runs: Vec<&[u64]> = tokens.windows(3).collect();
        let count = runs.len();
        runs.sort_unstable();
        runs.dedup();
        (count, count - runs.len())
    };
    assert!(repeats(&[]).1 > 0);
    let (count, repeated) = repeats(&["--no-repeat-ngram", "3"]);
    assert!(count > 100 && repeated == 0, "{repeated} of {count}");
}

#[test]
fn no_share_of_the_probability_leaves_the_likeliest_token() {
    let text = |more: &[&str]| story(&["--max-tokens", "12"], more).text();
    for top_p in ["0", "0.000001"] {
        let found = text(&["--temperature", "1.5", "--top-p", top_p]);
        assert_eq!(found, text(&["--temperature", "0"]), "{top_p}");
    }
}

#[test]
fn a_model_without_tokenizer_says_so() {
    let (_keep, folder) = copy_without(STORIES, &["tokenizer.json"]);
    let error = setun(&["run", "--model", &folder.to_string_lossy(), PROMPT]).failure();
    assert!(error.contains("has no tokenizer: expected tokenizer.json"), "{error}");
}

#[cfg(feature = "embedded-model")]
#[test]
fn without_a_model_the_embedded_one_runs() {
    let args = ["run", "--temperature", "0", "--max-tokens", "24", PROMPT];
    let text = setun(&args).text();
    assert!(text.split_whitespace().count() > 8, "{text}");
}

#[test]
fn a_profile_and_a_trace_show_where_the_time_went() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.json");
    let run = |more: &[&str]| story(&["--temperature", "0", "--max-tokens", "4"], more);
    let plain = run(&[]).text();
    let found = run(&["--profile", "--trace", file.to_str().expect("UTF-8")]);
    assert_eq!((found.status, &found.stdout), (Some(0), &plain));
    for words in ["prefill: 1 step of", "decode: 3 steps of", "ternary_matmul qkv", "attention"] {
        assert!(found.stderr.contains(words), "{}", found.stderr);
    }
    let trace: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("a trace")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    assert_eq!(events.iter().filter(|event| event["name"] == "decode").count(), 3);

    let scalar = run(&["--trace", "-", "--backend", "scalar"]);
    assert_eq!((scalar.status, scalar.stdout), (Some(2), plain));
    assert!(scalar.stderr.contains("does not time its operations"), "{}", scalar.stderr);
}

#[test]
fn options_win_over_the_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("setun.toml");
    let config = "[device]\nbackends = [\"scalar\"]\n[generation]\nmax_tokens = 3\nseed = 7\n";
    std::fs::write(&file, config).expect("a file");
    let path = file.to_str().expect("UTF-8");
    let run = |more: &[&str]| story(&["--config", path, "-v"], more).stderr;
    let reported = run(&[]);
    assert!(
        reported.contains("(scalar), 3 tokens, first after") && reported.ends_with("seed 7\n"),
        "{reported}"
    );
    let reported = run(&["--backend", "cpu", "--max-tokens", "2", "--seed", "8", "--n", "2"]);
    assert!(!reported.contains("scalar") && reported.contains(", 2 tokens"), "{reported}");
    assert!(reported.ends_with("seed 8\n"), "{reported}");

    std::fs::write(&file, "[device]\nbackend = \"cpu\"\n").expect("a file");
    let reported = run(&[]);
    assert!(reported.contains("setun.toml`, line 2: unknown option `backend`"), "{reported}");
}

#[test]
fn rust_log_turns_the_log_on() {
    let args =
        ["run", "--model", &model(STORIES), "--temperature", "0", "--max-tokens", "2", PROMPT];
    let silent = setun(&args);
    assert_eq!(silent.stderr, "");
    let output = command(&args).env("RUST_LOG", "debug").output().expect("the command runs");
    let log = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(log.contains("setun") && log.contains("close"), "{log}");
    assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), silent.stdout);
}

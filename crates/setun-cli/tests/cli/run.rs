//! `setun run`

use std::io::Read;

use serde_json::Value;

use crate::support::{STORIES, command, copy_without, model, setun, setun_reading};

const PROMPT: &str = "Once upon a time";

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
fn a_text_has_the_form_that_is_asked_for() {
    let stories = model(STORIES);
    let run = |more: &[&str]| {
        let args = ["run", "--model", &stories, "--seed", "4", "--temperature", "1"];
        setun(&[&args[..], more, &[PROMPT]].concat())
    };
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
    for (more, words) in [
        (&["--json-schema", "{"][..], "is no JSON"),
        (&["--regex", "a", "--json-object"], "cannot be used with"),
    ] {
        let outcome = run(more);
        assert_eq!(outcome.status, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
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
    let stories = model(STORIES);
    let text = |seed: &str, more: &[&str]| {
        let args = [
            "run",
            "--model",
            &stories,
            "--temperature",
            "1.2",
            "--top-k",
            "50",
            "--top-p",
            "0.95",
            "--min-p",
            "0.01",
            "--max-tokens",
            "40",
            "--seed",
            seed,
            PROMPT,
        ];
        setun(&[&args[..], more].concat()).text()
    };
    let expected = text("7", &[]);
    assert_eq!(text("7", &[]), expected);
    assert_eq!(text("7", &["--backend", "scalar"]), expected);
    assert_eq!(text("7", &["--threads", "3"]), expected);
    assert_ne!(text("8", &[]), expected);
}

#[test]
fn events_join_to_the_text() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--seed", "5", "--max-tokens", "30", PROMPT];
    let plain = setun(&args).text();
    let lines = setun(&[&args[..], &["--json"]].concat()).text();
    let mut events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let done = events.pop().expect("a last event");
    assert!(events.iter().all(|event| event["type"] == "text" && event["token"].is_u64()));
    let joined: String = events.iter().map(|event| event["text"].as_str().expect("text")).collect();
    assert_eq!(format!("{joined}\n"), plain);
    assert_eq!(done["type"], "done");
    assert_eq!(done["finish_reason"], "length");
    assert_eq!(done["usage"]["generated_tokens"], 30);
    assert_eq!(done["seed"], 5);
    assert_eq!(done["backend"], "cpu");
    assert_eq!(done["model"], STORIES);
    assert!(done["timings"]["tokens_per_second"].is_f64());
}

#[test]
fn a_stop_string_ends_the_text_before_it() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--temperature", "0", "--max-tokens", "60", PROMPT];
    let (text, _) = golden("once");
    let stop = ["--stop", "never said", "--stop", "Lily"];
    let found = setun(&[&args[..], &stop].concat()).text();
    let (before, _) = text.split_once("Lily").expect("her name");
    assert_eq!(found, format!("{before}\n"));
}

#[test]
fn verbose_names_the_seed_on_standard_error() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--max-tokens", "3", "--seed", "11", "-v", PROMPT];
    let outcome = setun(&args);
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
fn nobody_on_standard_error_is_no_failure() {
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
    let args = ["run", "--model", &model(STORIES), "--temperature", "0", PROMPT];
    let outcome = setun(&[&args[..], &["--repetition-penalty", "5e37"]].concat());
    assert_eq!(outcome.stdout, ", there was the bear\n");
    let error = outcome.failure();
    assert!(error.contains("the logit of token 378 is -inf"), "{error}");
}

#[test]
fn banned_texts_and_repetitions_do_not_come() {
    let args = ["run", "--model", &model(STORIES), "--temperature", "0", PROMPT];
    let text = |more: &[&str]| setun(&[&args[..], more].concat()).text();
    assert!(golden("once").0.contains("Lily"));
    let found = text(&["--max-tokens", "60", "--ban", "Lily"]);
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
fn samples_follow_each_other_and_the_first_is_the_text_alone() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--temperature", "1", "--seed", "5"];
    let args = [&args[..], &["--max-tokens", "90", PROMPT]].concat();
    let alone = setun(&args).text();
    let outcome = setun(&[&args[..], &["--samples", "3"]].concat());
    assert_eq!(outcome.stderr, "sample 1 of 3:\nsample 2 of 3:\nsample 3 of 3:\n");
    let all = outcome.stdout;
    let others = all.strip_prefix(&alone).expect("the first is the text alone");

    let lines = setun(&[&args[..], &["--samples", "3", "--json"]].concat()).text();
    let mut texts = [const { String::new() }; 3];
    let mut ends = vec![];
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let index = usize::try_from(event["index"].as_u64().expect("a number")).expect("small");
        match event["text"].as_str() {
            Some(text) => texts[index].push_str(text),
            None => ends.push((index, event["usage"]["generated_tokens"].as_u64())),
        }
    }
    ends.sort_unstable();
    assert_eq!(ends, [(0, Some(90)), (1, Some(90)), (2, Some(90))]);
    let [first, second, third] = &texts;
    assert_eq!(format!("{first}\n"), alone);
    assert_eq!(format!("{second}\n{third}\n"), others);
    assert!(first != second && second != third, "{texts:?}");
}

#[test]
fn beams_give_the_best_texts_with_their_scores() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--max-tokens", "20", "--beams", "4", PROMPT];
    let best = setun(&args);
    assert!(best.stderr.starts_with("text 1 of 1, score -0."), "{}", best.stderr);
    let three = [&args[..], &["--best", "3"]].concat();
    let outcome = setun(&three);
    assert!(outcome.stdout.starts_with(&best.stdout), "the best is the first");
    assert_eq!(outcome.stderr.lines().count(), 3, "{}", outcome.stderr);

    let lines = setun(&[&three[..], &["--json"]].concat()).text();
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (done, beams) = lines.split_last().expect("lines");
    assert_eq!((&done["type"], beams.len()), (&"done".into(), 3));
    let mut texts = String::new();
    for (index, beam) in beams.iter().enumerate() {
        assert_eq!((&beam["type"], &beam["index"]), (&"beam".into(), &index.into()));
        texts += beam["text"].as_str().expect("a text");
        texts.push('\n');
    }
    assert_eq!(texts, outcome.stdout);
    let scores: Vec<_> = beams.iter().filter_map(|beam| beam["score"].as_f64()).collect();
    assert!(scores.len() == 3 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");

    let groups = ["--beam-groups", "2", "--diversity-penalty", "2", "--length-penalty", "-0.5"];
    let groups = setun(&[&three[..], &groups, &["--early-stopping", "never"]].concat());
    assert_eq!(groups.status, Some(0), "{}", groups.stderr);
    assert_ne!(groups.stdout, outcome.stdout);
    for (wrong, status) in [
        (&["--beam-groups", "3", "--diversity-penalty", "2"][..], 1),
        (&["--best", "5"], 1),
        (&["--beam-groups", "2"], 2),
        (&["--early-stopping", "soon"], 2),
        (&["--samples", "2"], 2),
    ] {
        let error = setun(&[&args[..], wrong].concat());
        assert_eq!(error.status, Some(status), "{wrong:?}: {}", error.stderr);
    }
    let alone = setun(&["run", "--model", &stories, "--best", "2", PROMPT]);
    assert_eq!(alone.status, Some(2), "{}", alone.stderr);
}

/// The tests of the npm package read the same file.
#[cfg(feature = "embedded-model")]
#[test]
fn samples_of_the_embedded_model_are_the_same_everywhere() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/embedded-samples.json");
    let json = std::fs::read(path).expect("the fixture");
    let golden: Value = serde_json::from_slice(&json).expect("JSON");
    let (prompt, texts) = (golden["prompt"].as_str(), golden["texts"].as_array());
    let (prompt, texts) = (prompt.expect("a text"), texts.expect("texts"));
    let [seed, temperature, tokens] =
        ["seed", "temperature", "max_tokens"].map(|name| golden[name].to_string());
    let args = ["run", "--seed", &seed, "--temperature", &temperature, "--max-tokens", &tokens];
    let samples = texts.len().to_string();
    let found = setun(&[&args[..], &["--samples", &samples, prompt]].concat()).stdout;
    let expected = texts.iter().map(|text| format!("{}\n", text.as_str().expect("a text")));
    assert_eq!(found, expected.collect::<String>());
}

#[test]
fn one_sample_is_numbered_only_if_samples_were_asked_for() {
    let args = ["run", "--model", &model(STORIES), "--max-tokens", "2", "--json", PROMPT];
    let plain = setun(&args).text();
    let one = setun(&[&args[..], &["--samples", "1"]].concat());
    assert_eq!(one.stderr, "");
    assert!(!plain.contains("\"index\""), "{plain}");
    assert!(one.text().lines().all(|line| line.ends_with("\"index\":0}")));
    let error = setun(&[&args[..], &["--samples", "0"]].concat());
    assert_eq!(error.status, Some(2), "{}", error.stderr);
}

#[test]
fn a_prompt_is_told_and_a_full_context_goes_on() {
    let stories = model(STORIES);
    let args = ["run", "--model", &stories, "--temperature", "0", "--max-tokens", "3", PROMPT];
    let plain = setun(&args).text();
    let echoed = setun(&[&args[..], &["--echo"]].concat()).text();
    assert_eq!(echoed.trim_start(), format!("{PROMPT}{plain}"));
    let lines = setun(&[&args[..], &["--echo", "--top-logprobs", "2", "--json"]].concat()).text();
    let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["type"], "prompt");
    let last = first["tokens"].as_array().and_then(|tokens| tokens.last()).expect("tokens");
    assert_eq!(last["top_logprobs"].as_array().map(Vec::len), Some(2), "{last}");

    // 512 positions, and an end token that may not come.
    let args = ["run", "--model", &stories, "--temperature", "0", "--json", "--min-tokens", "600"];
    let args = [&args[..], &["--max-tokens", "600", PROMPT]].concat();
    let generated = |way: &[&str]| {
        let lines = setun(&[&args[..], way].concat()).text();
        let done: Value =
            serde_json::from_str(lines.lines().last().expect("an end")).expect("JSON");
        done["usage"]["generated_tokens"].as_u64()
    };
    assert!(generated(&[]).is_some_and(|count| count < 512));
    for way in ["middle", "window"] {
        assert_eq!(generated(&["--when-full", way]), Some(600), "{way}");
    }
}

#[test]
fn a_deadline_ends_the_text_with_what_there_is() {
    let args = ["run", "--model", &model(STORIES), "--json", "--deadline", "0", PROMPT];
    let lines = setun(&args).text();
    let done: Value = serde_json::from_str(lines.lines().last().expect("an end")).expect("JSON");
    assert_eq!(done["finish_reason"], "deadline");
    assert_eq!(
        setun(&["run", "--model", &model(STORIES), "--deadline", "-1", PROMPT]).status,
        Some(2)
    );
}

#[test]
fn no_share_of_the_probability_leaves_the_likeliest_token() {
    let args = ["run", "--model", &model(STORIES), "--max-tokens", "12", PROMPT];
    let greedy = setun(&[&args[..], &["--temperature", "0"]].concat()).text();
    for top_p in ["0", "0.000001"] {
        let args = [&args[..], &["--temperature", "1.5", "--top-p", top_p]].concat();
        assert_eq!(setun(&args).text(), greedy, "{top_p}");
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
fn without_a_model_it_tells_a_story() {
    let args = ["run", "--temperature", "0", "--max-tokens", "24", PROMPT];
    let text = setun(&args).text();
    assert!(text.split_whitespace().count() > 8, "{text}");
}

//! `setun run` of several texts, and of what is told beside a text.

use serde_json::Value;

use crate::support::{STORIES, model, setun};

const PROMPT: &str = "Once upon a time";

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
    let args = ["run", "--model", &stories, "--max-tokens", "20", "--num-beams", "4", PROMPT];
    let best = setun(&args);
    assert!(best.stderr.starts_with("text 1 of 1, score -0."), "{}", best.stderr);
    let three = [&args[..], &["--num-return-sequences", "3"]].concat();
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

    let groups = ["--num-beam-groups", "2", "--diversity-penalty", "2", "--length-penalty", "-0.5"];
    let groups = setun(&[&three[..], &groups, &["--early-stopping", "never"]].concat());
    assert_eq!(groups.status, Some(0), "{}", groups.stderr);
    assert_ne!(groups.stdout, outcome.stdout);
    for (wrong, status) in [
        (&["--num-beam-groups", "3", "--diversity-penalty", "2"][..], 1),
        (&["--num-return-sequences", "5"], 1),
        (&["--num-beam-groups", "2"], 2),
        (&["--early-stopping", "soon"], 2),
        (&["--samples", "2"], 2),
    ] {
        let error = setun(&[&args[..], wrong].concat());
        assert_eq!(error.status, Some(status), "{wrong:?}: {}", error.stderr);
    }
    let alone = setun(&["run", "--model", &stories, "--num-return-sequences", "2", PROMPT]);
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

/// The tests of the npm package read the same file.
#[cfg(feature = "embedded-model")]
#[test]
fn beams_of_the_embedded_model_are_the_same_everywhere() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/embedded-beams.json");
    let json = std::fs::read(path).expect("the fixture");
    let golden: Vec<Value> = serde_json::from_slice(&json).expect("JSON");
    for case in &golden {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let given = case["arguments"].as_array().expect("arguments").iter().map(text);
        let args: Vec<_> = given.chain(["--json".into(), text(&case["prompt"])]).collect();
        let args: Vec<_> = ["run"].into_iter().chain(args.iter().map(String::as_str)).collect();
        let lines = setun(&args).text();
        let found = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let found = found.filter(|line| line["type"] == "beam").map(|mut beam| {
            let members = beam.as_object_mut().expect("an object");
            members.retain(|name, _| name != "type" && name != "index");
            beam
        });
        assert_eq!(Some(&found.collect()), case["texts"].as_array(), "{args:?}");
    }
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
    let echoed = setun(&[&args[..], &["--prompt-logprobs"]].concat()).text();
    assert_eq!(echoed.trim_start(), format!("{PROMPT}{plain}"));
    let lines =
        setun(&[&args[..], &["--prompt-logprobs", "--top-logprobs", "2", "--json"]].concat())
            .text();
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
    for way in ["truncate-middle", "sliding-window"] {
        assert_eq!(generated(&["--context-overflow", way]), Some(600), "{way}");
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

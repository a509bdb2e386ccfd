//! `setun run` of several texts, and of what is reported beside a text.

use serde_json::Value;

use crate::support::{PROMPT, setun, story};

#[test]
fn samples_follow_each_other_and_the_first_is_the_text_alone() {
    let run =
        |more: &[&str]| story(&["--temperature", "1", "--seed", "5", "--max-tokens", "90"], more);
    let alone = run(&[]).text();
    let outcome = run(&["--n", "3"]);
    assert_eq!(outcome.stderr, "sample 1 of 3:\nsample 2 of 3:\nsample 3 of 3:\n");
    let all = outcome.stdout;
    let others = all.strip_prefix(&alone).expect("the first is the text alone");

    let mut texts = [const { String::new() }; 3];
    let mut ends = vec![];
    for event in run(&["--n", "3", "--json"]).lines() {
        let index = usize::try_from(event["index"].as_u64().expect("a number")).expect("small");
        match event["text"].as_str() {
            Some(text) => texts[index].push_str(text),
            None => ends.push((index, event["usage"]["completion_tokens"].as_u64())),
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
    let run = |more: &[&str]| story(&["--max-tokens", "20", "--num-beams", "4"], more);
    let three = |more: &[&str]| run(&[&["--num-return-sequences", "3"], more].concat());
    let best = run(&[]);
    assert!(best.stderr.starts_with("text 1 of 1, score -0."), "{}", best.stderr);
    let outcome = three(&[]);
    assert!(outcome.stdout.starts_with(&best.stdout), "the best is the first");
    assert_eq!(outcome.stderr.lines().count(), 3, "{}", outcome.stderr);

    let lines = three(&["--json"]).lines();
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
    let groups = three(&[&groups[..], &["--early-stopping", "never"]].concat());
    assert_eq!(groups.status, Some(0), "{}", groups.stderr);
    assert_ne!(groups.stdout, outcome.stdout);
    for (wrong, status) in [
        (&["--num-beam-groups", "3", "--diversity-penalty", "2"][..], 1),
        (&["--num-return-sequences", "5"], 1),
        (&["--num-beam-groups", "2"], 2),
        (&["--early-stopping", "soon"], 2),
        (&["--n", "2"], 2),
    ] {
        let error = run(wrong);
        assert_eq!(error.status, Some(status), "{wrong:?}: {}", error.stderr);
    }
    story(&[], &["--num-return-sequences", "2"]).wrong_usage("--num-beams");
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
    let found = setun(&[&args[..], &["--n", &samples, prompt]].concat()).stdout;
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
        let found = setun(&args).lines().into_iter();
        let found = found.filter(|line| line["type"] == "beam").map(|mut beam| {
            let members = beam.as_object_mut().expect("an object");
            members.retain(|name, _| name != "type" && name != "index");
            beam
        });
        assert_eq!(Some(&found.collect()), case["texts"].as_array(), "{args:?}");
    }
}

#[test]
fn one_sample_is_numbered_only_if_samples_were_requested() {
    let run = |more: &[&str]| story(&["--max-tokens", "2", "--json"], more);
    let plain = run(&[]).text();
    let one = run(&["--n", "1"]);
    assert_eq!(one.stderr, "");
    assert!(!plain.contains("\"index\""), "{plain}");
    assert!(one.text().lines().all(|line| line.ends_with("\"index\":0}")));
    run(&["--n", "0"]).wrong_usage("1..=1024");
}

#[test]
fn prompt_logprobs_are_reported_and_a_full_context_continues() {
    let run = |more: &[&str]| story(&["--temperature", "0", "--max-tokens", "3"], more);
    let plain = run(&[]).text();
    let echoed = run(&["--prompt-logprobs"]).text();
    assert_eq!(echoed.trim_start(), format!("{PROMPT}{plain}"));
    let first = &run(&["--prompt-logprobs", "--top-logprobs", "2", "--json"]).lines()[0];
    assert_eq!(first["type"], "prompt");
    let last = first["tokens"].as_array().and_then(|tokens| tokens.last()).expect("tokens");
    assert_eq!(last["top_logprobs"].as_array().map(Vec::len), Some(2), "{last}");

    // 512 positions, and an end token that may not come.
    let args = ["--temperature", "0", "--json", "--min-tokens", "600", "--max-tokens", "600"];
    let generated = |way: &[&str]| story(&args, way).json()["usage"]["completion_tokens"].as_u64();
    assert!(generated(&[]).is_some_and(|count| count < 512));
    for way in ["truncate-middle", "sliding-window"] {
        assert_eq!(generated(&["--context-overflow", way]), Some(600), "{way}");
    }
}

#[test]
fn a_deadline_ends_the_text_with_what_there_is() {
    assert_eq!(story(&["--json"], &["--timeout", "0"]).json()["finish_reason"], "timeout");
    story(&[], &["--timeout", "-1"]).wrong_usage("--timeout");
}

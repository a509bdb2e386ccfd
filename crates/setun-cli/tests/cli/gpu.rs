//! The system's Vulkan device, in a build that reaches it.

use crate::support::{STORIES, TINY, model, setun};

const PROMPT: &str = "Once upon a time";

#[test]
fn a_gpu_is_listed_and_not_chosen() {
    let devices = setun(&["devices", "--json"]).text();
    let devices: serde_json::Value = serde_json::from_str(&devices).expect("JSON");
    let found = devices.as_array().expect("devices").iter().find(|info| info["device"] == "vulkan");
    let found = found.expect("a Vulkan device");
    assert_eq!(found["chosen"], false);
    assert!(!found["level"].as_str().expect("a name").is_empty());
}

/// Whether tokens are the reference's is told with their margins, in the tests of whole models.
#[test]
fn a_gpu_tells_the_story_of_the_processor() {
    let stories = model(STORIES);
    let run = |backend: &str, more: &[&str]| {
        let args = ["run", "--model", &stories, "--temperature", "0", "--backend", backend];
        setun(&[&args[..], more, &[PROMPT]].concat())
    };
    let length = ["--max-tokens", "12"];
    assert_eq!(run("vulkan", &length).text(), run("cpu", &length).text());
    let json = run("vulkan", &["--max-tokens", "2", "--json"]).text();
    let done: serde_json::Value =
        serde_json::from_str(json.lines().last().expect("a line")).expect("JSON");
    assert_eq!(done["backend"], "vulkan");
    let refused = run("vulkan", &["--head", "screened"]).failure();
    assert!(refused.contains("[bad-option]") && refused.contains("stored or int8"), "{refused}");
}

#[test]
fn samples_are_those_of_the_processor() {
    let stories = model(STORIES);
    let run = |backend| {
        let args = ["run", "--model", &stories, "--backend", backend, "--seed", "3"];
        let sampling = ["--temperature", "0.8", "--top-k", "20", "--max-tokens", "12", PROMPT];
        setun(&[&args[..], &sampling].concat()).text()
    };
    assert_eq!(run("vulkan"), run("cpu"));
}

#[test]
fn its_launches_are_listed() {
    let args = ["inspect", &model(TINY), "--plan", "--backend", "vulkan"];
    let text = setun(&args).text();
    for name in ["ternary_matmul", "attention", "bytes of weights"] {
        assert!(text.contains(name), "{text}");
    }
    let report = setun(&[&args[..], &["--json"]].concat()).text();
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let launches = report["launches"]["launches"].as_array().expect("launches");
    let always = launches.iter().filter(|launch| launch["steps"] == "all").count();
    let layers = report["config"]["num_hidden_layers"].as_u64().expect("layers");
    assert!(always as u64 <= 6 * layers + 5, "{always} launches for {layers} layers");
}

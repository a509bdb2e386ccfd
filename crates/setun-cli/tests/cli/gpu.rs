//! The system's Vulkan device, in a build that reaches it.

use crate::support::{setun, story};

#[test]
fn a_gpu_is_listed_and_not_chosen() {
    let devices = setun(&["devices", "--json"]).json();
    let found = devices.as_array().expect("devices").iter().find(|info| info["device"] == "vulkan");
    let found = found.expect("a Vulkan device");
    assert_eq!(found["chosen"], false);
    assert!(!found["level"].as_str().expect("a name").is_empty());
}

/// Whether tokens are the reference's is tested with their margins, in the tests of whole models.
#[test]
fn a_gpu_generates_the_text_of_the_processor() {
    let run = |backend, more: &[&str]| story(&["--temperature", "0", "--backend", backend], more);
    let length = ["--max-tokens", "12"];
    assert_eq!(run("vulkan", &length).text(), run("cpu", &length).text());
    let done = run("vulkan", &["--max-tokens", "2", "--json"]).json();
    assert_eq!(done["backend"], "vulkan");
    let refused = run("vulkan", &["--head", "screened"]).failure();
    assert!(refused.contains("[bad-option]") && refused.contains("stored or int8"), "{refused}");
}

#[test]
fn samples_are_those_of_the_processor() {
    let sampling = ["--seed", "3", "--temperature", "0.8", "--top-k", "20", "--max-tokens", "12"];
    let run = |backend| story(&sampling, &["--backend", backend]).text();
    assert_eq!(run("vulkan"), run("cpu"));
}

/// Its limits stand where those of the processor would, which has no peak.
#[test]
fn a_bench_measures_the_limits_of_its_device() {
    let size = ["--prompt", "4", "--generate", "2", "--repeat", "1", "--bandwidth", "--json"];
    let run = |backend| setun(&[&["bench", "--backend", backend], &size[..]].concat()).json();
    let report = run("vulkan");
    for limit in ["read_bandwidth_gb_per_second", "peak_tera_operations_per_second"] {
        assert!(report[limit].as_f64().is_some_and(|found| found > 0.0), "{report}");
    }
    assert!(run("cpu")["peak_tera_operations_per_second"].is_null());
}

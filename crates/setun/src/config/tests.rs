use super::*;
use crate::{ActivationGroup, BackPressure, CacheType, ErrorCode, HeadType};

/// The example of the documentation.
fn documented() -> &'static str {
    let text = include_str!("../../../../docs/configuration.md");
    let (_, text) = text.split_once("```toml\n").expect("an example");
    text.split_once("```").expect("its end").0
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    assert_eq!(EngineConfig::from_toml(documented()).expect("TOML"), EngineConfig::default());
    assert_eq!(EngineConfig::from_toml("").expect("TOML"), EngineConfig::default());
}

#[test]
fn every_documented_key_is_known_and_every_known_key_documented() {
    let all: String = documented()
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n")
        .collect();
    let config = EngineConfig::from_toml(&all).expect("all keys");
    assert_eq!(config.engine.context_length, Some(4096));
    assert_eq!(config.generation.repetition_penalty, Some(1.1));
    // With all of them given, every field is written.
    let value = serde_json::to_value(&config).expect("JSON");
    let table: toml::Table = all.parse().expect("TOML");
    let fields = |value: &serde_json::Value| value.as_object().expect("fields").len();
    let offered = EngineConfig::specs().filter(|spec| spec.toml_table().is_some()).count();
    let written: usize = value.as_object().expect("parts").values().map(fields).sum();
    assert!(written > offered, "{written} of {offered} and those of generations");
    for (part, fields) in value.as_object().expect("parts") {
        let given = table[part].as_table().expect("a table");
        for (field, value) in fields.as_object().expect("fields") {
            assert!(given.contains_key(field), "{part}.{field} is not documented");
            assert!(!value.is_null(), "{part}.{field}");
        }
    }
}

#[test]
fn names_stand_for_values() {
    let text =
        "[memory]\ncache_type = 'int8'\nhead_type = 'stored'\n[streams]\nback_pressure = 'end'";
    let config = EngineConfig::from_toml(text).expect("TOML");
    let DeviceConfig { cache_type, head_type, .. } = config.device;
    assert_eq!((cache_type, head_type), (CacheType::Int8, HeadType::Stored));
    assert_eq!(config.engine.back_pressure, BackPressure::End);
}

#[test]
fn columns_of_activations_are_numbers_or_a_row() {
    for (value, expected) in [
        ("'row'", ActivationGroup::Row),
        ("32", ActivationGroup::Columns32),
        ("64", ActivationGroup::Columns64),
        ("128", ActivationGroup::Columns128),
    ] {
        let text = format!("[memory]\nactivation_group = {value}");
        let config = EngineConfig::from_toml(&text).expect("TOML");
        assert_eq!(config.device.activation_group, Some(expected));
        assert_eq!(config.device_options().activation_group, Some(expected));
    }
}

#[test]
fn defaults_are_as_their_words_say() {
    let config = EngineConfig::default();
    for spec in EngineConfig::specs() {
        let value = config.engine.get(spec.name).or_else(|| config.device.get(spec.name));
        if let Some(value) = value {
            assert_eq!(value.to_string().trim_matches('`'), spec.default_words(), "{}", spec.name);
        }
    }
}

#[test]
fn devices_are_those_of_any_build() {
    let names = ["auto", "cuda", "avx512", "each:cpu,metal", "split:cuda=4,cpu"];
    let text = format!("[device]\nbackends = {names:?}");
    let config = EngineConfig::from_toml(&text).expect("TOML");
    let found: Vec<_> = config.device.backends.iter().map(ToString::to_string).collect();
    assert_eq!(found[..4], names[..4]);
    assert_eq!(found[4], "split:cuda=4,cpu=0");
}

#[test]
fn what_is_wrong_is_reported_with_its_line() {
    for (text, words) in [
        ("[batch]\nmax_concurrent = 4\nstream = 5\n", "line 3: unknown option `stream`"),
        ("\n[bach]\n", "line 2: unknown table `bach`"),
        (
            "[batch]\nmax_concurrent = 'four'\n",
            "line 2: option `max_concurrent` is `four`, expected an integer",
        ),
        ("[memory]\n\ncache_type = 'f8'\n", "line 3: option `cache_type` is `f8`, expected one of"),
        (
            "[memory]\nactivation_group = 48\n",
            "line 2: option `activation_group` is 48, expected one of row, 32, 64, 128",
        ),
        ("[memory]\nactivation_group = 'rows'\n", "line 2: option `activation_group` is `rows`"),
        ("[batch\n", "line 1: "),
        (
            "[batch]\nmax_concurrent = 0\n",
            "option `max_concurrent` is 0, expected an integer of 1 or more",
        ),
        ("[device]\nthreads = 2000\n", "option `threads` is 2000"),
        ("[device]\nmemory_fraction = 1.5\n", "option `memory_fraction` is 1.5"),
        ("[memory]\nprefetch_bytes = 2000000000\n", "option `prefetch_bytes` is 2000000000"),
        ("[memory]\nmin_available = 1.0\n", "option `min_available` is 1"),
        ("[device]\nbackends = ['cpu', 'cdua']\n", "option `backends` is [`cpu`, `cdua`]"),
        ("[batch]\nbatch_wait = nan\n", "option `batch_wait` is NaN"),
        ("[generation]\ntimeout = -1\n", "line 2: option `timeout` is -1"),
        ("[generation]\ntop_p = 2.0\n", "line 2: option `top_p` is 2"),
        ("[generation]\nstop = ['']\n", "line 2: option `stop` is"),
    ] {
        let error = EngineConfig::from_toml(text).expect_err(text);
        assert_eq!(error.code(), ErrorCode::BadOption, "{text}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

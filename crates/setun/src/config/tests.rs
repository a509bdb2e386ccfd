use super::*;
use crate::{BackPressure, CacheType, ErrorCode, HeadType};

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
    assert_eq!(config.context.length, Some(4096));
    assert_eq!(config.generation.repetition_penalty, Some(1.1));
    // With all of them given, every field is written.
    let value = serde_json::to_value(&config).expect("JSON");
    let table: toml::Table = all.parse().expect("TOML");
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
    let text = "[memory]\ncache = 'int8'\nhead = 'stored'\n[streams]\nback_pressure = 'end'";
    let config = EngineConfig::from_toml(text).expect("TOML");
    assert_eq!((config.memory.cache, config.memory.head), (CacheType::Int8, HeadType::Stored));
    assert_eq!(config.streams.back_pressure, BackPressure::End);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, words) in [
        ("[batch]\nstreams = 4\nstream = 5\n", "line 3: unknown field `stream`"),
        ("\n[bach]\n", "line 2: unknown field `bach`"),
        ("[batch]\nstreams = 'four'\n", "line 2: invalid type"),
        ("[memory]\n\ncache = 'f8'\n", "line 3: unknown variant `f8`"),
        ("[batch\n", "line 1: "),
        ("[batch]\nstreams = 0\n", "option `batch.streams` is 0, expected an integer of 1 or more"),
        ("[device]\nthreads = 2000\n", "option `device.threads` is 2000"),
        ("[device]\nmemory_fraction = 1.5\n", "option `device.memory_fraction` is 1.5"),
        ("[memory]\nprefetch_bytes = 2000000000\n", "option `memory.prefetch_bytes` is 2000000000"),
        ("[memory]\nmin_available = 1.0\n", "option `memory.min_available` is 1"),
        ("[device]\nbackends = ['cpu', 'cdua']\n", "option `device.backends` is `cdua`"),
        ("[batch]\nwait_seconds = nan\n", "option `batch.wait_seconds` is NaN"),
        ("[generation]\ndeadline = -1\n", "line 2: option `deadline` is -1"),
        ("[generation]\ntop_p = 2.0\n", "line 2: option `top_p` is 2"),
        ("[generation]\nstop = ['']\n", "line 2: option `stop` is"),
    ] {
        let error = EngineConfig::from_toml(text).expect_err(text);
        assert_eq!(error.code(), ErrorCode::BadOption, "{text}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

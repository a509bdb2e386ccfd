//! Layers of files with and without an MTP head, and keys that contradict each other.

use super::*;
use crate::gguf::{config::architecture, known_keys, metadata::Value as Stored};

/// The keys of four layers, each of which the given ones replace.
fn metadata(changed: &[(&str, Stored)]) -> Metadata {
    let number = |key: &str, value| (format!("{HYBRID}.{key}"), Stored::Integer(value));
    let name = ("general.architecture".to_owned(), Stored::Text(HYBRID.to_owned()));
    let mut values = std::collections::BTreeMap::from([
        name,
        number("block_count", 4),
        number("embedding_length", 128),
        number("attention.head_count", 2),
        number("rope.dimension_count", 16),
        number("ssm.conv_kernel", 4),
        number("ssm.state_size", 32),
        number("ssm.group_count", 2),
        number("ssm.time_step_rank", 6),
        number("ssm.inner_size", 192),
    ]);
    for (key, value) in changed {
        values.insert(format!("{HYBRID}.{key}"), value.clone());
    }
    Metadata { file: "m.gguf".to_owned(), values }
}

fn read(changed: &[(&str, Stored)]) -> Result<Map<String, Value>, String> {
    let metadata = metadata(changed);
    let keys = Keys::new(&metadata, &[], architecture(&metadata).unwrap());
    fields(&keys, None).map_err(|error| error.to_string())
}

fn kinds(changed: &[(&str, Stored)]) -> String {
    let types = read(changed).unwrap().remove("layer_types").unwrap();
    let types: Vec<String> = serde_json::from_value(types).unwrap();
    types.iter().map(|name| name.chars().next().unwrap()).collect()
}

#[test]
fn layers_are_listed_or_come_at_an_interval() {
    let flags = |flags: &[bool]| ("attention.recurrent_layers", Stored::Flags(flags.to_vec()));
    let interval = ("full_attention_interval", Stored::Integer(2));
    let mtp = ("nextn_predict_layers", Stored::Integer(1));
    assert_eq!(kinds(&[]), "lllf");
    assert_eq!(kinds(std::slice::from_ref(&interval)), "lflf");
    assert_eq!(kinds(&[interval.clone(), mtp.clone()]), "lfl");
    let listed = flags(&[false, true, true, false]);
    assert_eq!(kinds(&[interval.clone(), listed.clone()]), "fllf");
    assert_eq!(kinds(&[listed, mtp.clone()]), "fll");
    let error = read(&[flags(&[true; 3]), mtp.clone()]).unwrap_err();
    assert!(error.contains("4 flags") && error.contains("a list of 3 flags"), "{error}");
    let error = read(&[("nextn_predict_layers", Stored::Integer(4))]).unwrap_err();
    assert!(error.contains("nextn_predict_layers") && error.contains("fewer than"), "{error}");
}

#[test]
fn heads_follow_from_the_keys() {
    let fields = read(&[]).unwrap();
    assert_eq!(fields["linear_value_head_dim"], 32);
    assert_eq!(fields["partial_rotary_factor"], 0.25);
    assert_eq!((&fields[ORDER], &fields[OUTPUT_ORDER]), (&json!("tiled"), &json!("tiled")));
    let error = read(&[("ssm.inner_size", Stored::Integer(200))]).unwrap_err();
    assert!(error.contains("`qwen35.ssm.inner_size` is 200"), "{error}");
    let error = read(&[("ssm.group_count", Stored::Integer(0))]).unwrap_err();
    assert!(error.contains("qwen35.ssm.group_count"), "{error}");
}

#[test]
fn only_unknown_keys_are_warned_of() {
    let sections = ("rope.dimension_sections", Stored::Integers(vec![3, 3, 2, 0]));
    let metadata = metadata(&[sections, ("ssm.dt_b_c_rms", Stored::Flag(true))]);
    let warning = known_keys::warning(&metadata, HYBRID, KEYS.into_iter()).unwrap();
    assert!(warning.what.ends_with(": `qwen35.ssm.dt_b_c_rms`"), "{warning}");
}

//! Each rule about the keys, by a file that breaks it alone.

use super::*;
use crate::{
    dtype::Dtype,
    tensor::{Tensor, TensorData},
};

fn tensor(name: &str, shape: [usize; 2]) -> TensorInfo {
    Tensor::new(name, Dtype::F32, &shape, TensorData::empty(Dtype::F32)).info
}

fn tensors() -> Vec<TensorInfo> {
    vec![
        tensor("model.embed_tokens.weight", [9, 8]),
        tensor("lm_head.weight", [9, 8]),
        tensor("model.layers.0.mlp.up_proj.weight", [12, 8]),
        tensor("model.layers.0.mlp.down_proj.weight", [8, 12]),
    ]
}

fn texts(texts: &[&str]) -> Value {
    Value::Texts(texts.iter().map(|text| (*text).to_owned()).collect())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// The keys of a file that can be read, each of which the given ones replace.
fn metadata(changed: &[(&str, Option<Value>)]) -> Metadata {
    let signs = [[1_i64, -1].repeat(4), vec![-1; 12]].concat();
    let mut values = BTreeMap::from([
        ("general.architecture".to_owned(), text("qwen35")),
        (key("version"), Value::Integer(1)),
        (key("block_size"), Value::Integer(4)),
        (key("transform"), text("normalized-sylvester-walsh-hadamard")),
        (key("axis"), text("input-last-dimension")),
        (key("sign_mode"), text("explicit")),
        (key("sign_widths"), Value::Integers(vec![8, 12])),
        (key("sign_values"), Value::Integers(signs)),
        (key("weight_names"), texts(&["blk.0.ffn_up.weight", "blk.0.ffn_down.weight"])),
        (key("inverse_weight_names"), texts(&["token_embd.weight"])),
    ]);
    for (end, value) in changed {
        match value {
            Some(value) => values.insert(key(end), value.clone()),
            None => values.remove(&key(end)),
        };
    }
    Metadata { file: "m.gguf".to_owned(), values }
}

fn read(changed: &[(&str, Option<Value>)]) -> Result<Rotation, String> {
    let read = super::read(&metadata(changed), &tensors()).map_err(|error| error.to_string());
    read.map(|rotation| rotation.expect("there are keys"))
}

#[test]
fn signs_follow_each_other_by_width() {
    let Rotation { hadamard, is_output_grouped } = read(&[]).unwrap();
    assert!(hadamard.embedding && !is_output_grouped);
    assert_eq!(hadamard.block, 4);
    assert_eq!(hadamard.signs[&8], [1.0, -1.0].repeat(4));
    assert_eq!(hadamard.signs[&12], [-1.0; 12]);
    let names: Vec<_> = hadamard.layers.iter().map(String::as_str).collect();
    assert_eq!(names, ["model.layers.0.mlp.down_proj", "model.layers.0.mlp.up_proj"]);
    let one = [
        ("weight_names", Some(texts(&["output.weight"]))),
        ("gdn_v_grouped", Some(Value::Flag(true))),
    ];
    let Rotation { hadamard, is_output_grouped } = read(&one).unwrap();
    assert!(is_output_grouped && hadamard.layers.contains(HEAD));
}

#[test]
fn identity_has_no_signs() {
    let identity = ("sign_mode", Some(text("identity")));
    let none = [identity.clone(), ("sign_widths", None), ("sign_values", None)];
    assert!(read(&none).unwrap().hadamard.signs.is_empty());
    let ones = [identity.clone(), ("sign_values", Some(Value::Integers(vec![1; 20])))];
    assert!(read(&ones).unwrap().hadamard.signs.is_empty());
    assert!(read(&[identity]).err().unwrap().contains("1 only where sign_mode is identity"));
}

#[test]
fn a_file_without_the_keys_is_not_rotated() {
    let metadata = Metadata::default();
    assert!(super::read(&metadata, &tensors()).unwrap().is_none());
}

#[test]
fn every_rule_is_checked() {
    let integers = |list: &[i64]| Some(Value::Integers(list.to_vec()));
    let names = |list: &[&str]| Some(texts(list));
    for (end, value, named, why) in [
        ("version", Some(Value::Integer(0)), "version", "`0`"),
        ("version", None, "version", "absent"),
        ("version", Some(Value::Integer(2)), "tied_output", "version 2"),
        ("tied_output", Some(Value::Flag(true)), "tied_output", "version 1"),
        ("block_size", Some(Value::Integer(6)), "block_size", "power of two"),
        ("block_size", Some(Value::Integer(1 << 40)), "block_size", "power of two"),
        ("block_size", Some(Value::Integer(8)), "sign_widths", "multiples of the block, 8"),
        ("block_size", None, "block_size", "absent"),
        ("transform", Some(text("hadamard")), "transform", "normalized-sylvester"),
        ("transform", None, "transform", "absent"),
        ("axis", Some(text("output")), "axis", "input-last-dimension"),
        ("sign_mode", Some(text("random")), "sign_mode", "explicit, identity"),
        ("sign_mode", None, "sign_mode", "absent"),
        ("sign_widths", None, "sign_widths", "empty"),
        ("sign_widths", integers(&[8]), "sign_values", "as many signs"),
        ("sign_widths", integers(&[8, 16]), "sign_values", "as many signs"),
        ("sign_widths", integers(&[20]), "sign_widths", "signs for 12"),
        ("sign_widths", integers(&[8, 8, 4]), "sign_widths", "each width once"),
        ("sign_widths", integers(&[8, -4]), "sign_widths", "-4"),
        ("sign_values", integers(&[2; 20]), "sign_values", "1 and -1"),
        ("sign_values", Some(Value::Floats(vec![1.0; 20])), "sign_values", "whole numbers"),
        ("weight_names", None, "weight_names", "empty"),
        ("weight_names", names(&["blk.0.ffn_up.weight"; 2]), "weight_names", "each name once"),
        ("weight_names", names(&["blk.0.ssm_alpha.weight"]), "weight_names", "ssm_alpha"),
        ("weight_names", names(&["blk.0.ffn_up_exps.weight"]), "weight_names", "ffn_up_exps"),
        ("weight_names", names(&["blk.x.ffn_up.weight"]), "weight_names", "blk.x"),
        ("weight_names", names(&["blk.1.ffn_up.weight"]), "weight_names", "tensors of this file"),
        ("weight_names", names(&["blk.0.ffn_up.bias"]), "weight_names", "ffn_up.bias"),
        ("inverse_weight_names", names(&["output.weight"]), "inverse_weight_names", "output"),
        ("inverse_weight_names", names(&["token_embd.weight"; 2]), "inverse_weight_names", "once"),
        ("gdn_v_grouped", Some(Value::Integer(1)), "gdn_v_grouped", "true or false"),
        ("scale", Some(Value::Float(1.0)), "scale", "versions 1 and 2"),
    ] {
        let error = read(&[(end, value)]).err().expect(why);
        assert!(error.contains(&key(named)) && error.contains(why), "{end}: {error}");
    }
}

/// A rotated table needs a head that says whether its input is rotated.
#[test]
fn a_head_is_its_own_or_tied_by_version_2() {
    let without_head: Vec<_> =
        tensors().into_iter().filter(|info| info.name != "lm_head.weight").collect();
    let read = |changed: &[(&str, Option<Value>)]| {
        super::read(&metadata(changed), &without_head).map_err(|error| error.to_string())
    };
    assert!(read(&[]).err().unwrap().contains("a file with output.weight"));
    assert!(read(&[("inverse_weight_names", None)]).is_ok());
    let second = [("version", Some(Value::Integer(2))), ("tied_output", Some(Value::Flag(true)))];
    assert!(read(&second).unwrap().unwrap().hadamard.layers.contains(HEAD));
    let plain = [&second[..], &[("inverse_weight_names", None)]].concat();
    assert!(read(&plain).err().unwrap().contains("as the head is tied"));
    let both = super::read(&metadata(&second), &tensors()).err().unwrap().to_string();
    assert!(both.contains("tied_output") && both.contains("output.weight"), "{both}");
}

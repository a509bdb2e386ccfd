//! Keys and fields that nothing reads are named, and options stand for those that are missing.

use std::collections::BTreeMap;

use setun_checkpoint::{Options, Pretokenizer, Source, files};

use crate::{
    gguf::fixtures::{bytes, open, open_with},
    support::{Checkpoint, Folder, golden, read, safetensors_of},
};

/// The fixture with more keys. Each has 16 letters, so that tensors stay at multiples of 32 bytes.
fn with_keys(keys: &[&str]) -> Checkpoint {
    let mut file = bytes("qwen3-q2_0.gguf");
    let count = u64::from_le_bytes(file[16..24].try_into().unwrap()) + keys.len() as u64;
    file[16..24].copy_from_slice(&count.to_le_bytes());
    for key in keys {
        assert_eq!(key.len(), 16, "{key}");
        let kind_and_value = [4, 0, 0, 0, 1, 0, 0, 0];
        let key = [&16_u64.to_le_bytes()[..], key.as_bytes(), &kind_and_value].concat();
        file.splice(24..24, key);
    }
    open("m.gguf", &Folder::from([("m.gguf".to_owned(), file)])).unwrap()
}

fn warnings(model: &Checkpoint) -> String {
    model.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn keys_that_are_not_known_are_named() {
    let known = ["general.languag2", "training.steps_a", "quantize.imatrix", "setun.other_key_"];
    assert!(!warnings(&with_keys(&known)).contains("not known"));
    let unknown = ["qwen3.logit_soft", "bitnet.vocab_siz", "prism.rotation_x", "tokenizer.ggml.a"];
    for key in unknown {
        let found = warnings(&with_keys(&[key]));
        let expected = format!(
            "m.gguf: keys that are not known may change the result, and are not applied: `{key}`"
        );
        assert!(found.contains(&expected), "{found}");
    }
    let many = ["a", "b", "c", "d", "e", "f", "g"].map(|letter| letter.repeat(16));
    let found = warnings(&with_keys(&many.each_ref().map(String::as_str)));
    assert!(found.contains("`eeeeeeeeeeeeeeee` and 2 more"), "{found}");
}

#[test]
fn published_keys_are_known() {
    for name in ["i2_s.gguf", "llama-q2_0.gguf", "qwen3-q2_0.gguf", "tq1_0.gguf"] {
        let found = warnings(&open(name, &Folder::from([(name.to_owned(), bytes(name))])).unwrap());
        assert!(!found.contains("not known"), "{name}: {found}");
    }
}

#[test]
fn a_pretokenizer_is_named_for_a_file_that_has_none() {
    let tokenizer = |name: Option<&str>| {
        let pretokenizer = name.map(|name| name.parse().unwrap());
        let options = Options { pretokenizer, ..Options::default() };
        let model = open_with("i2_s.gguf", options).unwrap();
        (model.files.get(files::TOKENIZER).unwrap().to_vec(), warnings(&model))
    };
    let (absent, warning) = tokenizer(None);
    assert!(warning.contains("has no tokenizer.ggml.pre") && warning.contains("--pre"));
    for name in ["qwen2", "gpt-2", "llama-bpe"] {
        let (named, warning) = tokenizer(Some(name));
        assert!(!warning.contains("tokenizer.ggml.pre"), "{warning}");
        assert_ne!(named, absent, "{name}");
    }
    assert_eq!(tokenizer(Some("default")).0, absent);
    let error = "llama".parse::<Pretokenizer>().unwrap_err().to_string();
    assert!(error.contains("`llama`") && error.contains("llama-bpe, "), "{error}");
    assert!(Pretokenizer::names().contains(&"deepseek-v3"));
}

/// A folder with another `config.json`.
fn with_fields(change: impl FnOnce(&mut serde_json::Value)) -> Result<Checkpoint, String> {
    let mut folder = golden("bitnet-h64/packed");
    let config = folder.get_mut("config.json").unwrap();
    let mut fields = serde_json::from_slice(config).unwrap();
    change(&mut fields);
    *config = fields.to_string().into_bytes();
    read(Source::Folder, &folder).map_err(|error| error.to_string())
}

#[test]
fn fields_that_are_not_known_are_named() {
    let found = |name: &str, value: serde_json::Value| {
        warnings(&with_fields(|fields| fields[name] = value).unwrap())
    };
    assert_eq!(found("transformers_version", "5.0".into()), "");
    assert_eq!(found("logits_scaling", serde_json::Value::Null), "");
    assert_eq!(found("residual_gate", false.into()), "");
    let expected = "config.json: fields that are not known may change the result, and are not applied: `logits_scaling`";
    assert_eq!(found("logits_scaling", 8.into()), expected);
    assert!(found("rope_interleaved", true.into()).contains("`rope_interleaved`"));
}

#[test]
fn declared_rotations_are_refused() {
    for name in ["hadamard_config", "prism_hadamard", "transform_config", "rotation_config"] {
        let error = with_fields(|fields| fields[name] = serde_json::json!({ "version": 1 }));
        assert!(error.unwrap_err().contains(&format!("`{name}`")), "{name}");
        let error = with_fields(|fields| fields["quantization_config"][name] = 1.into());
        assert!(error.unwrap_err().contains(&format!("`{name}`")), "{name}");
        with_fields(|fields| fields[name] = serde_json::Value::Null).unwrap();
    }
}

#[test]
fn tensors_of_signs_are_refused() {
    let mut folder = golden("bitnet-h64/packed");
    let tensors = read(Source::Folder, &folder).unwrap().tensors;
    for name in ["self_attn.q_proj.signs", "mlp.up_proj.hadamard", "self_attn.o_proj.input_signs"] {
        let norm = tensors.iter().find(|tensor| tensor.info.shape.len() == 1).unwrap();
        let mut signs = norm.clone();
        signs.info.name = format!("model.layers.0.{name}");
        let all = [&tensors[..], &[signs]].concat();
        folder.insert("model.safetensors".to_owned(), safetensors_of(&all, &BTreeMap::default()));
        let error = read(Source::Folder, &folder).unwrap_err().to_string();
        assert!(error.contains(&format!("`model.layers.0.{name}`")), "{error}");
        assert!(error.contains("rotated"), "{error}");
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let mut folder = golden("bitnet-h64/packed");
    for file in ["config.json", "generation_config.json"] {
        if let Some(bytes) = folder.get_mut(file) {
            bytes.splice(0..0, *b"\xef\xbb\xbf");
        }
    }
    read(Source::Folder, &folder).unwrap();
}

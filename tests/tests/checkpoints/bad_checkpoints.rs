//! Damaged and foreign checkpoints: each its error, at once, and the next model still opens.

use std::collections::BTreeMap;

use setun::{ErrorCode, Model, Source};
use setun_tests::fixture;

/// The files of a small model, to be damaged.
struct Files(BTreeMap<&'static str, Vec<u8>>);

const WEIGHTS: &str = "model.safetensors";
const CONFIG: &str = "config.json";

impl Files {
    fn read() -> Self {
        let folder = fixture("golden/bitnet-h64/packed");
        let read = |name| (name, std::fs::read(folder.join(name)).expect("a fixture"));
        Self([CONFIG, WEIGHTS].into_iter().map(read).collect())
    }

    fn open(&self) -> Result<Model, setun::Error> {
        let files = self.0.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        Model::from_files(Source::Folder, "bad", &files)
    }

    /// Replaces text of the header by text of the same length.
    fn edit_header(&mut self, from: &str, to: &str) {
        assert_eq!(from.len(), to.len(), "headers have a length");
        let weights = self.0.get_mut(WEIGHTS).expect("weights");
        let at = weights.windows(from.len()).position(|window| window == from.as_bytes());
        let at = at.unwrap_or_else(|| panic!("no {from} in the header"));
        weights[at..at + to.len()].copy_from_slice(to.as_bytes());
    }

    /// Where a tensor's data begins in the file.
    fn data_of(&self, tensor: &str) -> usize {
        let weights = &self.0[WEIGHTS];
        let length = u64::from_le_bytes(weights[..8].try_into().expect("8 bytes"));
        let end = 8 + usize::try_from(length).expect("a small header");
        let header: serde_json::Value = serde_json::from_slice(&weights[8..end]).expect("JSON");
        let start = header[tensor]["data_offsets"][0].as_u64().expect("an offset");
        end + usize::try_from(start).expect("a small file")
    }

    fn fails_with(&self, code: ErrorCode, says: &str) {
        let error = self.open().err().unwrap_or_else(|| panic!("opened, expected {says}"));
        let message = error.to_string();
        assert_eq!(error.code(), code, "{message}");
        assert!(message.contains(says), "`{message}` does not say `{says}`");
        assert!(Files::read().open().is_ok(), "the next one opens");
    }
}

fn damaged(damage: impl FnOnce(&mut Files)) -> Files {
    let mut files = Files::read();
    damage(&mut files);
    files
}

fn edit(files: &mut Files, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
    edit(files.0.get_mut(name).expect("a file"));
}

#[test]
fn a_truncated_file() {
    for keep in [0, 7, 8, 100, 20_000] {
        let files = damaged(|files| edit(files, WEIGHTS, |bytes| bytes.truncate(keep)));
        files.fails_with(ErrorCode::Truncated, WEIGHTS);
    }
    let files = damaged(|files| edit(files, WEIGHTS, |bytes| bytes.truncate(bytes.len() - 1)));
    files.fails_with(ErrorCode::Truncated, WEIGHTS);
}

#[test]
fn a_header_larger_than_any() {
    let files = damaged(|files| {
        edit(files, WEIGHTS, |bytes| bytes[..8].copy_from_slice(&(1u64 << 60).to_le_bytes()));
    });
    files.fails_with(ErrorCode::BadCheckpoint, WEIGHTS);
}

#[test]
fn a_missing_file() {
    let files = damaged(|files| drop(files.0.remove(CONFIG)));
    files.fails_with(ErrorCode::NotFound, CONFIG);
    let files = damaged(|files| drop(files.0.remove(WEIGHTS)));
    files.fails_with(ErrorCode::NotFound, WEIGHTS);
}

#[test]
fn a_missing_tensor() {
    let name = "model.layers.1.mlp.ffn_sub_norm.weight";
    let files = damaged(|files| files.edit_header(name, &name.replace("norm", "gain")));
    files.fails_with(ErrorCode::BadCheckpoint, name);
}

#[test]
fn a_tensor_of_another_type() {
    let files = damaged(|files| files.edit_header(r#""dtype":"BF16""#, r#""dtype":"I16" "#));
    files.fails_with(ErrorCode::BadCheckpoint, "BF16");
}

#[test]
fn a_tensor_of_another_shape() {
    let files = damaged(|files| files.edit_header("\"shape\":[16,176]", "\"shape\":[176,16]"));
    files.fails_with(ErrorCode::BadCheckpoint, "[176, 16]");
}

#[test]
fn a_scale_that_is_no_number() {
    let name = "model.layers.0.self_attn.k_proj.weight_scale";
    for bits in [0x7fc0u16, 0x7f80, 0x0000] {
        let files = damaged(|files| {
            let at = files.data_of(name);
            edit(files, WEIGHTS, |bytes| bytes[at..at + 2].copy_from_slice(&bits.to_le_bytes()));
        });
        files.fails_with(ErrorCode::BadCheckpoint, name);
    }
}

#[test]
fn a_weight_that_is_not_ternary() {
    let name = "model.layers.0.mlp.up_proj.weight";
    let files = damaged(|files| {
        let at = files.data_of(name);
        edit(files, WEIGHTS, |bytes| bytes[at + 70] |= 0b11 << 4);
    });
    files.fails_with(ErrorCode::BadCheckpoint, "row 89, column 6");
}

#[test]
fn a_model_of_another_kind() {
    let files = damaged(|files| {
        edit(files, CONFIG, |bytes| {
            let text = String::from_utf8(bytes.clone()).expect("JSON");
            *bytes = text.replace("BitNetForCausalLM", "MambaForCausalLM").into_bytes();
        });
    });
    files.fails_with(ErrorCode::UnsupportedModel, "MambaForCausalLM");
}

#[test]
fn a_configuration_that_is_none() {
    let files = damaged(|files| edit(files, CONFIG, |bytes| bytes.truncate(30)));
    files.fails_with(ErrorCode::BadCheckpoint, CONFIG);
}

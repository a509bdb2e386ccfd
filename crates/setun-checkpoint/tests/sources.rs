//! The same model as a folder, in shards, as one file, and beside one file.

use std::collections::BTreeMap;

use crate::support::{Checkpoint, Folder, answer, golden, read, safetensors_of};
use setun_checkpoint::{
    Answer, CheckpointError, Reader, Source, Tensor, files,
    write::{self, NewTensor},
};

fn folder() -> Folder {
    golden("llama-rmsnorm-bias/packed")
}

fn tensors() -> Vec<Tensor> {
    read(Source::Folder, &folder()).unwrap().tensors
}

/// The folder with its weights in two shards and an index.
fn sharded() -> Folder {
    let (mut folder, tensors) = (folder(), tensors());
    folder.remove(files::WEIGHTS);
    let middle = tensors.len() / 2;
    let mut weight_map = BTreeMap::new();
    for (shard, part) in [&tensors[..middle], &tensors[middle..]].into_iter().enumerate() {
        let file = format!("model-0000{}-of-00002.safetensors", shard + 1);
        weight_map.extend(part.iter().map(|tensor| (tensor.info.name.clone(), file.clone())));
        folder.insert(file, safetensors_of(part, &BTreeMap::new()));
    }
    let index = serde_json::json!({ "metadata": { "total_size": 1 }, "weight_map": weight_map });
    folder.insert(files::INDEX.to_owned(), index.to_string().into_bytes());
    folder
}

fn assert_same(found: &Checkpoint) {
    let expected = read(Source::Folder, &folder()).unwrap();
    assert_eq!((&found.config, &found.generation), (&expected.config, &expected.generation));
    let content = |tensors: &[Tensor]| -> Vec<_> {
        tensors
            .iter()
            .map(|t| (t.info.name.clone(), t.info.shape.clone(), t.data.clone()))
            .collect()
    };
    assert_eq!(content(&found.tensors), content(&expected.tensors));
}

#[test]
fn shards_are_one_model() {
    let found = read(Source::Folder, &sharded()).unwrap();
    assert_same(&found);
    let files: Vec<_> = found.tensors.iter().map(|tensor| &*tensor.info.file).collect();
    assert!(files.is_sorted(), "one shard after the other");
}

#[test]
fn a_file_may_carry_the_others() {
    let (folder, tensors) = (folder(), tensors());
    let text = |name: &str| String::from_utf8(folder[name].clone()).unwrap();
    let metadata = [files::CONFIG, files::GENERATION_CONFIG]
        .map(|name| (format!("{}{name}", files::EMBEDDED_PREFIX), text(name)));
    let file = safetensors_of(&tensors, &BTreeMap::from(metadata));
    // What lies beside does not count then.
    let alone = Folder::from([
        ("dir/m.safetensors".to_owned(), file),
        ("dir/config.json".to_owned(), b"{}".to_vec()),
    ]);
    let found = read(Source::File("dir/m.safetensors".to_owned()), &alone).unwrap();
    assert_same(&found);
    assert!(found.wants.iter().all(|want| want.file == "dir/m.safetensors"));
}

#[test]
fn a_plain_file_has_the_others_beside_it() {
    let beside: Folder =
        folder().into_iter().map(|(name, bytes)| (format!("a/b/{name}"), bytes)).collect();
    let found = read(Source::File("a/b/model.safetensors".to_owned()), &beside).unwrap();
    assert_same(&found);
}

#[test]
fn files_beside_the_weights_are_kept() {
    let mut folder = folder();
    folder.insert(files::TOKENIZER.to_owned(), b"tokens".to_vec());
    let mut reader = Reader::new(Source::Folder);
    while reader.tensors().is_none() {
        let want = reader.next_read().unwrap();
        assert_eq!(reader.give(answer(&folder, &want)), Ok(()));
        assert_eq!(reader.take(), None);
    }
    assert_eq!(reader.files().get(files::TOKENIZER), Some(&b"tokens"[..]));
    assert_eq!(reader.files().get(files::CONFIG), Some(&folder[files::CONFIG][..]));
    assert_eq!(reader.files().get(files::CHAT_TEMPLATE_JINJA), None);
    assert_eq!(reader.files().iter().count(), 3);
    assert!(reader.config().is_some());
}

#[test]
fn tensors_can_be_passed_over() {
    let folder = folder();
    let mut reader = Reader::new(Source::Folder);
    let mut found = Vec::new();
    while let Some(want) = reader.next_read() {
        reader.give(answer(&folder, &want)).unwrap();
        found.extend(reader.take());
        reader.select(|info| info.name.ends_with("norm.weight"));
    }
    let mut expected = tensors();
    expected.retain(|tensor| tensor.info.name.ends_with("norm.weight"));
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
}

#[test]
fn large_tensors_come_in_pieces() {
    let (rows, columns) = (3000, 1001);
    let name = "model.embed_tokens.weight".to_owned();
    let tensor =
        NewTensor { name, dtype: setun_checkpoint::Dtype::F32, shape: vec![rows, columns] };
    let layout = write::layout(files::WEIGHTS, &[tensor], &BTreeMap::new()).unwrap();
    let values: Vec<_> = (0..3000 * 1001_u32).map(f32::from_bits).collect();
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    let file: Vec<_> = layout.header.iter().copied().chain(bytes).collect();
    let config = r#"{"model_type": "bitnet", "vocab_size": 3000, "hidden_size": 64,
        "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2,
        "num_hidden_layers": 1}"#;
    let folder = Folder::from([
        (files::WEIGHTS.to_owned(), file),
        (files::CONFIG.to_owned(), config.as_bytes().to_vec()),
    ]);
    let found = read(Source::Folder, &folder).unwrap();
    assert_eq!(found.tensors[0].data, setun_checkpoint::TensorData::F32(values.into()));
    let pieces = found.wants.iter().filter_map(|want| want.range.clone());
    let sizes: Vec<_> = pieces.map(|range| range.end - range.start).skip(2).collect();
    assert_eq!(sizes, [4 << 20, 4 << 20, 3000 * 1001 * 4 - (8 << 20)]);
}

#[test]
fn what_is_missing_is_named() {
    let without = |mut folder: Folder, name: &str| {
        folder.remove(name);
        read(Source::Folder, &folder).unwrap_err().to_string()
    };
    assert_eq!(without(folder(), files::CONFIG), "config.json is missing");
    assert_eq!(
        without(folder(), files::WEIGHTS),
        "there is neither model.safetensors nor model.safetensors.index.json"
    );
    assert_eq!(
        without(sharded(), "model-00002-of-00002.safetensors"),
        "model-00002-of-00002.safetensors is missing"
    );
    let error = read(Source::File("m.safetensors".to_owned()), &folder()).unwrap_err();
    assert_eq!(error.to_string(), "m.safetensors is missing");
}

#[test]
fn an_index_must_hold_what_it_says() {
    let mut lying = sharded();
    let first = "model-00001-of-00002.safetensors";
    let mut index: serde_json::Value = serde_json::from_slice(&lying[files::INDEX]).unwrap();
    index["weight_map"]["lm_head.bias"] = first.into();
    lying.insert(files::INDEX.to_owned(), index.to_string().into_bytes());
    let error = read(Source::Folder, &lying).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{} says that tensor `lm_head.bias` is in {first}, but it is not", files::INDEX)
    );

    let mut twice = sharded();
    let second = "model-00002-of-00002.safetensors";
    twice.insert(second.to_owned(), safetensors_of(&tensors(), &BTreeMap::new()));
    let error = read(Source::Folder, &twice).unwrap_err();
    assert!(matches!(error, CheckpointError::DuplicateTensor { .. }), "{error}");
}

#[test]
fn a_reader_wants_nothing_after_an_error() {
    let mut reader = Reader::new(Source::Folder);
    assert!(reader.give(Answer::Missing).is_ok(), "a container may be there instead");
    assert!(reader.give(Answer::Missing).is_err());
    assert_eq!(reader.next_read(), None);
    assert_eq!(reader.give(Answer::Bytes(&[])), Err(CheckpointError::NothingWanted));
}

#[test]
fn more_than_was_requested_is_refused() {
    let mut reader = Reader::new(Source::File("m.safetensors".to_owned()));
    let error = reader.give(Answer::Bytes(&[0; 9])).unwrap_err();
    assert_eq!(error.to_string(), "m.safetensors: 8 bytes were requested, 9 were given");
}

//! Damaged containers, and those of other versions: each is one typed error, or the same model.

use crate::support::{
    Checkpoint, Folder, Random, bytes_of, golden,
    outline::{outline, write},
    read,
};
use serde_json::{Value, json};
use setun_checkpoint::{
    CheckpointError, Source, Tensor, TensorData,
    container::{
        Head, ImageEntry, Manifest, VERSION,
        write::{Options, TableType, with_image},
    },
    files,
};
use sha2::{Digest, Sha256};

const FILE: &str = "m.setun";

/// Fewer tokens than the model has keep the fixture small.
const VOCAB: usize = 200;

/// A model of 45 kB, of which every kind of tensor has some.
fn whole() -> Vec<u8> {
    written(false)
}

/// The same, with room for an image.
fn written(image: bool) -> Vec<u8> {
    let mut folder = golden("llama-rmsnorm-bias/packed");
    let config = String::from_utf8(folder[files::CONFIG].clone()).unwrap();
    let config = config.replace("\"vocab_size\": 263", &format!("\"vocab_size\": {VOCAB}"));
    folder.insert(files::CONFIG.to_owned(), config.into_bytes());
    let mut source = read(Source::Folder, &folder).unwrap();
    for table in source.tensors.iter_mut().filter(|tensor| tensor.info.shape[0] == 263) {
        let TensorData::Bf16(values) = &mut table.data else { panic!("{}", table.info.name) };
        values.resize(VOCAB * table.info.shape[1], half::bf16::ZERO).unwrap();
        table.info.shape[0] = VOCAB;
    }
    let (outline, contents) = outline(&source.config, &source.files, &source.tensors);
    let options = Options {
        embedding: TableType::Int8,
        head: TableType::Int8,
        chunk_bytes: 8192,
        image,
        licence: Some("MIT".to_owned()),
        source: Some("llama-rmsnorm-bias/packed".to_owned()),
        tool: Some("setun 0.1.0".to_owned()),
        ..Options::default()
    };
    let files = write(&outline, contents, &options, |index| index).unwrap();
    files.into_values().next().unwrap()
}

fn open(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    read(Source::File(FILE.to_owned()), &Folder::from([(FILE.to_owned(), bytes.to_vec())]))
}

fn is_same(a: &Checkpoint, b: &Checkpoint) -> bool {
    a.config == b.config && a.files == b.files && a.tensors == b.tensors
}

/// First byte behind the manifest.
fn data_start(file: &[u8]) -> usize {
    usize::try_from(Head::parse(FILE, file).unwrap().manifest().end).unwrap()
}

fn manifest(file: &[u8]) -> Value {
    serde_json::from_slice(&file[48..data_start(file)]).unwrap()
}

/// A file with another manifest, whose hash is right.
fn sealed(manifest: &[u8], data: &[u8]) -> Vec<u8> {
    let first = [b"SETUN\0\x01\0", &(manifest.len() as u64).to_le_bytes()[..]].concat();
    let hash: [u8; 32] =
        Sha256::new().chain_update(&first).chain_update(manifest).finalize().into();
    [&first, &hash[..], manifest, data].concat()
}

/// The file with a changed manifest of the same length.
fn changed(file: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value = manifest(file);
    change(&mut value);
    let mut text = serde_json::to_vec(&value).unwrap();
    let start = data_start(file);
    assert!(text.len() <= start - 48, "{} bytes of {}", text.len(), start - 48);
    text.resize(start - 48, b' ');
    sealed(&text, &file[start..])
}

#[test]
fn no_flipped_bit_gives_another_model() {
    let file = whole();
    let expected = open(&file).unwrap();
    let start = data_start(&file);
    let mut random = Random(1);
    let mut damaged = file.clone();
    let anywhere = (0..4000).map(|_| random.below(8 * file.len()));
    for bit in (0..8 * start).step_by(3).chain(anywhere) {
        damaged[bit / 8] ^= 1 << (bit % 8);
        match open(&damaged) {
            Err(_) => {}
            Ok(found) => panic!("bit {bit}: same is {}", is_same(&found, &expected)),
        }
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(damaged, file);
}

#[test]
fn damage_is_named() {
    let file = whole();
    let start = data_start(&file);
    let mut damaged = file.clone();
    damaged[start + 8200] ^= 1; // in the second chunk
    let error = open(&damaged).unwrap_err();
    let CheckpointError::ChunkHash { file: name, chunk: 1, expected, found } = &error else {
        panic!("{error}");
    };
    assert_eq!(name, FILE);
    assert_eq!(manifest(&file)["chunks"][1]["sha256"], **expected);
    assert!(expected != found && found.len() == 64);
    let mut damaged = file.clone();
    damaged[100] ^= 1;
    let error = open(&damaged).unwrap_err();
    assert!(matches!(error, CheckpointError::ManifestHash { .. }), "{error}");
}

#[test]
fn every_truncation_is_seen() {
    let file = whole();
    for length in 0..file.len() {
        let in_data = length > data_start(&file);
        if in_data && length % 53 != 0 && length + 3 < file.len() {
            continue;
        }
        let error = open(&file[..length]).unwrap_err();
        assert!(matches!(error, CheckpointError::Truncated { .. }), "{length}: {error}");
    }
}

#[test]
fn mutations_never_panic() {
    let file = whole();
    let expected = open(&file).unwrap();
    let start = data_start(&file);
    let mut random = Random(2);
    for round in 0..10_000 {
        let mut damaged = file.clone();
        for _ in 0..=random.below(4) {
            // Mostly in the manifest, which is sealed again in every second round.
            let limit = if random.below(4) == 0 { file.len() } else { start };
            let (at, length) = (random.below(limit), 1 + random.below(8));
            let to = (at + length).min(damaged.len()).max(at.min(damaged.len()));
            let at = at.min(to);
            match random.below(4) {
                0 => damaged[at..to].fill_with(|| u8::try_from(random.below(256)).unwrap()),
                1 => damaged[at..to].fill(b'0' + u8::try_from(random.below(10)).unwrap()),
                2 => drop(damaged.drain(at..to)),
                _ => {
                    let copy = damaged[at..to].to_vec();
                    damaged.splice(at..at, copy);
                }
            }
        }
        if round % 2 == 0 && damaged.len() > start {
            let (manifest, data) = (damaged[48..start].to_vec(), damaged[start..].to_vec());
            let _ = open(&sealed(&manifest, &data)); // another model, perhaps, but never a panic
        } else if let Ok(found) = open(&damaged) {
            assert!(is_same(&found, &expected), "round {round}");
        }
    }
}

#[test]
fn manifests_that_contradict_themselves_are_refused() {
    let file = whole();
    let refused = |what: &str, change: &dyn Fn(&mut Value)| {
        let error = open(&changed(&file, change)).unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
    };
    let chunk = |value: &mut Value, index: usize, key: &str, new: Value| {
        value["chunks"][index][key] = new;
    };
    refused("lies beyond the end", &|value| chunk(value, 0, "offset", json!(60_000)));
    refused("does not follow", &|value| chunk(value, 1, "offset", json!(0)));
    refused("wrong number of bytes", &|value| chunk(value, 0, "stored", json!(9)));
    refused("64 hexadecimal digits", &|value| chunk(value, 0, "sha256", json!("0")));
    refused("file that is not named", &|value| chunk(value, 0, "part", json!(7)));
    refused("of 16777216", &|value| chunk(value, 0, "bytes", json!(0)));
    refused("unknown encoding", &|value| {
        chunk(value, 0, "sha256", json!(""));
        chunk(value, 0, "encoding", json!("xz"));
    });
    refused("expected 1", &|value| value["version"] = json!(2));
    refused("config.json is missing", &|value| value["files"] = json!([]));
    refused("unknown element type", &|value| value["tensors"][0]["dtype"] = json!("I7"));
    refused("ends at byte", &|value| drop(value["tensors"].as_array_mut().unwrap().pop()));
    refused("ends at byte", &|value| drop(value["chunks"].as_array_mut().unwrap().pop()));
    refused("at least one file", &|value| value["parts"] = json!([]));
    // One tensor less before the others: chunks would hold pieces of several.
    refused("chunk", &|value| {
        let tensors = value["tensors"].as_array_mut().unwrap();
        let first = tensors.remove(0);
        tensors.push(first);
    });
}

/// An image is passed over by who reads the model, and lies nowhere but at the end of its file.
#[test]
fn images_lie_behind_all_else() {
    let plain = written(true);
    let start = plain.len().next_multiple_of(4096);
    let sha256 = Sha256::digest([7; 100]).into();
    let image = ImageEntry { stored: start as u64..start as u64 + 100, sha256 };
    let first = with_image(FILE, &plain[..data_start(&plain)], &image).unwrap();
    let mut file = [&first[..], &plain[first.len()..]].concat();
    assert_eq!(data_start(&file), data_start(&plain));
    file.resize(start, 0);
    file.resize(start + 100, 7);
    let head = Head::parse(FILE, &file).unwrap();
    let parsed = Manifest::parse(FILE, &head, &file[48..data_start(&file)]).unwrap();
    assert_eq!(parsed.image, Some(image));
    assert!(is_same(&open(&file).unwrap(), &open(&plain).unwrap()));
    for (key, value) in [
        ("offset", json!(start + 64)), // not aligned
        ("offset", json!(start + 4096)),
        ("offset", json!(0)), // in the manifest, or the chunks
        ("offset", json!(u64::MAX)),
        ("bytes", json!(0)),
        ("bytes", json!(99)),
        ("bytes", json!(u64::MAX)),
        ("sha256", json!("0")),
    ] {
        let damaged = changed(&file, |manifest| manifest["image"][key] = value.clone());
        let error = open(&damaged).map(drop).unwrap_err().to_string();
        assert!(error.contains("image"), "{key} {value}: {error}");
    }
    let first = &file[..data_start(&file)];
    let error = with_image(FILE, &whole()[..data_start(&whole())], &parsed.image.unwrap());
    assert!(error.unwrap_err().to_string().contains("has no room"));
    assert!(
        with_image(FILE, &first[..first.len() - 1], &ImageEntry { stored: 0..1, sha256 }).is_err()
    );
}

#[test]
fn newer_versions_are_refused_with_what_to_do() {
    let mut file = whole();
    file[6] = 9;
    assert_eq!(
        open(&file).unwrap_err().to_string(),
        format!(
            "m.setun is of version 9 of the .setun format, this program reads up to {VERSION}: \
             update setun, or convert the model again with this one"
        )
    );
}

/// The draft of the format, as it was before its first version.
fn draft(file: &[u8]) -> Vec<u8> {
    let value = manifest(file);
    let texts = value["files"].as_array().unwrap().iter();
    let texts = texts.map(|file| (file["name"].as_str().unwrap().to_owned(), file["text"].clone()));
    let files: serde_json::Map<_, _> = texts.collect();
    let tensors = value["tensors"].as_array().unwrap().iter();
    let tensors: Vec<_> = tensors
        .map(|tensor| json!({ "name": tensor["name"], "type": tensor["dtype"], "shape": tensor["shape"] }))
        .collect();
    let chunks = value["chunks"].as_array().unwrap().iter();
    let chunks: Vec<_> = chunks.map(|chunk| json!([chunk["bytes"], chunk["sha256"]])).collect();
    let text = json!({
        "license": "MIT", "files": files, "tensors": tensors, "chunks": chunks,
    })
    .to_string();
    let head = [b"SETUN\0\0\0", &(text.len() as u64).to_le_bytes()[..]].concat();
    [&head, text.as_bytes(), &file[data_start(file)..]].concat()
}

#[test]
fn older_versions_are_migrated() {
    let file = whole();
    let draft = draft(&file);
    let (found, expected) = (open(&draft).unwrap(), open(&file).unwrap());
    let data = |tensors: &[Tensor]| {
        let named = tensors.iter().map(|tensor| (tensor.info.name.clone(), bytes_of(&tensor.data)));
        named.collect::<Vec<_>>()
    };
    assert_eq!(data(&found.tensors), data(&expected.tensors));
    assert_eq!((found.config, found.files), (expected.config, expected.files));
    let mut damaged = draft.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let error = open(&damaged).unwrap_err();
    assert!(matches!(error, CheckpointError::ChunkHash { .. }), "{error}");
    for bad in ["[]", "{}", r#"{"files": {}, "tensors": [1], "chunks": []}"#] {
        let head = [b"SETUN\0\0\0", &(bad.len() as u64).to_le_bytes()[..]].concat();
        let error = open(&[&head, bad.as_bytes()].concat()).unwrap_err();
        assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
    }
}

mod fixture {
    //! The file of version 1 that stays readable for ever.

    use std::path::PathBuf;

    use setun_checkpoint::{Dtype, blocks};
    use setun_ops::ternary::{code_at, row_bytes};

    use super::*;

    fn path(name: &str) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "../../tests/fixtures/setun", name].iter().collect()
    }

    fn hash(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    #[test]
    #[ignore = "writes the fixture anew"]
    fn rewrite_fixture() {
        std::fs::write(path("v1.setun"), whole()).unwrap();
    }

    /// Against what `read.py` found in it, which shares no code with this crate.
    #[test]
    fn version_1_is_read_as_python_reads_it() {
        let found = open(&std::fs::read(path("v1.setun")).unwrap()).unwrap();
        let expected: Value =
            serde_json::from_slice(&std::fs::read(path("v1.json")).unwrap()).unwrap();
        let files = expected["files"].as_object().unwrap();
        assert_eq!(files.len(), found.files.iter().count());
        for (name, bytes) in found.files.iter() {
            assert_eq!(files[name], hash(bytes), "{name}");
        }
        let tensors = expected["tensors"].as_array().unwrap();
        assert_eq!(tensors.len(), found.tensors.len());
        for (tensor, expected) in found.tensors.iter().zip(tensors) {
            let info = &tensor.info;
            assert_eq!(expected["name"], *info.name);
            assert_eq!(expected["dtype"], info.dtype.to_string());
            assert_eq!(expected["shape"], json!(info.shape));
            assert_eq!(expected["sha256"], hash(&bytes_of(&tensor.data)), "{}", info.name);
            if info.dtype == Dtype::Base3 {
                let (rows, columns) = info.expect_matrix().unwrap();
                let (packed, _) = blocks::unpack(tensor).unwrap();
                let row = |row: usize| &packed[row * row_bytes(columns)..][..row_bytes(columns)];
                let code = |at: usize| code_at(row(at / columns), at % columns);
                let codes: Vec<_> = (0..rows * columns).map(code).collect();
                assert_eq!(expected["codes_sha256"], hash(&codes), "{}", info.name);
            }
        }
    }
}

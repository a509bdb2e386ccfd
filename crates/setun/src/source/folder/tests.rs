use std::fs;

use super::*;
#[cfg(feature = "embedded-model")]
use crate::source::ModelSource;

const MIB: u64 = 1 << 20;

/// Folder with a file of about five mebibytes, and one of few bytes.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes: Vec<u8> =
        (0..5 * MIB + 99).map(|at: u64| ((at * at) >> 9).to_le_bytes()[0]).collect();
    fs::write(folder.path().join("long"), &bytes).expect("a file");
    fs::write(folder.path().join("short"), &bytes[..77]).expect("a file");
    folder
}

#[test]
fn what_is_read_ahead_is_what_is_requested() {
    let folder = folder();
    let end = 5 * MIB + 99;
    let wants = [
        ("long", Some(0..8)),
        ("long", Some(8..100)), // from here on ahead
        ("long", Some(100..MIB + 7)),
        ("short", Some(0..7)),
        ("short", Some(7..70)),
        ("long", Some(MIB + 7..MIB + 8)),
        ("long", Some(MIB + 8..MIB + 9)),
        ("long", Some(MIB + 50..4 * MIB)), // a gap
        ("long", Some(9..1000)),           // back
        ("long", Some(1000..end - 5)),
        ("long", Some(end - 5..end + 10)), // as much as there is
        ("long", Some(end + 10..end + 20)),
        ("short", None),
        ("none", Some(0..9)),
        ("long", Some(0..0)),
        ("long", Some(0..end)),
    ];
    for prefetch in [1, 2 << 20, 100 << 20] {
        let [mut ahead, mut plain] = [(); 2].map(|()| ModelFolder::new(folder.path()));
        ahead.prefetch(prefetch);
        plain.prefetch(0);
        for (file, range) in wants.clone() {
            let want = ReadRequest { file: file.into(), range, required: false };
            let [mut found, mut expected] = [vec![7], vec![8]];
            let is_there = ahead.read(&want, &mut found).expect("no failure");
            assert_eq!(is_there, plain.read(&want, &mut expected).expect("no failure"));
            assert!(found == expected, "{want:?} with {prefetch}");
        }
    }
}

#[test]
fn a_file_is_only_read_ahead_where_it_is_read_on() {
    let folder = folder();
    let mut files = ModelFolder::new(folder.path());
    files.prefetch(2 << 20);
    let mut read = |range| {
        let want = ReadRequest { file: "long".into(), range: Some(range), required: true };
        files.read(&want, &mut vec![]).expect("no failure");
        files.readahead.is_some()
    };
    let is_ahead = [0..8, 100..200, 200..300, 300..400, 0..50, 60..70].map(&mut read);
    assert_eq!(is_ahead, [false, false, true, true, false, false]);
    assert!(read(70..80));
    files.close();
    assert!(files.readahead.is_none());
}

#[cfg(feature = "embedded-model")]
#[test]
fn a_model_that_ends_early_is_the_same_error_and_a_whole_one_has_the_same_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = crate::EMBEDDED_MODEL;
    let read = |len: usize, prefetch: usize| {
        fs::write(folder.path().join("m.safetensors"), &whole[..len]).expect("a file");
        let mut files = ModelFolder::new(folder.path());
        files.prefetch(prefetch);
        let source = crate::Source::File("m.safetensors".into());
        pollster::block_on(async {
            let source = ModelSource::new(source, "m", files);
            crate::ModelReader::new(source).await?.read().await
        })
    };
    for len in [whole.len() / 2, whole.len() - 1] {
        let errors = [0, 1 << 20].map(|prefetch| read(len, prefetch).err().expect("an error"));
        assert_eq!(errors[0].to_string(), errors[1].to_string());
    }
    let [plain, ahead] = [0, 1 << 20].map(|prefetch| read(whole.len(), prefetch).expect("a model"));
    assert!(plain.weights.data == ahead.weights.data);
}

#[test]
fn a_folder_of_weights_has_the_files_above_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    for name in ["onnx", "gguf", "other"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    write("config.json", "above");
    write("tokenizer.json", "above");
    write("onnx/tokenizer.json", "beside");
    let mut bytes = vec![];
    let mut read = |below: &str, file: &str| {
        let mut files = ModelFolder::new(folder.path().join(below));
        let want = ReadRequest { file: file.into(), range: None, required: false };
        let is_there = files.read(&want, &mut bytes).expect("no failure");
        assert_eq!(files.file_bytes(file), is_there.then_some(bytes.len() as u64));
        is_there.then(|| String::from_utf8(bytes.clone()).expect("a text"))
    };
    assert_eq!(read("onnx", "config.json").as_deref(), Some("above"));
    assert_eq!(read("onnx", "tokenizer.json").as_deref(), Some("beside"));
    assert_eq!(read("gguf", "config.json").as_deref(), Some("above"));
    assert_eq!(read("other", "config.json"), None);
    assert_eq!(read("onnx", "none.json"), None);
}

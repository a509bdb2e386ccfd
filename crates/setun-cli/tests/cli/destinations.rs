//! Destinations: overwriting, sources, missing folders, foreign files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::support::{STORIES, TINY, copy_without, model, setun};

/// Contents of all files of a folder, by name.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap_or_default())
    };
    entries.map(file).collect()
}

/// Arguments of a conversion.
pub(crate) fn convert<'a>(from: &'a str, to: &'a str, format: &'a str) -> [&'a str; 5] {
    ["convert", from, to, "--to", format]
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_file_that_is_there_is_only_overwritten_by_force() {
    let keep = tempfile::tempdir().expect("a folder");
    let file = text(&keep.path().join("m.setun"));
    let logits = text(&keep.path().join("logits.safetensors"));
    let (tiny, stories) = (model(TINY), model(STORIES));
    let first: [&[&str]; 2] = [
        &convert(&tiny, &file, "setun"),
        &["logits", "--model", &tiny, "--ids", "1,2", "--out", &logits],
    ];
    let second: [&[&str]; 2] = [
        &convert(&stories, &file, "setun"),
        &["logits", "--model", &stories, "--ids", "1,2", "--out", &logits],
    ];
    for (first, second) in first.into_iter().zip(second) {
        setun(first).text();
        let before = contents(keep.path());
        let error = setun(second).failure();
        assert!(error.contains("[bad-option]") && error.contains("exists already"), "{error}");
        assert!(contents(keep.path()) == before, "{second:?}");
        setun(&[second, &["--force"]].concat()).text();
        let after = contents(keep.path());
        assert!(after.len() == before.len() && after != before, "{second:?}");
    }
}

#[test]
fn a_model_is_never_written_over_itself() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("models");
    fs::create_dir(&folder).expect("a folder");
    let file = folder.join("m.setun");
    setun(&convert(&model(TINY), &text(&file), "setun")).text();
    let linked = folder.join("hard.setun");
    fs::hard_link(&file, &linked).expect("a link");
    let mut places = vec![text(&file), text(&linked), text(&folder.join("../models/m.setun"))];
    #[cfg(unix)]
    {
        let soft = folder.join("soft.setun");
        std::os::unix::fs::symlink(&file, &soft).expect("a link");
        places.push(text(&soft));
    }
    let before = contents(&folder);
    for place in places {
        let error = setun(&[&convert(&text(&file), &place, "setun")[..], &["--force"]].concat());
        let error = error.failure();
        assert!(error.contains("is a file of the model that is read"), "{place}: {error}");
        assert!(contents(&folder) == before, "{place}");
    }
}

#[test]
fn a_folder_is_never_written_into_itself_nor_over_a_file_that_is_read() {
    let (_keep, folder) = copy_without(TINY, &[]);
    let before = contents(&folder);
    let place = text(&folder);
    let args = convert(&place, &place, "hf");
    let error = setun(&[&args[..], &["--force"]].concat()).failure();
    assert!(error.contains("is a file of the model that is read"), "{error}");
    assert!(contents(&folder) == before);

    // The second of two parts would be overwritten by a model of one.
    let keep = tempfile::tempdir().expect("a folder");
    let source = keep.path().join("m.setun");
    setun(
        &[&["synth", "--shape", "small", "--to", "setun", "--shard", "80"][..], &[&text(&source)]]
            .concat(),
    )
    .text();
    let parts: Vec<PathBuf> =
        contents(keep.path()).into_keys().map(|name| keep.path().join(name)).collect();
    assert_eq!(parts.len(), 2, "{parts:?}");
    let args = convert_path(&parts[0], &parts[1]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let error = setun(&args).failure();
    assert!(error.contains("is a file of the model that is read"), "{error}");
    assert_eq!(fs::read_dir(keep.path()).expect("the folder").count(), 2);
}

fn convert_path(from: &Path, to: &Path) -> Vec<String> {
    let words = ["convert", &text(from), &text(to), "--to", "setun", "--force"];
    words.map(str::to_owned).to_vec()
}

#[test]
fn folders_that_are_missing_are_not_made() {
    let keep = tempfile::tempdir().expect("a folder");
    let (file, folder) =
        (text(&keep.path().join("a/b/m.setun")), text(&keep.path().join("a/folder")));
    let tiny = model(TINY);
    for args in [
        &convert(&tiny, &file, "setun")[..],
        &convert(&tiny, &folder, "hf"),
        &["synth", "--shape", "small", "--to", "hf", &folder],
        &["logits", "--model", &tiny, "--ids", "1", "--out", &file],
    ] {
        let error = setun(args).failure();
        assert!(error.contains("[not-found]") && error.contains("there is no folder"), "{error}");
    }
    assert!(contents(keep.path()).is_empty());
}

#[test]
fn a_folder_with_other_files_is_only_written_by_force() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("out");
    fs::create_dir(&folder).expect("a folder");
    setun(&convert(&model(TINY), &text(&folder), "hf")).text();
    let tiny = contents(&folder);
    assert!(tiny.keys().eq(["config.json", "generation_config.json", "model.safetensors"]));
    for (name, content) in [("notes.txt", "mine"), ("tokenizer.json", "of another model")] {
        fs::write(folder.join(name), content).expect("a file");
    }
    fs::remove_file(folder.join("config.json")).expect("a file");
    let before = contents(&folder);
    let place = text(&folder);
    let tiny_model = model(TINY);
    let args = convert(&tiny_model, &place, "hf");
    let error = setun(&args).failure();
    assert!(error.contains("has files, such as `generation_config.json`"), "{error}");
    assert!(contents(&folder) == before);

    // By force: nobody's file is lost but those that would belong to the model.
    setun(&[&args[..], &["--force"]].concat()).text();
    let mut after = contents(&folder);
    assert_eq!(after.remove("notes.txt").as_deref(), Some(&b"mine"[..]));
    assert!(after == tiny, "{:?}", after.keys());
}

#[test]
fn what_is_no_file_is_not_written() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("m.setun");
    fs::create_dir(&folder).expect("a folder");
    let tiny = model(TINY);
    let force = |to: &Path, format| {
        setun(&[&convert(&tiny, &text(to), format)[..], &["--force"]].concat()).failure()
    };
    let error = force(&folder, "setun");
    assert!(error.contains("it is a folder, expected a file"), "{error}");
    let file = keep.path().join("file");
    fs::write(&file, "mine").expect("a file");
    let error = force(&file, "hf");
    assert!(error.contains("it is a file, expected a folder"), "{error}");
    assert_eq!(fs::read(&file).expect("the file"), b"mine");
}

#[cfg(unix)]
#[test]
fn a_device_is_written_as_it_is() {
    let args = ["logits", "--model", &model(TINY), "--ids", "1", "--out", "/dev/null"];
    assert_eq!(setun(&args).text(), "");
}

#[test]
fn bytes_behind_a_container_are_refused() {
    let keep = tempfile::tempdir().expect("a folder");
    let file = keep.path().join("m.setun");
    setun(&convert(&model(TINY), &text(&file), "setun")).text();
    let mut bytes = fs::read(&file).expect("the file");
    let length = bytes.len();
    bytes.push(0);
    fs::write(&file, bytes).expect("the file");
    let (file, to) = (text(&file), text(&keep.path().join("again.setun")));
    let out = text(&keep.path().join("logits"));
    for args in [
        &["verify", &file][..],
        &["logits", "--model", &file, "--ids", "1", "--out", &out],
        &convert(&file, &to, "setun"),
    ] {
        let error = setun(args).failure();
        let words = format!("m.setun has {} bytes, expected {length}", length + 1);
        assert!(error.contains("[bad-checkpoint]") && error.contains(&words), "{error}");
    }
    assert_eq!(fs::read_dir(keep.path()).expect("the folder").count(), 1);
}

/// Puts a number in the place of a scale of a folder.
fn set_scale(folder: &Path, name: &str, scale: f32) {
    let path = folder.join("model.safetensors");
    let mut bytes = fs::read(&path).expect("the weights");
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    let header = usize::try_from(header).expect("small");
    let value: serde_json::Value =
        serde_json::from_slice(&bytes[8..8 + header]).expect("the header");
    let start = value[name]["data_offsets"][0].as_u64().expect("an offset");
    let start = 8 + header + usize::try_from(start).expect("small");
    assert_eq!(value[name]["dtype"], "BF16");
    bytes[start..start + 2].copy_from_slice(&half::bf16::from_f32(scale).to_le_bytes());
    fs::write(&path, bytes).expect("the weights");
}

#[track_caller]
fn assert_overflow(model: &Path, name: &str) {
    let error = setun(&["verify", &text(model)]).failure();
    assert!(error.contains(name) && error.contains("results overflow"), "{error}");
}

/// Finite scales with which a matrix's products are infinite.
#[test]
fn verify_finds_scales_that_overflow() {
    let (_keep, folder) = copy_without(TINY, &[]);
    set_scale(&folder, "model.layers.0.self_attn.q_proj.weight_scale", 120_f32.exp2());
    assert_overflow(&folder, "q_proj.weight");
    // A conversion keeps every scale, and so does what it has written.
    let file = folder.join("m.setun");
    setun(&convert(&text(&folder), &text(&file), "setun")).text();
    assert_overflow(&file, "q_proj.weight");
}

#[test]
#[ignore = "models of 100 MB"]
fn verify_finds_scales_that_overflow_in_every_format() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("folder");
    setun(&["synth", "--shape", "small", "--to", "hf", &text(&folder)]).text();
    // The blocks of two of the formats hold no number above 65,504: its third power overflows.
    set_scale(&folder, "model.layers.0.mlp.gate_proj.weight_scale", 59_904.0);
    assert_overflow(&folder, "gate_proj.weight");
    for (format, name) in [
        ("setun", "m.setun"),
        ("gguf-i2_s", "i2_s.gguf"),
        ("gguf-tq2_0", "tq2_0.gguf"),
        ("gguf-tq1_0", "tq1_0.gguf"),
    ] {
        let file = keep.path().join(name);
        setun(&convert(&text(&folder), &text(&file), format)).text();
        assert_overflow(&file, "gate_proj.weight");
        fs::remove_file(file).expect("it is there");
    }
}

//! `setun convert` and `setun verify`

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use safetensors::SafeTensors;
use serde_json::Value;

use crate::support::{STORIES, TINY, copy_without, model, setun};

/// A shape that every format can hold: widths are multiples of 256.
const SHAPE: [&str; 4] = ["synth", "--shape", "small", "--to"];

const FORMATS: [(&str, &str); 5] = [
    ("setun", "m.setun"),
    ("hf", "folder"),
    ("gguf-i2_s", "i2_s.gguf"),
    ("gguf-tq2_0", "tq2_0.gguf"),
    ("gguf-tq1_0", "tq1_0.gguf"),
];

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// All logits of a few tokens.
fn logits(model: &str, keep: &Path) -> Vec<u8> {
    let out = text(&keep.join("logits.safetensors"));
    setun(&["logits", "--model", model, "--ids", "1,2,3,77", "--force", "--out", &out]).text();
    fs::read(out).expect("logits")
}

fn convert(from: &str, to: &Path, format: &str, more: &[&str]) -> String {
    let to = text(to);
    let args = [&["convert", from, &to, "--to", format, "--force"], more].concat();
    assert_eq!(setun(&args).text(), "");
    to
}

/// The packed codes of a folder as they are, and all floats as `f32`, by name.
fn values(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let bytes = fs::read(Path::new(folder).join("model.safetensors")).expect("weights");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let widened = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
        let values = match view.dtype() {
            safetensors::Dtype::BF16 => {
                let halves = view.data().as_chunks::<2>().0.iter();
                halves.flat_map(|&[low, high]| [0, 0, low, high]).collect()
            }
            _ => view.data().to_vec(),
        };
        (name, values)
    };
    tensors.tensors().into_iter().map(widened).collect()
}

/// From a folder to each format, from each to the next, and back to the folder: every code, every
/// scale and every other number.
#[test]
fn every_format_is_the_same_model() {
    let keep = tempfile::tempdir().expect("a folder");
    let at = |name: &str| keep.path().join(name);
    let source = text(&at("source"));
    setun(&[&SHAPE[..], &["hf", &source]].concat()).text();
    let expected = logits(&source, keep.path());
    let packed = convert(&source, &at("again"), "hf", &[]);
    let back = values(&packed);
    assert!(back == values(&source), "hf, again");
    let mut from = source.clone();
    for (format, name) in FORMATS {
        from = convert(&from, &at(name), format, &[]);
        assert_eq!(logits(&from, keep.path()), expected, "{format}");
        let folder = convert(&from, &at("back"), "hf", &[]);
        assert!(values(&folder) == back, "{format}, and back");
        let again = text(&at(&format!("synth-{name}")));
        setun(&[&SHAPE[..], &[format, &again]].concat()).text();
        assert_eq!(logits(&again, keep.path()), expected, "{format}, written by synth");
    }
}

/// Names beside the tensors' bytes come along, too.
#[test]
fn a_container_keeps_the_texts() {
    let keep = tempfile::tempdir().expect("a folder");
    let file = convert(&model(STORIES), &keep.path().join("m.setun"), "setun", &[]);
    let folder = PathBuf::from(convert(&file, &keep.path().join("folder"), "hf", &[]));
    let mut kept = 0;
    for entry in fs::read_dir(model(STORIES)).expect("the model").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with("json") && !name.starts_with("golden") && name != "config.json" {
            let found = fs::read(folder.join(&name)).unwrap_or_default();
            assert_eq!(found, fs::read(entry.path()).expect("a file"), "{name}");
            kept += 1;
        }
    }
    assert!(kept >= 1, "a tokenizer");
    let args = |model: &str| {
        let prompt = "Once upon a time";
        setun(&["run", "--model", model, prompt, "--temperature", "0", "--max-tokens", "8"]).text()
    };
    assert_eq!(args(&file), args(&model(STORIES)));
}

#[test]
fn several_files_compressed_with_an_int8_head() {
    let keep = tempfile::tempdir().expect("a folder");
    let to = keep.path().join("m.setun");
    convert(&model(STORIES), &to, "setun", &["--zstd", "--head", "int8", "--shard", "1"]);
    let report = setun(&["verify", &text(&to)]);
    assert_eq!(report.status, Some(0), "{}", report.stderr);
    assert!(report.stdout.contains(": sound"), "{}", report.stdout);
}

#[test]
fn a_container_with_an_image_of_its_weights_is_mapped() {
    let keep = tempfile::tempdir().expect("a folder");
    let plain = convert(&model(STORIES), &keep.path().join("plain.setun"), "setun", &[]);
    let to = keep.path().join("m.setun");
    let file = convert(&model(STORIES), &to, "setun", &["--weight-image"]);
    let verify = || setun(&["verify", &file]);
    assert_eq!(
        (verify().status, verify().stdout),
        (Some(0), setun(&["verify", &plain]).stdout.replace("plain", "m"))
    );
    let run = |model: &str, more: &[&str]| {
        let args =
            ["run", "--model", model, "Once upon a time", "--backend", "cpu", "--max-tokens", "8"];
        setun(&[&args[..], more].concat())
    };
    let expected = run(&plain, &[]).text();
    assert_eq!(run(&file, &["--weight-image", &file]).text(), expected);
    assert_eq!(run(&file, &[]).text(), expected);
    let other = run(&plain, &["--weight-image", &file]).failure();
    assert!(other.contains("expected the model's own file"), "{other}");
    let mut bytes = fs::read(&file).expect("a file");
    *bytes.last_mut().expect("an image") ^= 1;
    fs::write(&file, bytes).expect("written");
    let line = verify().failure();
    assert!(line.contains("is damaged: convert the model again"), "{line}");
    assert_eq!(fs::read_dir(keep.path()).expect("a folder").count(), 2);
}

#[test]
fn what_a_format_cannot_hold_leaves_nothing_behind() {
    let keep = tempfile::tempdir().expect("a folder");
    let to = keep.path().join("m.gguf");
    let line = setun(&["convert", &model(TINY), &text(&to), "--to", "gguf-tq2_0"]).failure();
    assert!(line.contains("GGUF cannot hold") && line.contains("write .setun"), "{line}");
    // The embedding of a tied head is its table.
    let to = text(&keep.path().join("m.setun"));
    let args = ["convert", &model(TINY), &to, "--to", "setun", "--embedding", "int8"];
    let line = setun(&args).failure();
    assert!(line.contains("cannot hold an embedding of another type than the head"), "{line}");
    assert_eq!(fs::read_dir(keep.path()).expect("a folder").count(), 0);
    let wrong = setun(&["convert", &model(TINY), "m.bin", "--to", "setun"]);
    assert_eq!(wrong.status, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("must end in .setun"), "{}", wrong.stderr);
}

#[test]
fn verify_finds_one_wrong_byte() {
    let keep = tempfile::tempdir().expect("a folder");
    let file = convert(&model(TINY), &keep.path().join("m.setun"), "setun", &[]);
    let report = setun(&["verify", &file, "--json"]).text();
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["ternary_weights"], 138_240);
    assert_eq!(report["tokens"], Value::Null);
    let mut bytes = fs::read(&file).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).expect("the file");
    let line = setun(&["verify", &file]).failure();
    assert!(line.contains("[bad-checkpoint]"), "{line}");
}

/// Weights that are sound do not help where no prompt can be read.
#[test]
fn verify_tries_tokenizer_and_template() {
    let (_keep, folder) = copy_without(STORIES, &["tokenizer_config.json"]);
    let template = |template: &str| {
        let config = serde_json::json!({"chat_template": template}).to_string();
        fs::write(folder.join("tokenizer_config.json"), config).expect("a file");
        setun(&["verify", &text(&folder)])
    };
    let report = template("{{ messages[0].content }}").text();
    assert!(report.contains(": sound") && !report.contains("warning"), "{report}");
    let line = template("{{ none.x.y }}").failure();
    assert!(line.contains("[bad-checkpoint] chat template `default` failed at line 1"), "{line}");
    let report = template("{{ raise_exception('not without a system message') }}").text();
    assert!(report.contains("warning: the chat template refuses"), "{report}");

    let tokenizer = folder.join("tokenizer.json");
    let file = fs::read_to_string(&tokenizer).expect("the tokenizer");
    let mut file: Value = serde_json::from_str(&file).expect("JSON");
    file["decoder"]["decoders"][3]["stop"] = 1.into();
    fs::write(&tokenizer, file.to_string()).expect("a file");
    let line = template("").failure();
    assert!(line.contains("`decoder.decoders[3].stop` of tokenizer.json is 1"), "{line}");
    let run = setun(&["run", "--model", &text(&folder), "Once"]).failure();
    assert_eq!(line, run, "the same in `run`");
}

/// The option says what the file does not, to every command that reads one.
#[test]
fn interleaved_by_64() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gguf");
    let narrow = text(&fixtures.join("i2_s-narrow.gguf"));
    let with = |args: &[&str]| setun(&[args, &["--i2s-interleave", "64"]].concat());
    let error = setun(&["inspect", &narrow]).failure();
    assert!(error.contains("I2_S [64, 64]"), "{error}");
    let report = with(&["inspect", &narrow]).stdout;
    assert!(report.contains("I2_S (64)"), "{report}");
    let outcome = with(&["verify", &narrow]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);

    let keep = tempfile::tempdir().expect("a folder");
    let logits = |model: &str, more: &[&str]| {
        let out = text(&keep.path().join("logits.safetensors"));
        let args = ["logits", "--model", model, "--ids", "1,2,3", "--force", "--out", &out];
        let outcome = setun(&[&args[..], more].concat());
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        fs::read(out).expect("logits")
    };
    let whole = text(&keep.path().join("whole.setun"));
    let outcome = with(&["convert", &narrow, &whole, "--to", "setun"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    assert_eq!(logits(&whole, &[]), logits(&narrow, &["--i2s-interleave", "64"]));

    let prompt = ["run", "ab", "--max-tokens", "2", "--seed", "1", "--model"];
    let outcome = with(&[&prompt[..], &[&narrow]].concat());
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
}

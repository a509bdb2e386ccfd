//! ONNX files: what they hold, and what is refused of them.

use std::{collections::BTreeMap, path::Path};

use crate::support::{Checkpoint, Folder, golden, read, replace_all};
use proptest::{collection::vec, prelude::*};
use setun_checkpoint::{CheckpointError, Dtype, Source, blocks, dense};
use setun_ops::ternary::{Scales, TernaryMatrix};

const MODEL: &str = "model.onnx";

/// The files of a checkpoint, and those of an export of it.
fn export(checkpoint: &str, name: &str) -> Folder {
    fn add(folder: &mut Folder, path: &Path, prefix: &str) {
        for entry in path.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
            if path.is_dir() {
                add(folder, &path, &format!("{name}/"));
            } else {
                folder.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    let mut folder = golden(checkpoint);
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/onnx");
    add(&mut folder, &Path::new(fixtures).join(name), "");
    folder
}

fn genai() -> Folder {
    export("bitnet-h64/packed", "genai")
}

fn open(folder: &Folder, file: &str) -> Result<Checkpoint, CheckpointError> {
    read(Source::File(file.to_owned()), folder)
}

/// The model with texts in its bytes replaced by others of the same length, each everywhere.
fn with(changes: &[(&[u8], &[u8])]) -> Folder {
    let mut folder = genai();
    for (from, to) in changes {
        replace_all(folder.get_mut(MODEL).unwrap(), from, to);
    }
    folder
}

fn refused(changes: &[(&[u8], &[u8])]) -> String {
    convert(open(&with(changes), MODEL)).unwrap_err().to_string()
}

/// Makes weights of all tensors.
fn convert(checkpoint: Result<Checkpoint, CheckpointError>) -> Result<(), CheckpointError> {
    for tensor in checkpoint?.tensors {
        if tensor.info.dtype == Dtype::ScaledCodes {
            let (rows, columns) = tensor.info.expect_matrix()?;
            let (codes, scales) = blocks::unpack(&tensor)?;
            let matrix = TernaryMatrix::new(rows, columns, codes, scales);
            matrix.expect("codes and scales are checked");
        } else if tensor.info.shape.len() == 2 {
            dense::table(tensor)?;
        } else {
            dense::vector(&tensor)?;
        }
    }
    Ok(())
}

#[test]
fn tensors_have_canonical_names() {
    let expected = read(Source::Folder, &golden("bitnet-h64/packed")).unwrap();
    let mut names: Vec<_> = expected.tensors.iter().map(|tensor| &tensor.info.name).collect();
    names.retain(|name| !name.ends_with("_scale"));
    names.sort();
    for (name, file) in [("genai", MODEL), ("mixed", MODEL), ("fused", "onnx/model_q2.onnx")] {
        let found = open(&export("bitnet-h64/packed", name), file).unwrap();
        assert_eq!(found.config, expected.config);
        let mut found: Vec<_> = found.tensors.iter().map(|tensor| &tensor.info.name).collect();
        found.sort();
        assert_eq!(found, names, "{name}");
    }
}

#[test]
fn uniform_scales_are_one() {
    let found = open(&export("bitnet-h64/packed", "fused"), "onnx/model_q2.onnx").unwrap();
    let matrices = found.tensors.iter().filter(|tensor| tensor.info.dtype == Dtype::ScaledCodes);
    let scales: Vec<_> = matrices.map(|tensor| blocks::unpack(tensor).unwrap().1).collect();
    assert_eq!(scales.len(), 3 * 7);
    assert!(scales.iter().all(|scales| matches!(scales, Scales::Tensor(scale) if *scale > 0.0)));
}

#[test]
fn the_first_layer_comes_first() {
    let found = open(&genai(), MODEL).unwrap();
    let is_first = |name: &str| name.contains(".layers.0.");
    assert!(found.tensors.iter().map(|tensor| !is_first(&tensor.info.name)).is_sorted());
}

#[test]
fn elements_in_the_file_are_read_once() {
    let folder = genai();
    let wants = open(&folder, MODEL).unwrap().wants;
    let ranges =
        wants.iter().filter(|want| want.file == MODEL).filter_map(|want| want.range.clone());
    let read: u64 = ranges.map(|range| range.end - range.start).sum();
    assert!(read < 2 * folder[MODEL].len() as u64, "{read}");
}

#[test]
fn small_files_lie_beside_or_above() {
    let deep = |from: Folder, prefix: &str| -> Folder {
        from.into_iter().map(|(name, bytes)| (format!("{prefix}{name}"), bytes)).collect()
    };
    let fused = export("bitnet-h64/packed", "fused");
    assert!(open(&deep(fused.clone(), "a/b/"), "a/b/onnx/model_q2.onnx").is_ok());
    assert!(open(&deep(genai(), "a/b/"), "a/b/model.onnx").is_ok());
    // One that lies beside counts before one above.
    let mut both = fused;
    both.insert("onnx/config.json".to_owned(), b"{}".to_vec());
    assert!(open(&both, "onnx/model_q2.onnx").is_err());
    let mut none = genai();
    none.remove("config.json");
    let error = open(&none, MODEL).unwrap_err();
    assert_eq!(error, CheckpointError::MissingFile { file: "config.json".to_owned() });
}

#[test]
fn a_silent_configuration_is_one_of_stored_codes() {
    let folder = export("llama-rmsnorm-bias/packed", "bias");
    let config = String::from_utf8(folder["config.json"].clone()).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&config).unwrap();
    value.as_object_mut().unwrap().remove("quantization_config");
    let mut silent = folder;
    silent.insert("config.json".to_owned(), value.to_string().into_bytes());
    assert_eq!(convert(open(&silent, MODEL)), Ok(()));
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    for (changes, says) in [
        (
            &[(&b"/q_proj/"[..], &b"/x_proj/"[..]), (b".q_proj.", b".x_proj.")][..],
            "node `/model/layers.0/attn/x_proj/MatMul` (MatMulNBits): neither its name nor that of its \
          weight, `model.layers.0.attn.x_proj.MatMul.weight_Q2`, is one of a known layer",
        ),
        (
            &[(b"/up_proj/", b"/xx_proj/"), (b".up_proj.", b".xx_proj.")],
            "node `/model/layers.0/mlp/xx_proj/MatMul` (MatMulNBits)",
        ),
        (
            &[
                (b"layers.1.input_layernorm", b"layers.1.inputxlayernorm"),
                (b"layers.1/input_layernorm", b"layers.1/inputxlayernorm"),
            ],
            "initializer `model.layers.1.inputxlayernorm.weight`: its use by node \
          `/model/layers.1/inputxlayernorm/SkipLayerNorm` (SkipSimplifiedLayerNormalization) is not",
        ),
        (
            &[(b"MatMulNBits", b"MatMulXBits")],
            "initializer `model.layers.0.attn.q_proj.MatMul.weight_Q2`: its use by node \
          `/model/layers.0/attn/q_proj/MatMul` (MatMulXBits)",
        ),
        (&[(b"\x0a\x04bits\x18\x02", b"\x0a\x04bits\x18\x04")], "its `bits` is 4, only 2"),
        (&[(b"block_size\x18\x20", b"block_size\x18\x21")], "its `block_size` is 33"),
        (
            &[(b"block_size\x18\x20", b"block_size\x18\x40")],
            "its scales have shape [64, 2] and type 1, expected [64, 1]",
        ),
        (&[(b"\x0a\x01K\x18\x40", b"\x0a\x01K\x18\x60")], "its codes have shape [64, 2, 8]"),
        (&[(b"\x0a\x01N\x18\x40", b"\x0a\x01N\x18\x41")], "expected [65, 16]"),
        (&[(b"\x0a\x01N\x18\x40", b"\x0a\x01N\x18\x00")], "its `N` is missing or out of range"),
    ] {
        let error = refused(changes);
        let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(error.contains(&says), "`{error}` does not say `{says}`");
    }
}

/// The `mixed` export with one of several places of a text changed.
fn mixed_with(from: &[u8], to: &[u8], which: usize) -> String {
    let mut folder = export("bitnet-h64/packed", "mixed");
    let bytes = folder.get_mut(MODEL).unwrap();
    let mut places = (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from));
    let place = places.nth(which).unwrap();
    bytes[place..place + to.len()].copy_from_slice(to);
    convert(open(&folder, MODEL)).unwrap_err().to_string()
}

#[test]
fn a_scale_must_be_found() {
    let operation = |which| mixed_with(b"\x22\x03Mul", b"\x22\x03Mux", which);
    let error = operation(0);
    let says = "initializer `model.layers.0.self_attn.o_proj.weight_scale`: its use by node";
    assert!(error.contains(says), "{error}");
    let error = operation(1);
    let says = "node `/model/layers.1/self_attn/q_proj/MatMul` (MatMul): its weights are −1, 0 and \
                +1, and no scale of them is known";
    assert!(error.contains(says), "{error}");
    let name = b"/model/layers.0/self_attn/o_proj/Mul\x22";
    let error = mixed_with(name, b"/model/layers.0/self_attn/x_proj", 0);
    assert!(error.contains("x_proj/Mul` (Mul): what it scales is not known"), "{error}");
}

#[test]
fn other_products_are_refused() {
    let folder = export("llama-rmsnorm-bias/packed", "bias");
    let changed = |from: &[u8], to: &[u8]| {
        let mut folder = folder.clone();
        let bytes = folder.get_mut(MODEL).unwrap();
        let place = (0..bytes.len() - from.len()).find(|&at| bytes[at..].starts_with(from));
        let place = place.unwrap();
        bytes[place..place + to.len()].copy_from_slice(to);
        convert(open(&folder, MODEL)).unwrap_err().to_string()
    };
    let error = changed(b"transB\x18\x01", b"transA\x18\x01");
    assert!(error.contains("(Gemm): it has a transposed input or a factor"), "{error}");
    // A parameter's integer becomes a graph.
    let error = changed(b"transB\x18\x01\xa0\x01\x02", b"transB\x32\x03\x3a\x01\x78");
    assert!(error.contains("(Gemm): it holds graphs"), "{error}");
}

#[test]
fn a_weight_that_is_not_ternary_is_named() {
    let mut folder = genai();
    let model = folder.get_mut(MODEL).unwrap();
    let name = b"model.layers.2.mlp.up_proj.MatMul.weight_Q2";
    let place = (0..model.len()).rfind(|&at| model[at..].starts_with(name)).unwrap();
    // The elements follow the name: a tag and two bytes of length, then rows of 2 · 8 bytes.
    model[place + name.len() + 3 + 16 * 5 + 9] = 0b10_10_00_10;
    let error = convert(open(&folder, MODEL)).unwrap_err().to_string();
    assert_eq!(
        error,
        "model.onnx: node `/model/layers.2/mlp/up_proj/MatMul` (MatMulNBits): tensor \
         `model.layers.2.mlp.up_proj.weight` is not ternary at row 5, column 37"
    );
}

#[test]
fn data_lie_in_files_beside() {
    let fused = export("bitnet-h64/packed", "fused");
    let (file, name) = ("onnx/model_q2.onnx", b"model_q2.onnx_data");
    for bad in
        ["../q2.onnx_data___", "/odel_q2.onnx_data", "a/del_q2.onnx_data", ".odel_q2.onnx_data"]
    {
        let bad = &bad.as_bytes()[..name.len()];
        let mut folder = fused.clone();
        let model = folder.get_mut(file).unwrap();
        let place = (0..model.len()).find(|&at| model[at..].starts_with(name)).unwrap();
        model[place..place + bad.len()].copy_from_slice(bad);
        let error = open(&folder, file).unwrap_err();
        assert!(matches!(error, CheckpointError::OnnxTensor { .. }), "{error}");
        assert!(error.to_string().contains("expected the plain name of a file"), "{error}");
    }
    let mut none = fused.clone();
    none.remove("onnx/model_q2.onnx_data");
    let error = open(&none, file).unwrap_err();
    assert!(matches!(error, CheckpointError::MissingFile { .. }), "{error}");
    let mut short = fused;
    short.get_mut("onnx/model_q2.onnx_data").unwrap().truncate(70_000);
    let error = open(&short, file).unwrap_err();
    assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
}

#[test]
fn every_truncation_is_seen() {
    let folder = genai();
    let whole = &folder[MODEL];
    // What follows the graph is not read.
    let graph_end = whole.len() - 64;
    for length in (0..graph_end).step_by(7) {
        let mut folder = folder.clone();
        folder.insert(MODEL.to_owned(), whole[..length].to_vec());
        let error = open(&folder, MODEL).unwrap_err();
        assert!(matches!(error, CheckpointError::Truncated { .. }), "{length}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Whatever some bytes become, reading and converting end with values or an error.
    #[test]
    fn changed_bytes_do_no_harm(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        which in 0..4_usize,
    ) {
        thread_local! {
            static FOLDERS: [(Folder, &'static str); 4] = [
                (genai(), MODEL),
                (export("bitnet-h64/packed", "mixed"), MODEL),
                (export("bitnet-h64/packed", "fused"), "onnx/model_q2.onnx"),
                (export("llama-rmsnorm-bias/packed", "bias"), MODEL),
            ];
        }
        FOLDERS.with(|folders| {
            let (folder, file) = &folders[which];
            let mut folder: BTreeMap<_, _> = folder.clone();
            let bytes = folder.get_mut(*file).unwrap();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let _ = convert(open(&folder, file));
        });
    }
}

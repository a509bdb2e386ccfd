//! Embeddings and heads that an ONNX file stores as integers.

use crate::support::{Checkpoint, Folder, golden, read, replace_all};
use proptest::{collection::vec, prelude::*};
use serde_json::Value;
use setun_checkpoint::{CheckpointError, Dtype, Source, Warning, dense};
use setun_ops::dense::DenseMatrix;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/onnx/tables");
const MODEL: &str = "model.onnx";

/// An export by its name; the head is the embedding, or has a table of its own.
fn export(name: &str, tied: bool) -> Folder {
    let mut folder = golden("bitnet-h64/master");
    let bytes = std::fs::read(format!("{FIXTURES}/{name}.onnx")).unwrap();
    folder.insert(MODEL.to_owned(), bytes);
    let mut config: Value = serde_json::from_slice(&folder["config.json"]).unwrap();
    config["tie_word_embeddings"] = tied.into();
    folder.insert("config.json".to_owned(), config.to_string().into_bytes());
    folder
}

fn open(folder: &Folder) -> Result<Checkpoint, CheckpointError> {
    read(Source::File(MODEL.to_owned()), folder)
}

/// A table of a checkpoint, and the type that its header says.
fn table(checkpoint: Checkpoint, name: &str) -> Option<(Dtype, DenseMatrix)> {
    let tensor = checkpoint.tensors.into_iter().find(|tensor| tensor.info.name == name)?;
    Some((tensor.info.dtype, dense::table(tensor).unwrap()))
}

/// Rows of a table as `make.py` computes them, which is as onnxruntime does.
fn check(table: &DenseMatrix, rows: &Value, expected: &Value) {
    let text = expected.as_str().unwrap();
    let bytes: Vec<_> = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect();
    let values: Vec<_> = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
    let rows = rows.as_array().unwrap();
    assert_eq!((table.columns(), values.len()), (64, 64 * rows.len()));
    for (row, expected) in rows.iter().zip(values.chunks_exact(64)) {
        let mut found = [0.0; 64];
        let row = usize::try_from(row.as_u64().unwrap()).unwrap();
        table.widen_row(row, &mut found);
        assert_eq!(found, expected, "row {row}");
    }
}

#[test]
fn rows_are_those_of_the_operation() {
    let text = std::fs::read_to_string(format!("{FIXTURES}/tables.json")).unwrap();
    let text: Value = serde_json::from_str(&text).unwrap();
    let scaled = Dtype::ScaledTable;
    for (name, embedding, head) in [
        ("two", scaled(128), scaled(32)),
        ("two-by-32", scaled(32), scaled(32)),
        ("four", Dtype::F32, Dtype::F16),
        ("eight", Dtype::F32, Dtype::F32),
        ("int4", Dtype::F32, Dtype::F32),
        ("uint4", Dtype::F16, Dtype::F16),
        ("shared", Dtype::F16, Dtype::F16),
    ] {
        let expected = &text["tables"][name];
        for (tensor, key, dtype) in [
            ("model.embed_tokens.weight", "embedding", embedding),
            ("lm_head.weight", "head", head),
        ] {
            let (found, table) = table(open(&export(name, false)).unwrap(), tensor).unwrap();
            assert_eq!(found, dtype, "{name}");
            check(&table, &text["rows"], &expected[key]);
        }
    }
}

#[test]
fn a_tied_head_is_the_embedding() {
    for (name, warns) in [("two", true), ("shared", false)] {
        let checkpoint = open(&export(name, true)).unwrap();
        let says = |warning: &Warning| warning.what.contains("is the embedding instead");
        assert_eq!(checkpoint.warnings.iter().any(says), warns, "{name}");
        assert!(table(checkpoint, "lm_head.weight").is_none());
    }
}

/// The error of an export with all places of a text replaced by another of the same length.
fn refused(name: &str, from: &[u8], to: &[u8]) -> String {
    let mut folder = export(name, false);
    replace_all(folder.get_mut(MODEL).unwrap(), from, to);
    open(&folder).unwrap_err().to_string()
}

#[test]
fn other_tables_are_refused_by_name() {
    let node = "node `/model/embed_tokens/Gather_Quant` (GatherBlockQuantized): ";
    for (found, says) in [
        (refused("eight", b"bits\x18\x08", b"bits\x18\x03"), "its `bits` is 3"),
        (refused("four", b"block_size\x18\x10", b"block_size\x18\x08"), "its `block_size` is 8"),
        (
            refused("four", b"block_size\x18\x10", b"block_size\x18\x20"),
            "its scales have shape [263, 4] and type 1, expected [263, 2]",
        ),
        (
            refused("eight", b"gather_axis\x18\x00", b"gather_axis\x18\x01"),
            "it gathers along axis 1 of a table quantized along 1, only 0 and 1 are supported",
        ),
        (
            refused("eight", b"quantize_axis\x18\x01", b"quantize_axis\x18\x00"),
            "quantized along 0, only",
        ),
        (
            refused(
                "int4",
                b"\x10\x16\x42\x1fmodel_embed_tokens_weight_q",
                b"\x10\x15\x42\x1fmodel_embed_tokens_weight_q",
            ),
            "its zero points are not of the type and shape of its table",
        ),
    ] {
        assert!(found.contains(node) && found.contains(says), "`{found}` does not say `{says}`");
    }
    let found = refused("eight", b"embed_tokens", b"embed_tokenz");
    assert!(found.contains("which are not known to be embeddings"), "{found}");
}

#[test]
fn two_bits_must_be_ternary() {
    let mut folder = export("two", false);
    let model = folder.get_mut(MODEL).unwrap();
    // The elements follow the last mention of the name: a tag and two bytes of length, then rows
    // of 16 bytes.
    let name = b"model_embed_tokens_weight_quant";
    let place = (0..model.len()).rfind(|&at| model[at..].starts_with(name)).unwrap();
    model[place + name.len() + 3 + 16 * 7..][..16].fill(0b11_10_01_00);
    assert_eq!(
        open(&folder).unwrap_err().to_string(),
        "model.onnx: node `/model/embed_tokens/Gather_Quant` (GatherBlockQuantized): tensor \
         `model.embed_tokens.weight` is not ternary at row 7, column 0"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever some bytes become, a table is read, or there is an error.
    #[test]
    fn changed_bytes_do_no_harm(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        which in 0..4_usize,
    ) {
        thread_local! {
            static FOLDERS: [Folder; 4] =
                ["two", "eight", "int4", "shared"].map(|name| export(name, false));
        }
        let mut folder = FOLDERS.with(|folders| folders[which].clone());
        let bytes = folder.get_mut(MODEL).unwrap();
        // Most of a file is elements; its graph comes first.
        let graph = bytes.len().min(12_000);
        for (place, byte) in changes {
            bytes[place.index(graph)] = byte;
        }
        let tensors = open(&folder).map(|checkpoint| checkpoint.tensors).unwrap_or_default();
        for tensor in tensors.into_iter().filter(|tensor| !tensor.info.name.contains("_proj")) {
            let _ = dense::table(tensor);
        }
    }
}

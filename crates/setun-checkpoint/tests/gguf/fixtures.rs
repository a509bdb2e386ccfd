//! The files of `tests/fixtures/gguf`, and what their script says that is in them.

use std::path::PathBuf;

use setun_checkpoint::{CheckpointError, Options, Source, blocks, dense};
use setun_ops::ternary::{Scales, code_at, row_bytes};

use crate::support::{Checkpoint, Folder, read, read_with};

/// Linear layers, in the order by which the script numbers them.
pub(crate) const LINEARS: [&str; 7] = [
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
];

/// Bytes of a fixture.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let folder = [env!("CARGO_MANIFEST_DIR"), "../../tests/fixtures/gguf", name];
    let path: PathBuf = folder.iter().collect();
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A folder of one fixture.
pub(crate) fn folder(name: &str) -> Folder {
    Folder::from([(name.to_owned(), bytes(name))])
}

pub(crate) fn open(file: &str, folder: &Folder) -> Result<Checkpoint, CheckpointError> {
    read(Source::File(file.to_owned()), folder)
}

/// A fixture that is read with options.
pub(crate) fn open_with(name: &str, options: Options) -> Result<Checkpoint, CheckpointError> {
    read_with(Source::File(name.to_owned()), options, &folder(name))
}

/// A fixture that is read.
pub(crate) fn model(name: &str) -> Checkpoint {
    open(name, &folder(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Code of a weight as the script makes it.
pub(crate) fn code(tensor: usize, place: usize) -> u8 {
    let place = (place + tensor * 1_000_003) as u64;
    let mixed = place.wrapping_mul(2_654_435_761) & 0xffff_ffff;
    u8::try_from((mixed >> 16) % 3).unwrap()
}

/// Scale of a matrix as the script makes it.
pub(crate) fn scale(tensor: usize) -> f32 {
    f32::from(u8::try_from(tensor + 1).unwrap()) / 64.0
}

/// Every weight of every linear layer is what the script says.
pub(crate) fn check_linears(model: &Checkpoint) {
    for (index, linear) in LINEARS.into_iter().enumerate() {
        let name = format!("model.layers.0.{linear}.weight");
        let tensor = model.tensor(&name);
        let (rows, columns) = tensor.info.expect_matrix().unwrap();
        let (codes, scales) = blocks::unpack(tensor).unwrap();
        let wide = row_bytes(columns);
        for row in 0..rows {
            let codes = &codes[row * wide..][..wide];
            for column in 0..wide * 4 {
                let expected =
                    if column < columns { code(index, row * columns + column) } else { 1 };
                assert_eq!(code_at(codes, column), expected, "{name} {row} {column}");
            }
        }
        let beside = model.get(&format!("model.layers.0.{linear}.weight_scale"));
        let factor = beside.map_or(1.0, |beside| dense::scale(beside).unwrap());
        let Scales::Tensor(found) = scales else { panic!("{name}: {scales:?}") };
        assert_eq!(found * factor, scale(index), "{name}");
    }
}

//! Bad checkpoints: each is one typed error, and never a panic.

use std::{collections::BTreeMap, sync::LazyLock};

use crate::support::{Checkpoint, Folder, golden, read, safetensors_of};
use proptest::{collection::vec, prelude::*};
use setun_checkpoint::{
    CheckpointError, Source, Tensor, TensorData, config::LinearClass, dense, files, master, packed,
};

static FOLDER: LazyLock<Folder> = LazyLock::new(|| golden("llama-rmsnorm-bias/packed"));

/// The folder with one file changed.
fn with(name: &str, bytes: impl Into<Vec<u8>>) -> Folder {
    let mut folder = FOLDER.clone();
    folder.insert(name.to_owned(), bytes.into());
    folder
}

fn refused(folder: &Folder) -> CheckpointError {
    read(Source::Folder, folder).unwrap_err()
}

fn header_bytes(file: &[u8]) -> usize {
    let mut length = [0; 8];
    length.copy_from_slice(&file[..8]);
    8 + usize::try_from(u64::from_le_bytes(length)).unwrap()
}

#[test]
fn every_truncation_is_seen() {
    let whole = &FOLDER[files::WEIGHTS];
    let header = header_bytes(whole);
    let in_data = (header..whole.len()).step_by(97).chain([whole.len() - 1]);
    for length in (0..header).chain(in_data) {
        let error = refused(&with(files::WEIGHTS, &whole[..length]));
        match error {
            CheckpointError::Truncated { ref file, expected, found } => {
                assert_eq!((file.as_str(), found), (files::WEIGHTS, length as u64));
                assert!(expected > found, "{error}");
            }
            _ => panic!("{length}: {error}"),
        }
    }
    for name in [files::CONFIG, files::GENERATION_CONFIG] {
        for length in 0..FOLDER[name].len() {
            let error = refused(&with(name, &FOLDER[name][..length]));
            assert!(matches!(error, CheckpointError::Json { .. }), "{name} {length}: {error}");
        }
    }
}

#[test]
fn a_header_that_is_none_is_refused() {
    let refused = |bytes: &[u8]| refused(&with(files::WEIGHTS, bytes));
    let error = refused(b"<!DOCTYPE html><title>404</title>");
    assert!(matches!(error, CheckpointError::HeaderTooLarge { .. }), "{error}");
    let error = refused(&[0; 16]);
    assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
    let error = refused(b"\x04\0\0\0\0\0\0\0{\"\xff\xfe");
    assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
    let error = refused(b"\x02\0\0\0\0\0\0\0{}");
    assert!(matches!(error, CheckpointError::ConfigSize { .. }), "no tensors: {error}");
}

#[test]
fn sizes_that_no_tensor_has_are_refused() {
    let config = String::from_utf8(FOLDER[files::CONFIG].clone()).unwrap();
    for (field, size, limit) in [
        ("vocab_size", 263, 263),
        ("hidden_size", 64, 263),
        ("intermediate_size", 132, 263),
        ("num_hidden_layers", 1, 33),
    ] {
        let text = format!("\"{field}\": {size}");
        assert!(config.contains(&text), "{text}");
        let lie = config.replace(&text, &format!("\"{field}\": 60000"));
        let error = refused(&with(files::CONFIG, lie));
        let file = files::CONFIG.to_owned();
        assert_eq!(error, CheckpointError::ConfigSize { file, field, found: 60_000, limit });
    }
}

#[test]
fn json_of_another_form_is_refused() {
    for text in ["", "[]", "null", "1", "{", "{\"a\": NaN}", "\u{feff}\u{feff}{}"] {
        for name in [files::CONFIG, files::GENERATION_CONFIG] {
            let error = refused(&with(name, text));
            assert!(matches!(error, CheckpointError::Json { .. }), "{name} {text}: {error}");
        }
        let mut folder = with(files::INDEX, text);
        folder.remove(files::WEIGHTS);
        let error = refused(&folder);
        assert!(matches!(error, CheckpointError::Json { .. }), "index {text}: {error}");
    }
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    let error = refused(&with(files::CONFIG, deep));
    assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
}

/// The folder's tensors, one of them changed, read again and converted.
fn converted_with(name: &str, change: impl Fn(&mut TensorData)) -> Result<(), CheckpointError> {
    let mut tensors = read(Source::Folder, &FOLDER).unwrap().tensors;
    let tensor = tensors.iter_mut().find(|tensor| tensor.info.name == name).unwrap();
    change(&mut tensor.data);
    let file = safetensors_of(&tensors, &BTreeMap::new());
    convert_all(read(Source::Folder, &with(files::WEIGHTS, file))?)
}

/// Converts every tensor as its name and type suggest.
fn convert_all(checkpoint: Checkpoint) -> Result<(), CheckpointError> {
    for tensor in checkpoint.tensors {
        convert(tensor)?;
    }
    Ok(())
}

fn convert(tensor: Tensor) -> Result<(), CheckpointError> {
    let shape = tensor.info.shape.clone();
    if tensor.info.name.ends_with("_scale") {
        dense::weight_factor(&tensor, LinearClass::BitLinear)?;
    } else if let (TensorData::Bytes(_), [rows, columns]) = (&tensor.data, &shape[..]) {
        packed::unpack(&tensor, 4 * rows, *columns)?;
    } else if shape.len() == 2 {
        master::quantize(&tensor)?;
        dense::table(tensor)?;
    } else {
        dense::vector(&tensor)?;
    }
    Ok(())
}

#[test]
fn bad_elements_are_refused() {
    assert_eq!(converted_with("lm_head.weight", |_| ()), Ok(()), "unchanged");
    let projection = "model.layers.0.self_attn.q_proj.weight";
    let error = converted_with(projection, |data| {
        let TensorData::Bytes(bytes) = data else { panic!("packed") };
        bytes[2 * 64 + 7] = 0b00_11_00_00;
    });
    let tensor = projection.to_owned();
    assert_eq!(error, Err(CheckpointError::NotTernary { tensor, row: 2 * 16 + 2, column: 7 }));

    let set = |value: f32| {
        move |data: &mut TensorData| {
            let TensorData::Bf16(values) = data else { panic!("BF16") };
            values[0] = half::bf16::from_f32(value);
        }
    };
    for bad in [f32::NAN, f32::INFINITY, 0.0] {
        let error = converted_with(&format!("{projection}_scale"), set(bad)).unwrap_err();
        assert!(matches!(error, CheckpointError::Scale { .. }), "{error}");
    }
    for name in ["model.norm.weight", "lm_head.weight", "model.layers.0.mlp.up_proj.bias"] {
        let error = converted_with(name, set(f32::NAN)).unwrap_err();
        let named =
            matches!(&error, CheckpointError::NotFinite { tensor, index: 0, .. } if tensor == name);
        assert!(named, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever a byte becomes, reading and converting end with values or an error.
    #[test]
    fn changed_bytes_do_no_harm(
        changes in vec((0..3_usize, any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut folder = FOLDER.clone();
        let header = header_bytes(&folder[files::WEIGHTS]);
        for (file, place, byte) in changes {
            let (name, length) = match file {
                0 => (files::WEIGHTS, header),
                1 => (files::WEIGHTS, folder[files::WEIGHTS].len()),
                _ => (files::CONFIG, folder[files::CONFIG].len()),
            };
            folder.get_mut(name).unwrap()[place.index(length)] = byte;
        }
        if let Ok(checkpoint) = read(Source::Folder, &folder) {
            let _ = convert_all(checkpoint);
        }
    }

    /// Digits are where a header can lie and stay JSON.
    #[test]
    fn changed_numbers_do_no_harm(
        changes in vec((any::<prop::sample::Index>(), b'0'..=b'9'), 1..4),
    ) {
        let mut folder = FOLDER.clone();
        let file = folder.get_mut(files::WEIGHTS).unwrap();
        let header = header_bytes(file);
        let digits: Vec<_> = (8..header).filter(|&place| file[place].is_ascii_digit()).collect();
        for (place, digit) in changes {
            file[digits[place.index(digits.len())]] = digit;
        }
        if let Ok(checkpoint) = read(Source::Folder, &folder) {
            let _ = convert_all(checkpoint);
        }
    }

    /// Bytes that are no file at all.
    #[test]
    fn noise_is_refused(header in vec(any::<u8>(), 0..200), length in 0..200_u64) {
        let file = [&length.to_le_bytes()[..], &header].concat();
        prop_assert!(read(Source::Folder, &with(files::WEIGHTS, file)).is_err());
    }
}

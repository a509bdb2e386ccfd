use half::f16;
use setun_ops::ternary::{TernaryMatrix, code_at};

use super::*;

/// The tensors of one row: its codes, and scale and bias of each group.
fn stored(codes: &[u8], numbers: &[(f32, f32)]) -> [Tensor; 3] {
    let words = codes.chunks(WORD_CODES).flat_map(|codes| {
        let fields = (0..).step_by(2).zip(codes);
        fields.fold(0_u32, |word, (shift, &code)| word | u32::from(code) << shift).to_le_bytes()
    });
    let words = TensorData::Bytes(words.collect());
    let shape = [1, numbers.len()];
    let of = |name: &str, values: Vec<f32>| {
        let values = values.into_iter().map(f16::from_f32).collect();
        Tensor::new(name, Dtype::F16, &shape, TensorData::F16(values))
    };
    let (scales, biases) = numbers.iter().copied().unzip();
    [
        Tensor::new("x.weight", Dtype::U32, &[1, codes.len() / WORD_CODES], words),
        of("x.scales", scales),
        of("x.biases", biases),
    ]
}

fn affine([codes, scales, biases]: &[Tensor; 3]) -> Affine<'_> {
    let columns = codes.info.shape[1] * WORD_CODES;
    let group = columns / scales.info.shape[1];
    Affine::new(codes, scales, biases, (1, columns), group).unwrap()
}

/// Codes 0, 1, 2 in turn.
fn in_turn(columns: usize) -> Vec<u8> {
    (0..columns).map(|column| u8::try_from(column % 3).unwrap()).collect()
}

fn weights((codes, scales): &(Aligned<u8>, Scales), columns: usize) -> Vec<f32> {
    let matrix = TernaryMatrix::new(1, columns, codes.clone(), scales.clone()).unwrap();
    let weight = |column| f32::from(code_at(codes, column)) - 1.0;
    (0..columns).map(|column| weight(column) * matrix.scale(0, column)).collect()
}

#[test]
fn weights_are_scale_times_code_plus_bias() {
    // As published, mirrored, shifted by one code, and nothing.
    let numbers = [(0.5, -0.5), (-0.25, 0.25), (2.0, -4.0), (0.0, 0.0)];
    let mut codes = in_turn(128);
    for code in &mut codes[64..96] {
        *code += 1;
    }
    let stored = stored(&codes, &numbers);
    let expected: Vec<f32> = codes
        .iter()
        .enumerate()
        .map(|(column, &code)| {
            let (scale, bias) = numbers[column / 32];
            scale * f32::from(code) + bias
        })
        .collect();
    let unpacked = affine(&stored).unpack().unwrap();
    assert_eq!(weights(&unpacked, 128), expected);
    let values = vec![0.5, 0.25, 2.0, 1.0];
    assert_eq!(unpacked.1, Scales::ColumnGroups { columns: 32, values });
}

#[test]
fn a_matrix_has_as_few_scales_as_say_the_same() {
    let mut codes = in_turn(128);
    codes[32..64].fill(1); // whatever the scale of zeros is
    let stored = stored(&codes, &[(0.5, -0.5), (3.0, -3.0), (-0.5, 0.5), (0.5, -0.5)]);
    assert_eq!(affine(&stored).unpack().unwrap().1, Scales::Tensor(0.5));
}

#[test]
fn what_is_not_ternary_is_named() {
    let not_ternary = |codes: &[u8], numbers: &[(f32, f32)]| {
        let error = affine(&stored(codes, numbers)).unpack().unwrap_err();
        error.to_string()
    };
    let plain = [(0.5, -0.5), (0.5, -0.5)];
    let mut codes = in_turn(64);
    codes[40] = 3;
    let at = "tensor `x.weight` is not ternary at row 0, column 40";
    assert_eq!(not_ternary(&codes, &plain), at);
    let at = "tensor `x.weight` is not ternary at row 0, column 32";
    assert_eq!(not_ternary(&in_turn(64), &[plain[0], (0.5, -0.499_755_86)]), at);
    assert_eq!(not_ternary(&in_turn(64), &[plain[0], (0.0, 0.5)]), at);
    let [codes, scales, mut biases] = stored(&in_turn(64), &plain);
    biases.data = TensorData::F16(vec![f16::NAN; 2].into());
    let error = affine(&[codes, scales, biases]).unpack().unwrap_err();
    assert!(matches!(error, CheckpointError::NotFinite { .. }), "{error}");
}

#[test]
fn of_many_rows_the_first_is_named() {
    const ROWS: usize = 4 * RUN_ROWS;
    let mut bytes = vec![0b01_01_01_01; ROWS * 8];
    (bytes[200 * 8 + 2], bytes[70 * 8 + 7]) = (0xff, 0b11_01_01_01);
    let codes = Tensor::new("x", Dtype::U32, &[ROWS, 2], TensorData::Bytes(bytes.into()));
    let of = |value| TensorData::F32(vec![value; ROWS].into());
    let scales = Tensor::new("s", Dtype::F32, &[ROWS, 1], of(1.0));
    let biases = Tensor::new("b", Dtype::F32, &[ROWS, 1], of(-1.0));
    let affine = Affine::new(&codes, &scales, &biases, (ROWS, 32), 32).unwrap();
    let error = affine.unpack().unwrap_err();
    assert_eq!(error.to_string(), "tensor `x` is not ternary at row 70, column 31");
}

#[test]
fn shapes_are_checked() {
    let [codes, scales, biases] = &stored(&in_turn(96), &[(0.5, -0.5); 3]);
    let check = |columns, group| {
        check(&codes.info, &scales.info, &biases.info, (1, columns), group)
            .map_err(|error| error.to_string())
    };
    assert_eq!(check(96, 32), Ok(()));
    let message = "tensor `x.weight` has 96 columns, which are no whole groups of 64";
    assert_eq!(check(96, 64), Err(message.into()));
    let message = "tensor `x.weight` has shape [1, 6], expected [1, 4]";
    assert_eq!(check(64, 32), Err(message.into()));
    let message = "tensor `x.scales` has shape [1, 3], expected [1, 1]";
    assert_eq!(check(96, 96), Err(message.into()));
}

//! Floating-point tensors: tables, gains, biases, scales.

use setun_ops::{
    aligned::Aligned,
    dense::{DenseMatrix, DenseValues},
    ternary::{PLANE_COLUMNS, Scales, TernaryMatrix},
    weight::ScaleKind,
};

use crate::{
    blocks,
    config::LinearClass,
    dtype::Dtype,
    error::CheckpointError,
    tensor::{Tensor, TensorData, TensorInfo, check_finite},
};

/// A table `[rows, columns]` in its stored type: nothing is rounded or copied. Blocks of integers
/// become `f32`.
///
/// # Errors
///
/// If the tensor is no matrix of floats, of blocks of integers or of ternary blocks, or an element
/// is not finite or not ternary.
pub fn table(tensor: Tensor) -> Result<DenseMatrix, CheckpointError> {
    let (rows, columns) = tensor.info.expect_matrix()?;
    if tensor.info.dtype.is_ternary() {
        let values = DenseValues::Ternary(ternary(&tensor)?);
        let table = DenseMatrix::new(rows, columns, values);
        return table.map_err(|source| tensor.info.no_weight(source));
    }
    let tensor = widened(tensor)?;
    check_finite(&tensor)?;
    let Tensor { info, data } = tensor;
    let values = match data {
        TensorData::F32(values) => DenseValues::F32(values),
        TensorData::F16(values) => DenseValues::F16(values),
        TensorData::Bf16(values) => DenseValues::Bf16(values),
        TensorData::Bytes(_) => return Err(info.not_float()),
    };
    DenseMatrix::new(rows, columns, values).map_err(|source| info.no_weight(source))
}

/// A table of ternary blocks, with their scales as they are stored.
///
/// # Errors
///
/// If the tensor is no matrix of ternary blocks, or a weight or a scale is none.
pub fn ternary(tensor: &Tensor) -> Result<TernaryMatrix, CheckpointError> {
    let (rows, columns) = tensor.info.expect_matrix()?;
    let (codes, scales) = blocks::unpack_table(tensor)?;
    let matrix = TernaryMatrix::new(rows, columns, codes, scales);
    matrix.map_err(|source| tensor.info.no_weight(source))
}

/// A ternary table `[rows, columns]` in floats of a type that holds each product of a code and a
/// scale exactly.
pub(crate) fn in_floats(
    name: &str,
    matrix: TernaryMatrix,
    dtype: Dtype,
) -> Result<Tensor, CheckpointError> {
    let shape = [matrix.rows(), matrix.columns()];
    let mut tensor = Tensor::new(name, dtype, &shape, TensorData::empty(dtype));
    let table = DenseMatrix::new(shape[0], shape[1], DenseValues::Ternary(matrix));
    let table = table.map_err(|source| tensor.info.no_weight(source))?;
    tensor.data = tensor.info.float_rows(|row, wide| table.widen_row(row, wide))?;
    tensor.info.range = 0..tensor.data.byte_len() as u64;
    Ok(tensor)
}

/// The same tensor in `F32`, where it is of blocks of integers ([`blocks::TABLES`]).
///
/// # Errors
///
/// If it has not as many bytes as its type and shape need, or there is no memory.
pub fn widened(tensor: Tensor) -> Result<Tensor, CheckpointError> {
    if !blocks::TABLES.contains(&tensor.info.dtype) {
        return Ok(tensor);
    }
    let data = TensorData::F32(blocks::floats(&tensor)?);
    Ok(Tensor { info: TensorInfo { dtype: Dtype::F32, ..tensor.info }, data })
}

/// A table of int8 codes `I8 [rows, columns]`, from which [`with_scales`](Int8Codes::with_scales)
/// makes a matrix.
#[derive(Debug)]
pub struct Int8Codes(Tensor);

impl Int8Codes {
    /// # Errors
    ///
    /// If the tensor is no matrix of `I8`.
    pub fn new(tensor: Tensor) -> Result<Self, CheckpointError> {
        tensor.info.expect_matrix()?;
        tensor.info.expect_dtype(&[Dtype::I8])?;
        Ok(Self(tensor))
    }

    /// The table of which row `r` is these codes times element `r` of `scales`, `F32 [rows]`.
    ///
    /// # Errors
    ///
    /// If the scales are not this many finite numbers, a code is −128, or there is no memory.
    pub fn with_scales(self, scales: &Tensor) -> Result<DenseMatrix, CheckpointError> {
        let Tensor { info, data } = self.0;
        let (rows, columns) = info.expect_matrix()?;
        scales.info.expect_shape(&[rows])?;
        scales.info.expect_dtype(&[Dtype::F32])?;
        let scales = vector(scales)?;
        let TensorData::Bytes(bytes) = data else {
            return Err(info.rank("bytes"));
        };
        let mut codes = Aligned::new();
        let signed = bytes.iter().map(|byte| byte.cast_signed());
        codes.extend(signed).map_err(|error| info.no_memory(error))?;
        drop(bytes);
        let values = DenseValues::Int8Rows { codes, scales };
        DenseMatrix::new(rows, columns, values).map_err(|source| info.no_weight(source))
    }
}

/// Gains or biases `[len]`, widened exactly.
///
/// # Errors
///
/// If the tensor is no vector of floats or of blocks of integers, or an element is not finite.
pub fn vector(tensor: &Tensor) -> Result<Vec<f32>, CheckpointError> {
    if tensor.info.shape.len() != 1 {
        return Err(tensor.info.rank("a vector [len]"));
    }
    if blocks::TABLES.contains(&tensor.info.dtype) {
        let tensor = widened(tensor.clone())?;
        check_finite(&tensor)?;
        return numbers(&tensor);
    }
    check_finite(tensor)?;
    numbers(tensor)
}

/// A scale as it is stored, of shape `[]` or `[1]`, widened exactly.
///
/// # Errors
///
/// If the tensor is not one float, or the float is not finite, or is zero.
pub fn scale(tensor: &Tensor) -> Result<f32, CheckpointError> {
    if !matches!(tensor.info.shape[..], [] | [1]) {
        return Err(tensor.info.rank("one number: [] or [1]"));
    }
    match numbers(tensor)?[..] {
        [scale] if scale.is_finite() && scale != 0.0 => Ok(scale),
        ref values => Err(tensor.info.bad_scale(values.first().copied().unwrap_or(f32::NAN))),
    }
}

/// The factor of a packed matrix's weights, from its `weight_scale`: the scale itself where the
/// class multiplies, its reciprocal, taken once in `f32`, where it divides.
///
/// # Errors
///
/// As [`scale`]; also if the reciprocal is not finite.
pub fn weight_factor(tensor: &Tensor, class: LinearClass) -> Result<f32, CheckpointError> {
    let scale = scale(tensor)?;
    let factor = match class {
        LinearClass::AutoBitLinear => scale,
        LinearClass::BitLinear => 1.0 / scale,
    };
    if factor.is_finite() { Ok(factor) } else { Err(tensor.info.bad_scale(scale)) }
}

/// What the numbers of a scale tensor are for: `[]` and `[1]` for a matrix, `[rows, 1]` for its
/// rows, `[rows, groups]` for groups of `columns / groups` columns each, a multiple of 32.
///
/// # Errors
///
/// If its shape is none of these.
pub fn scale_kind(info: &TensorInfo, columns: usize) -> Result<ScaleKind, CheckpointError> {
    match info.shape[..] {
        [] | [1] => Ok(ScaleKind::Tensor),
        [_, 1] => Ok(ScaleKind::Rows),
        [_, groups]
            if groups > 0
                && columns.is_multiple_of(groups)
                && (columns / groups).is_multiple_of(PLANE_COLUMNS) =>
        {
            Ok(ScaleKind::ColumnGroups(columns / groups))
        }
        _ => Err(info.rank("[], [1], [rows, 1] or [rows, groups of 32·n columns]")),
    }
}

/// The factors of a matrix's weights from the scales beside it, as [`weight_factor`] has them for
/// each of them.
///
/// # Errors
///
/// As [`scale_kind`] and [`weight_factor`].
pub fn weight_factors(
    tensor: &Tensor,
    class: LinearClass,
    columns: usize,
) -> Result<Scales, CheckpointError> {
    let kind = scale_kind(&tensor.info, columns)?;
    if kind == ScaleKind::Tensor {
        return weight_factor(tensor, class).map(Scales::Tensor);
    }
    let mut values = numbers(tensor)?;
    for value in &mut values {
        let scale = *value;
        if class == LinearClass::BitLinear {
            *value = 1.0 / scale;
        }
        if !value.is_finite() {
            return Err(tensor.info.bad_scale(scale));
        }
    }
    Ok(match kind {
        ScaleKind::ColumnGroups(columns) => Scales::ColumnGroups { columns, values },
        _ => Scales::Rows(values),
    })
}

/// The elements of a tensor of finite floats of any shape, widened exactly.
///
/// # Errors
///
/// If it has others.
pub fn elements(tensor: &Tensor) -> Result<Vec<f32>, CheckpointError> {
    check_finite(tensor)?;
    numbers(tensor)
}

/// The elements of a tensor of floats, widened exactly.
pub(crate) fn numbers(tensor: &Tensor) -> Result<Vec<f32>, CheckpointError> {
    tensor.data.floats().ok_or_else(|| tensor.info.not_float())
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    fn tensor(shape: &[usize], data: TensorData) -> Tensor {
        let dtype = match &data {
            TensorData::F32(_) => Dtype::F32,
            TensorData::F16(_) => Dtype::F16,
            TensorData::Bf16(_) => Dtype::Bf16,
            TensorData::Bytes(_) => Dtype::I32,
        };
        Tensor::new("t", dtype, shape, data)
    }

    #[test]
    fn a_table_keeps_its_type_and_bits() {
        let values = vec![bf16::from_f32(1.5), bf16::from_f32(1e-34), bf16::from_f32(-0.0)];
        let table = table(tensor(&[1, 3], TensorData::Bf16(values.clone().into()))).unwrap();
        assert_eq!((table.rows(), table.columns()), (1, 3));
        assert_eq!(table.values(), &DenseValues::Bf16(values.into()));
        let error = super::table(tensor(&[3], TensorData::F32(vec![0.0; 3].into()))).unwrap_err();
        assert!(matches!(error, CheckpointError::Rank { .. }), "{error}");
        let error =
            super::table(tensor(&[1, 1], TensorData::Bytes(vec![0; 4].into()))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tensor `t` has element type I32, expected F32 or F16 or BF16"
        );
    }

    #[test]
    fn vectors_are_widened_exactly() {
        let values = vec![f16::from_bits(1), f16::MAX];
        let wide = vector(&tensor(&[2], TensorData::F16(values.into()))).unwrap();
        assert_eq!(wide, [2.0_f32.powi(-24), 65504.0]);
    }

    #[test]
    fn the_first_bad_element_is_named() {
        let mut values = vec![bf16::ONE; 10_000];
        (values[9_000], values[9_500]) = (bf16::NEG_INFINITY, bf16::NAN);
        let error = vector(&tensor(&[10_000], TensorData::Bf16(values.into()))).unwrap_err();
        assert_eq!(error.to_string(), "tensor `t`: element 9000 is -inf, expected a finite number");
    }

    #[test]
    fn scales_are_one_number_that_can_be_used() {
        let of =
            |shape: &[usize], value| scale(&tensor(shape, TensorData::F32(vec![value].into())));
        assert_eq!((of(&[], 0.5), of(&[1], -0.5)), (Ok(0.5), Ok(-0.5)));
        for bad in [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let error = of(&[1], bad).unwrap_err();
            assert!(matches!(error, CheckpointError::Scale { .. }), "{bad}: {error}");
        }
        let error = scale(&tensor(&[2], TensorData::F32(vec![1.0; 2].into()))).unwrap_err();
        assert!(matches!(error, CheckpointError::Rank { .. }), "{error}");
    }

    #[test]
    fn a_class_multiplies_or_divides() {
        let factor = |value, class| {
            weight_factor(
                &tensor(&[1], TensorData::Bf16(vec![bf16::from_f32(value)].into())),
                class,
            )
        };
        assert_eq!(factor(3.0, LinearClass::AutoBitLinear), Ok(3.0));
        assert_eq!(factor(3.0, LinearClass::BitLinear), Ok(1.0 / 3.0));
        assert!(factor(1e-39, LinearClass::AutoBitLinear).is_ok());
        let error = factor(1e-39, LinearClass::BitLinear).unwrap_err();
        assert!(matches!(error, CheckpointError::Scale { .. }), "{error}");
    }
}

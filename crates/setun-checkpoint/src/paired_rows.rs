//! Rows of queries and keys that another `RoPE` paired.
//!
//! GGUF's architecture `llama` turns rows 2i and 2i + 1 of a head together, where Hugging Face's
//! models turn i and i + d/2. Its writer moved the rows accordingly; here they move back.

use setun_ops::{
    OpsError,
    ternary::{Scales, TernaryMatrix},
};

use crate::{
    dense,
    error::CheckpointError,
    tensor::{Tensor, TensorData, TensorInfo},
};

/// The tensor with its rows in the order of Hugging Face's models.
///
/// # Errors
///
/// If its rows do not come in pairs of whole heads, or a row is no run of whole bytes.
pub(crate) fn in_order(mut tensor: Tensor) -> Result<Tensor, CheckpointError> {
    let Some(heads) = tensor.info.paired_heads.take() else {
        return Ok(tensor);
    };
    if tensor.info.shape.len() == 1 {
        tensor = dense::widened(tensor)?; // its rows are elements, and blocks hold many
    }
    let info = &tensor.info;
    let rows = info.shape.first().copied().unwrap_or(0);
    if heads == 0 || !rows.is_multiple_of(2 * heads) {
        return Err(info.rank("rows in pairs, of whole heads"));
    }
    let head_dim = rows / heads;
    match &mut tensor.data {
        TensorData::F32(values) => move_rows(values, rows, head_dim),
        TensorData::F16(values) => move_rows(values, rows, head_dim),
        TensorData::Bf16(values) => move_rows(values, rows, head_dim),
        TensorData::Bytes(bytes) => {
            let end = data_bytes(&tensor.info, bytes.len());
            if !end.is_multiple_of(rows) {
                return Err(tensor.info.rank("rows of whole bytes"));
            }
            move_rows(&mut bytes[..end], rows, head_dim);
        }
    }
    Ok(tensor)
}

/// Bytes of the rows, without what follows them.
fn data_bytes(info: &TensorInfo, bytes: usize) -> usize {
    use crate::dtype::{Dtype, I2S_TAIL};
    match info.dtype {
        Dtype::I2S | Dtype::I2SNarrow => bytes.saturating_sub(I2S_TAIL),
        _ => bytes,
    }
}

/// Row 2i + j of each head becomes row i + j · `head_dim` / 2.
fn move_rows<T: Copy>(values: &mut [T], rows: usize, head_dim: usize) {
    let width = values.len() / rows;
    if width == 0 {
        return;
    }
    for head in values.chunks_exact_mut(head_dim * width) {
        let paired = head.to_vec();
        let (first, second) = head.split_at_mut(head_dim / 2 * width);
        let halves = first.chunks_exact_mut(width).zip(second.chunks_exact_mut(width));
        for (pair, (low, high)) in paired.chunks_exact(2 * width).zip(halves) {
            low.copy_from_slice(&pair[..width]);
            high.copy_from_slice(&pair[width..]);
        }
    }
}

/// Rows in pairs again: row i of a head becomes 2i, row i + d/2 becomes 2i + 1. Whole heads.
pub(crate) fn paired<T: Copy>(values: &[T], heads: usize) -> Vec<T> {
    moved(values, values.len(), heads)
}

/// The matrix with its rows in pairs.
///
/// # Errors
///
/// If the rows do not come in pairs of whole heads.
pub(crate) fn paired_matrix(
    matrix: &TernaryMatrix,
    heads: usize,
) -> Result<TernaryMatrix, OpsError> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if heads == 0 || !rows.is_multiple_of(2 * heads) {
        let expected = rows.next_multiple_of(2 * heads.max(1));
        return Err(OpsError::Length { what: "rows of heads", expected, found: rows });
    }
    let codes = moved(matrix.codes(), rows, heads);
    let scales = match matrix.scales() {
        Scales::Tensor(scale) => Scales::Tensor(*scale),
        Scales::Rows(values) => Scales::Rows(moved(values, rows, heads)),
        Scales::ColumnGroups { columns, values } => {
            Scales::ColumnGroups { columns: *columns, values: moved(values, rows, heads) }
        }
    };
    TernaryMatrix::new(rows, columns, codes, scales)
}

fn moved<T: Copy>(values: &[T], rows: usize, heads: usize) -> Vec<T> {
    let (width, head_dim) = (values.len() / rows.max(1), rows / heads.max(1));
    let mut moved = Vec::with_capacity(values.len());
    for head in values.chunks_exact((head_dim * width).max(1)) {
        let (first, second) = head.split_at(head_dim / 2 * width);
        let pairs = first.chunks_exact(width.max(1)).zip(second.chunks_exact(width.max(1)));
        pairs.for_each(|(low, high)| {
            moved.extend_from_slice(low);
            moved.extend_from_slice(high);
        });
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;

    fn tensor(rows: usize, heads: usize, data: TensorData) -> Tensor {
        let mut tensor = Tensor::new("q", Dtype::F32, &[rows, 1], data);
        tensor.info.paired_heads = Some(heads);
        tensor
    }

    #[test]
    fn rows_of_each_head_move_back() {
        // Two heads of six rows: 0 3 1 4 2 5 is how the other order lists the rows of this one.
        let paired = [0_u8, 3, 1, 4, 2, 5, 10, 13, 11, 14, 12, 15].map(f32::from);
        let found = in_order(tensor(12, 2, TensorData::F32(paired.to_vec().into()))).unwrap();
        let rows = [0_u8, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15].map(f32::from);
        assert_eq!(found.data, TensorData::F32(rows.to_vec().into()));
        assert_eq!(found.info.paired_heads, None);
    }

    #[test]
    fn rows_go_there_and_back() {
        let ordered: Vec<u8> = (0..16).collect();
        assert_eq!(paired(&ordered, 2)[..8], [0, 4, 1, 5, 2, 6, 3, 7]);
        let floats: Vec<f32> = paired(&ordered, 2).into_iter().map(f32::from).collect();
        let found = in_order(tensor(16, 2, TensorData::F32(floats.into()))).unwrap();
        let expected: Vec<f32> = ordered.into_iter().map(f32::from).collect();
        assert_eq!(found.data, TensorData::F32(expected.into()));
    }

    #[test]
    fn rows_that_do_not_pair_are_refused() {
        let odd = tensor(6, 2, TensorData::F32(vec![0.0; 6].into()));
        assert!(in_order(odd).is_err());
        let none = tensor(6, 0, TensorData::F32(vec![0.0; 6].into()));
        assert!(in_order(none).is_err());
    }
}

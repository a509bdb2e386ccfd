//! Orders of rows and columns in which matrices are used.

use setun_ops::delta_net::DeltaNetShape;

/// The blocks of columns of a tiled output matrix in grouped order.
pub(super) fn grouped_blocks(shape: DeltaNetShape) -> Vec<usize> {
    let of_key = |key_head| (0..shape.group()).map(move |index| (key_head, index));
    let heads = (0..shape.key_heads).flat_map(of_key);
    heads.map(|(key, index)| shape.output_column(key, index) / shape.value_dim).collect()
}

/// Queries, then keys and values, then gates, of rows that have a gate after the query of each head.
pub(super) fn gates_last(heads: usize, head_dim: usize, kv: usize) -> Vec<usize> {
    let rows = |part: usize| {
        (0..heads)
            .flat_map(move |head| (0..head_dim).map(move |row| (2 * head + part) * head_dim + row))
    };
    let stacked = 2 * heads * head_dim;
    rows(0).chain(stacked..stacked + 2 * kv).chain(rows(1)).collect()
}

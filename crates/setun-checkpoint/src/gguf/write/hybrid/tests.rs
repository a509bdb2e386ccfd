//! Keys and orders that the fixtures do not show.

use super::*;

#[test]
fn sections_leave_no_pair_to_the_fourth_position() {
    assert_eq!(sections(32), [11, 11, 10, 0]);
    assert_eq!(sections(8), [3, 3, 2, 0]);
    for pairs in 0..40 {
        let sum: i32 = sections(pairs).iter().sum();
        assert_eq!(usize::try_from(sum), Ok(pairs));
    }
}

#[test]
fn an_interval_is_written_only_where_layers_keep_to_it() {
    assert_eq!(interval(&[true, true, true, false, true, true, true, false]), Some(4));
    assert_eq!(interval(&[true, true, false, true]), Some(3));
    assert_eq!(interval(&[false, false]), Some(1));
    assert_eq!(interval(&[true, false, false]), None);
    assert_eq!(interval(&[true, true]), None);
}

#[test]
fn tiled_heads_take_key_heads_in_turn() {
    let shape = DeltaNetShape {
        key_heads: 2,
        value_heads: 6,
        key_dim: 4,
        value_dim: 4,
        kernel: 4,
        order: HeadOrder::Grouped,
        output_order: HeadOrder::Grouped,
    };
    assert_eq!(tiled(shape), [0, 3, 1, 4, 2, 5]);
}

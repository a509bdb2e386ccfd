//! As few scales as say the same.

use half::{bf16, f16};
use setun_ops::ternary::Scales;

use crate::config::LinearClass;

/// The scales of a matrix whose rows have `groups` groups of `width` columns, the last perhaps
/// fewer: one where all are equal, one for each row where all of a row are, else the widest groups
/// that are a multiple of those given and divide the columns. Zero stands for a group without a
/// weight other than zero, which any scale suits; the default is 1.
pub(crate) fn fewest(values: &[f32], groups: usize, width: usize, columns: usize) -> Scales {
    if let Some(scale) = common(values) {
        return Scales::Tensor(scale.unwrap_or(1.0));
    }
    let rows = || values.chunks_exact(groups.max(1));
    if let Some(rows) = rows().map(common).collect::<Option<Vec<_>>>() {
        return Scales::Rows(rows.into_iter().map(|scale| scale.unwrap_or(1.0)).collect());
    }
    let wider = (1..groups).rev().filter(|&times| {
        let wide = times * width;
        times > 1 && columns.is_multiple_of(wide)
    });
    for times in wider {
        let merged = rows().flat_map(|row| row.chunks(times)).map(common);
        if let Some(merged) = merged.collect::<Option<Vec<_>>>() {
            let values = merged.into_iter().map(|scale| scale.unwrap_or(1.0)).collect();
            return Scales::ColumnGroups { columns: times * width, values };
        }
    }
    let values = values.iter().map(|&value| if value == 0.0 { 1.0 } else { value }).collect();
    Scales::ColumnGroups { columns: width, values }
}

/// The one value of some that are not zero, if there is one or none at all.
#[expect(clippy::option_option, reason = "no common value, or none that is needed")]
fn common(values: &[f32]) -> Option<Option<f32>> {
    let mut rest = values.iter().copied().filter(|value| *value != 0.0);
    let first = rest.next();
    rest.all(|value| Some(value) == first).then_some(first)
}

/// The number to store for a factor, where the class multiplies or divides by it: one of 16 bits
/// if there is one, which is then the one that a source had. None where no number has this factor as its reciprocal.
#[must_use]
pub fn stored(factor: f32, class: LinearClass) -> Option<f32> {
    if class == LinearClass::AutoBitLinear {
        return Some(factor);
    }
    let near = 1.0 / factor;
    let short = [bf16::from_f32(near).to_f32(), f16::from_f32(near).to_f32()];
    let bits = near.to_bits();
    let around = (-2..=2).map(|step: i32| f32::from_bits(bits.wrapping_add_signed(step)));
    short.into_iter().chain(around).find(|scale| scale.is_finite() && 1.0 / scale == factor)
}

/// The same scales for each row and each group of `width` columns.
///
/// None where they are by groups that are no multiple of that.
#[must_use]
pub fn by_group(scales: &Scales, rows: usize, columns: usize, width: usize) -> Option<Vec<f32>> {
    let groups = columns.div_ceil(width);
    match scales {
        Scales::Tensor(scale) => Some(vec![*scale; rows * groups]),
        Scales::Rows(values) => {
            Some(values.iter().flat_map(|&value| std::iter::repeat_n(value, groups)).collect())
        }
        Scales::ColumnGroups { columns: wide, values } if wide.is_multiple_of(width) => {
            let of_row = columns.div_ceil(*wide);
            let at = |place: usize| values[place / groups * of_row + place % groups * width / wide];
            Some((0..rows * groups).map(at).collect())
        }
        Scales::ColumnGroups { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fewest(values: &[f32], groups: usize) -> Scales {
        super::fewest(values, groups, 32, groups * 32)
    }

    #[test]
    fn as_few_as_say_the_same() {
        assert_eq!(fewest(&[2.0, 0.0, 2.0, 2.0], 2), Scales::Tensor(2.0));
        assert_eq!(fewest(&[0.0; 4], 2), Scales::Tensor(1.0));
        assert_eq!(fewest(&[2.0, 2.0, 0.0, 0.0, 0.0, 3.0], 2), Scales::Rows(vec![2.0, 1.0, 3.0]));
        let groups = fewest(&[2.0, 0.0, 3.0, 3.0, 0.0, 0.0, 0.0, 4.0], 4);
        let values = vec![2.0, 3.0, 1.0, 4.0];
        assert_eq!(groups, Scales::ColumnGroups { columns: 64, values });
        let narrow = fewest(&[2.0, 3.0, 0.0, 3.0], 4);
        let values = vec![2.0, 3.0, 1.0, 3.0];
        assert_eq!(narrow, Scales::ColumnGroups { columns: 32, values });
        // Three groups cannot be two of equal width.
        let three = fewest(&[2.0, 2.0, 3.0], 3);
        assert!(matches!(three, Scales::ColumnGroups { columns: 32, .. }), "{three:?}");
    }

    #[test]
    fn what_is_stored_gives_the_factor_back() {
        for bits in (0x3c00_0000..0x4400_0000).step_by(9973) {
            let scale = bf16::from_f32(f32::from_bits(bits)).to_f32();
            assert_eq!(stored(1.0 / scale, LinearClass::BitLinear), Some(scale));
            let short = f16::from_f32(f32::from_bits(bits)).to_f32();
            assert_eq!(stored(1.0 / short, LinearClass::BitLinear), Some(short));
            let fine = f32::from_bits(bits);
            let found = stored(1.0 / fine, LinearClass::BitLinear).unwrap();
            assert_eq!(1.0 / found, 1.0 / fine);
            assert_eq!(stored(fine, LinearClass::AutoBitLinear), Some(fine));
        }
    }

    #[test]
    fn scales_are_spread_over_groups() {
        let spread = |scales: &Scales, width| by_group(scales, 2, 128, width);
        assert_eq!(spread(&Scales::Tensor(2.0), 64), Some(vec![2.0; 4]));
        assert_eq!(spread(&Scales::Rows(vec![1.0, 2.0]), 64), Some(vec![1.0, 1.0, 2.0, 2.0]));
        let wide = Scales::ColumnGroups { columns: 64, values: vec![1.0, 2.0, 3.0, 4.0] };
        let narrow = vec![1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0];
        assert_eq!(spread(&wide, 32), Some(narrow));
        assert_eq!(spread(&wide, 128), None);
    }
}

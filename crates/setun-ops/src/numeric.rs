//! Saturating conversions between integer types.

/// `count` as `u32`, or the largest `u32` where it is larger.
#[must_use]
pub fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

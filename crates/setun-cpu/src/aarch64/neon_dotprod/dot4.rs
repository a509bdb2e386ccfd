//! Products of bytes, of which four neighbours are added.
//!
//! The instruction is assembly because its intrinsic, `vdotq_s32`, is not stable in Rust 1.95
//! (rust-lang/rust#117224).

#![expect(unsafe_code, reason = "an instruction without a stable intrinsic")]

use std::arch::{
    aarch64::{int8x16_t, int32x4_t, uint8x16_t},
    asm,
};

/// Adds to each lane the products of the four codes and activations there; codes below 128.
#[target_feature(enable = "neon,dotprod")]
#[inline]
pub(super) fn dot4(mut sums: int32x4_t, codes: uint8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: reads and writes the named registers alone; the function enables the feature.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {codes:v}.16b, {x:v}.16b",
            sums = inout(vreg) sums, codes = in(vreg) codes, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

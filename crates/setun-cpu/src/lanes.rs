//! Float operations over sixteen virtual lanes, the same bits on every instruction set.
//!
//! Element `i` of a row goes to lane `i mod 16`, as [`setun_ops::fold`] says. Only `+ − × ÷`,
//! comparisons and integer operations are used: a plain `min`, `max`, `select`, `mul_add` or
//! conversion to integers would become a relaxed instruction in a relaxed WebAssembly build,
//! whose result may differ between engines. On x86-64 instructions convert f16: as defined but for
//! the payload of a NaN, which ends a generation whatever its payload is.

use fearless_simd::{f32x4, f32x16, i8x16, mask32x16, prelude::*, u16x16, u32x16};
use half::{bf16, f16};
use setun_ops::{
    attention::maximum,
    cache,
    exp::{LN2_HIGH, LN2_LOW, LOG2_E, OVERFLOW, POLYNOMIAL, ROUND, UNDERFLOW},
};

#[cfg(target_arch = "x86_64")]
use crate::x86_64::{
    f16::{round_f16, widen_f16},
    fold::fold_sixteen,
};

/// Lanes of a vector.
pub(crate) const LANES: usize = setun_ops::fold::LANES;

/// An element type that widens exactly to `f32`.
pub(crate) trait Element: Copy + Default {
    /// Widens 16 elements.
    fn widen<S: Simd>(simd: S, elements: &[Self; LANES]) -> f32x16<S>;
}

impl Element for f32 {
    #[inline(always)]
    fn widen<S: Simd>(simd: S, elements: &[Self; LANES]) -> f32x16<S> {
        f32x16::from_slice(simd, elements)
    }
}

impl Element for f16 {
    /// Without an instruction for it, exponents are moved by `127 − 15`; a subnormal is made normal one exponent higher and
    /// freed of the implicit one that it has gained, which is exact.
    #[inline(always)]
    fn widen<S: Simd>(simd: S, elements: &[Self; LANES]) -> f32x16<S> {
        #[cfg(target_arch = "x86_64")]
        if let Some(widened) = widen_f16(simd, bytemuck::cast_ref(elements)) {
            return widened;
        }
        let bits = widen_u16(simd, bytemuck::cast_ref(elements));
        let sign = (bits & 0x8000) << 16;
        let magnitude = (bits & 0x7fff) << 13;
        let normal = magnitude + ((127 - 15) << 23);
        let shifted: f32x16<S> = (magnitude + ((127 - 14) << 23)).bitcast();
        let subnormal: u32x16<S> = (shifted - f32::from_bits((127 - 14) << 23)).bitcast();
        let infinite = magnitude + ((255 - 31) << 23);
        let widened = select(bits_of(magnitude.simd_lt(0x0400 << 13)), subnormal, normal);
        let widened = select(bits_of(magnitude.simd_ge(0x7c00 << 13)), infinite, widened);
        (widened | sign).bitcast()
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn widen<S: Simd>(simd: S, elements: &[Self; LANES]) -> f32x16<S> {
        (widen_u16(simd, bytemuck::cast_ref(elements)) << 16).bitcast()
    }
}

impl Element for i8 {
    #[inline(always)]
    fn widen<S: Simd>(simd: S, elements: &[Self; LANES]) -> f32x16<S> {
        let (low, high) = i8x16::from_slice(simd, elements).widen();
        let ((a, b), (c, d)) = (low.widen(), high.widen());
        f32x16::float_from(a.combine(b).combine(c.combine(d)))
    }
}

/// Widens a vector.
pub(crate) fn widen<S: Simd, E: Element>(simd: S, elements: &[E], out: &mut [f32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            let (chunks, rest) = elements.as_chunks::<LANES>();
            let (outs, rest_out) = out.as_chunks_mut::<LANES>();
            for (elements, out) in chunks.iter().zip(outs) {
                E::widen(simd, elements).store_slice(out);
            }
            let widened: [f32; LANES] = E::widen(simd, &padded(rest)).into();
            rest_out.copy_from_slice(&widened[..rest.len()]);
        },
    );
}

/// Rounds a vector as [`setun_ops::cache::round_f16`] does.
pub(crate) fn round_to_f16<S: Simd>(simd: S, x: &[f32], out: &mut [f16]) {
    simd.vectorize(
        #[inline(always)]
        || {
            let (chunks, rest) = x.as_chunks::<LANES>();
            let (outs, rest_out) = out.as_chunks_mut::<LANES>();
            for (x, out) in chunks.iter().zip(outs) {
                *out = round_lanes(simd, x);
            }
            rest_out.copy_from_slice(&round_lanes(simd, &padded(rest))[..rest.len()]);
        },
    );
}

#[inline(always)]
fn round_lanes<S: Simd>(simd: S, x: &[f32; LANES]) -> [f16; LANES] {
    #[cfg(target_arch = "x86_64")]
    if let Some(bits) = round_f16(simd, x) {
        // An infinity becomes the greatest number, whose bits come right before.
        let infinite: u16x16<S> = (bits & 0x7fff).simd_eq(0x7c00).to_vector().bitcast();
        let saturated: [u16; LANES] = (bits + infinite).into();
        return bytemuck::cast(saturated);
    }
    let _ = simd;
    x.map(cache::round_f16)
}

#[inline(always)]
fn widen_u16<S: Simd>(simd: S, elements: &[u16; LANES]) -> u32x16<S> {
    let (low, high) = u16x16::from_slice(simd, elements).widen();
    low.combine(high)
}

/// Whether sixteen sums of sixteen lanes have a register each.
#[inline(always)]
pub(crate) fn has_many_registers<S: Simd>(simd: S) -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(simd.level(), fearless_simd::Level::Avx512(_));
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = simd;
        false
    }
}

/// Sums of products of `x` with `N` rows of its length, each in the order of a fold.
#[inline(always)]
pub(crate) fn dots<S: Simd, E: Element, const N: usize>(
    simd: S,
    x: &[f32],
    rows: [&[E]; N],
) -> [f32; N] {
    let [sums] = tile_dots(simd, [x], rows);
    sums
}

/// The same for each of `M` vectors of one length; a part of a row is widened once for all.
#[inline(always)]
pub(crate) fn tile_dots<S: Simd, E: Element, const M: usize, const N: usize>(
    simd: S,
    vectors: [&[f32]; M],
    rows: [&[E]; N],
) -> [[f32; N]; M] {
    let width = vectors[0].len();
    let vector_chunks = vectors.map(|vector| &vector.as_chunks::<LANES>().0[..width / LANES]);
    let row_chunks = rows.map(|row| &row.as_chunks::<LANES>().0[..width / LANES]);
    let mut sums = [[f32x16::splat(simd, 0.0); N]; M];
    for index in 0..width / LANES {
        for n in 0..N {
            let row = E::widen(simd, &row_chunks[n][index]);
            for m in 0..M {
                sums[m][n] += f32x16::from_slice(simd, &vector_chunks[m][index]) * row;
            }
        }
    }
    let rest = width / LANES * LANES..width;
    // Apart, so that the sums of whole vectors stay in registers.
    if rest.is_empty() && !cfg!(target_family = "wasm") {
        return fold_tile(simd, &sums);
    }
    if !rest.is_empty() {
        for n in 0..N {
            let row = E::widen(simd, &padded(&rows[n][rest.clone()]));
            for m in 0..M {
                let vector = f32x16::from_slice(simd, &padded(&vectors[m][rest.clone()]));
                sums[m][n] += vector * row;
            }
        }
    }
    fold_tile(simd, &sums)
}

/// The last part of a fold, of each vector of a tile.
#[inline(always)]
fn fold_tile<S: Simd, const M: usize, const N: usize>(
    simd: S,
    sums: &[[f32x16<S>; N]; M],
) -> [[f32; N]; M] {
    let mut folded = [[0.0; N]; M];
    fold_all(simd, sums.as_flattened(), folded.as_flattened_mut());
    folded
}

/// The last part of a fold, of each vector. Without a closure, which would be called with its
/// vectors in memory.
#[inline(always)]
pub(crate) fn fold_all<S: Simd>(simd: S, sums: &[f32x16<S>], folded: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Ok(sixteen) = sums.try_into()
        && let Some(sums) = fold_sixteen(simd, sixteen)
    {
        return folded.copy_from_slice(&sums);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = simd;
    let fours = sums.len() / 4;
    for four in 0..fours {
        let sums = [sums[4 * four], sums[4 * four + 1], sums[4 * four + 2], sums[4 * four + 3]];
        folded[4 * four..][..4].copy_from_slice(&fold_four(sums));
    }
    for index in 4 * fours..sums.len() {
        folded[index] = fold(sums[index]);
    }
}

/// Sum of the squares of `x`, in the order of a fold.
#[inline(always)]
pub(crate) fn sum_squares<S: Simd>(simd: S, x: &[f32]) -> f32 {
    let [sum] = dots(simd, x, [x]);
    sum
}

/// Sum of `x`, in the order of a fold.
#[inline(always)]
pub(crate) fn sum<S: Simd>(simd: S, x: &[f32]) -> f32 {
    let mut sums = f32x16::splat(simd, 0.0);
    let (chunks, rest) = x.as_chunks::<LANES>();
    for x in chunks {
        sums += f32x16::from_slice(simd, x);
    }
    fold(sums + f32x16::from_slice(simd, &padded(rest)))
}

/// The greatest of some scores, as [`setun_ops::attention::maximum`] has it; −∞ of none.
#[inline(always)]
pub(crate) fn greatest<S: Simd>(simd: S, x: &[f32]) -> f32 {
    let mut greatest = f32x16::splat(simd, f32::NEG_INFINITY);
    let (chunks, rest) = x.as_chunks::<LANES>();
    for x in chunks {
        let x = f32x16::from_slice(simd, x);
        let stays = bits_of(greatest.simd_gt(x)) | bits_of(greatest.simd_ne(greatest));
        greatest = select(stays, greatest.bitcast(), x.bitcast()).bitcast();
    }
    let lanes: [f32; LANES] = greatest.into();
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, maximum)
}

/// The last part of a fold: lanes 8 apart, then 4, 2, 1.
#[inline(always)]
pub(crate) fn fold<S: Simd>(sums: f32x16<S>) -> f32 {
    let [a, b, c, d]: [f32; 4] = fold_to_quarter(sums).into();
    (a + c) + (b + d)
}

/// The same of four vectors.
#[inline(always)]
fn fold_four<S: Simd>(sums: [f32x16<S>; 4]) -> [f32; 4] {
    let [a, b, c, d] = sums;
    let ([a, b, a_next, b_next], [c, d, c_next, d_next]) = (fold_pair(a, b), fold_pair(c, d));
    [a + a_next, b + b_next, c + c_next, d + d_next]
}

/// Two vectors down to lanes 2 apart, side by side.
#[inline(always)]
fn fold_pair<S: Simd>(a: f32x16<S>, b: f32x16<S>) -> [f32; 4] {
    let (a, b) = (fold_to_quarter(a), fold_to_quarter(b));
    (a.zip_low(b) + a.zip_high(b)).into()
}

/// Lanes 8 apart, then 4.
#[inline(always)]
fn fold_to_quarter<S: Simd>(sums: f32x16<S>) -> f32x4<S> {
    let (low, high) = sums.split();
    let (low, high) = (low + high).split();
    low + high
}

/// `e^x` as [`setun_ops::exp`] defines it.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: f32x16<S>) -> f32x16<S> {
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = f32x16::splat(simd, POLYNOMIAL[0]);
    for &coefficient in &POLYNOMIAL[1..] {
        p = p * r + coefficient;
    }
    let mantissa = (p * (r * r) + r) + 1.0;
    let n_bits: u32x16<S> = shifted.bitcast();
    let exponent = (n_bits - (ROUND.to_bits() - 127)) << 23;
    let y: u32x16<S> = (mantissa * exponent.bitcast::<f32x16<S>>()).bitcast();
    let zero = u32x16::splat(simd, 0);
    let infinity = u32x16::splat(simd, f32::INFINITY.to_bits());
    let y = select(bits_of(x.simd_lt(UNDERFLOW)), zero, y);
    let y = select(bits_of(x.simd_gt(OVERFLOW)), infinity, y);
    select(bits_of(x.simd_ne(x)), x.bitcast(), y).bitcast()
}

/// `e^(x − max)` of each element, in place.
#[inline(always)]
pub(crate) fn exp_minus<S: Simd>(simd: S, x: &mut [f32], max: f32) {
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    for x in chunks {
        exp(simd, f32x16::from_slice(simd, x) - max).store_slice(x);
    }
    let y: [f32; LANES] = exp(simd, f32x16::from_slice(simd, &padded(rest)) - max).into();
    rest.copy_from_slice(&y[..rest.len()]);
}

/// All ones where the mask is set, otherwise all zeros.
#[inline(always)]
pub(crate) fn bits_of<S: Simd>(mask: mask32x16<S>) -> u32x16<S> {
    mask.to_vector().bitcast()
}

/// `a` where the bits are ones, `b` where they are zeros.
#[inline(always)]
pub(crate) fn select<S: Simd>(bits: u32x16<S>, a: u32x16<S>, b: u32x16<S>) -> u32x16<S> {
    (a & bits) | (b & !bits)
}

/// At most 16 elements, filled up with zeros.
#[inline(always)]
pub(crate) fn padded<E: Copy + Default>(elements: &[E]) -> [E; LANES] {
    if let Ok(whole) = elements.try_into() {
        return whole;
    }
    let mut padded = [E::default(); LANES];
    padded[..elements.len()].copy_from_slice(elements);
    padded
}

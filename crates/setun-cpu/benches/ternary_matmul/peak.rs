//! The most products of bytes that a thread can do with the instructions of a level.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "a function for a feature that no token of a dependency proves")
)]

#[cfg(target_arch = "x86_64")]
use std::{hint::black_box, time::Instant};

use setun_cpu::Level;

/// Rounds of a measurement: about a millisecond.
#[cfg(target_arch = "x86_64")]
const ROUNDS: u32 = 50_000;

/// Billions of multiply-adds per second, of one thread and at this moment; none where there is
/// no loop for the level.
#[cfg(target_arch = "x86_64")]
pub(crate) fn peak(level: Level) -> Option<f64> {
    let detected = fearless_simd::Level::new();
    match level {
        Level::Avx512 => {
            let avx512 = detected.as_avx512()?;
            Some(speed(x86_64::SUMS * 64, || x86_64::dpbusd(avx512, ROUNDS, black_box(1))))
        }
        Level::AvxVnni => std::arch::is_x86_feature_detected!("avxvnni").then(|| {
            speed(x86_64::NARROW_SUMS * 32, || {
                // SAFETY: the feature was detected.
                unsafe { x86_64::dpbusd_avx(ROUNDS, black_box(1)) }
            })
        }),
        Level::Avx2 => {
            let avx2 = detected.as_avx2()?;
            Some(speed(x86_64::PAIRS * 32, || x86_64::maddubs(avx2, ROUNDS, black_box(1))))
        }
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn peak(_: Level) -> Option<f64> {
    None
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::cast_precision_loss, reason = "a speed")]
fn speed(products: usize, run: impl FnOnce() -> i32) -> f64 {
    let start = Instant::now();
    black_box(run());
    f64::from(ROUNDS) * products as f64 / start.elapsed().as_secs_f64() / 1e9
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_add_epi8, _mm256_add_epi16, _mm256_add_epi32,
        _mm256_dpbusd_avx_epi32, _mm256_maddubs_epi16, _mm256_set1_epi8, _mm256_set1_epi32,
        _mm256_setzero_si256, _mm512_add_epi32, _mm512_dpbusd_epi32, _mm512_set1_epi8,
        _mm512_set1_epi32, _mm512_setzero_si512,
    };

    use fearless_simd::{i32x8, i32x16, prelude::*};

    /// Independent sums of AVX-512.
    pub(super) const SUMS: usize = 24;

    /// Independent sums of AVX-VNNI.
    pub(super) const NARROW_SUMS: usize = 12;

    /// Independent sums of AVX2.
    pub(super) const PAIRS: usize = 6;

    fearless_simd::kernel!(
        #[inline]
        pub(super) fn dpbusd(avx512: Avx512, rounds: u32, x: i8) -> i32 {
            let x = _mm512_set1_epi8(x);
            let mut sums = [_mm512_setzero_si512(); SUMS];
            for round in 0..rounds {
                let codes = _mm512_set1_epi32(round.cast_signed());
                for sum in &mut sums {
                    *sum = _mm512_dpbusd_epi32(*sum, codes, x);
                }
            }
            let total: __m512i =
                sums.into_iter().fold(_mm512_setzero_si512(), |a, b| _mm512_add_epi32(a, b));
            let lanes: [i32; 16] = i32x16::simd_from(avx512, total).into();
            lanes.iter().fold(0, |a, &b| a.wrapping_add(b))
        }
    );

    #[target_feature(enable = "avx2,avxvnni")]
    pub(super) fn dpbusd_avx(rounds: u32, x: i8) -> i32 {
        let x = _mm256_set1_epi8(x);
        let mut sums = [_mm256_setzero_si256(); NARROW_SUMS];
        for round in 0..rounds {
            let codes = _mm256_set1_epi32(round.cast_signed());
            for sum in &mut sums {
                *sum = _mm256_dpbusd_avx_epi32(*sum, codes, x);
            }
        }
        let total = sums.into_iter().fold(_mm256_setzero_si256(), |a, b| _mm256_add_epi32(a, b));
        let lanes: [i32; 8] = bytemuck::cast(total);
        lanes.iter().fold(0, |a, &b| a.wrapping_add(b))
    }

    fearless_simd::kernel!(
        #[inline]
        pub(super) fn maddubs(avx2: Avx2, rounds: u32, x: i8) -> i32 {
            let one = _mm256_set1_epi8(1);
            let mut x = _mm256_set1_epi8(x);
            let mut codes = [x; PAIRS];
            for index in 1..PAIRS {
                codes[index] = _mm256_add_epi8(codes[index - 1], one);
            }
            let mut sums = [_mm256_setzero_si256(); PAIRS];
            for _ in 0..rounds {
                for (sum, codes) in sums.iter_mut().zip(codes) {
                    *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(codes, x));
                }
                // Of other activations each, or one product would serve for all rounds.
                x = _mm256_add_epi8(x, one);
            }
            let total: __m256i =
                sums.into_iter().fold(_mm256_setzero_si256(), |a, b| _mm256_add_epi16(a, b));
            let lanes: [i32; 8] = i32x8::simd_from(avx2, total).into();
            lanes.iter().fold(0, |a, &b| a.wrapping_add(b))
        }
    );
}

//! Kernels of WebAssembly's relaxed SIMD.

mod column_sums;
mod run_dots;
mod screen_dot;
mod ternary_dot;
mod ternary_panel;

use std::{
    arch::wasm32::{
        i32x4_extract_lane, i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_splat, u8x16_splat,
    },
    hint::black_box,
};

use fearless_simd::wasm32::WasmSimd128;

/// Proof of relaxed SIMD, which only a build for it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relaxed {
    simd: WasmSimd128,
    products: Products,
}

/// What the engine makes of `i32x4.relaxed_dot_i8x16_i7x16_add_s`. Results are the same; which
/// instructions are the fewest is not.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Products {
    /// One instruction: `sdot`, `vpdpbusd`.
    Fours,
    /// `vpmaddubsw`, which is `i16x8.relaxed_dot_i8x16_i7x16_s`, and what makes 32 bits of it.
    Pairs,
}

impl Relaxed {
    pub(crate) fn new(simd: WasmSimd128) -> Self {
        Self { simd, products: Products::of_engine() }
    }

    /// With each way of making products: all of them are right on every engine.
    #[cfg(feature = "testing")]
    pub(crate) fn each_way(self) -> [Self; 2] {
        [Products::Fours, Products::Pairs].map(|products| Self { products, ..self })
    }
}

impl Products {
    /// An operand beyond the 7 bits that the instruction requests shows how it is made: of the
    /// known ways only `vpmaddubsw` saturates sums of pairs, here `2 × 127 × 255`.
    fn of_engine() -> Self {
        let (x, codes) = black_box((u8x16_splat(127), u8x16_splat(255)));
        let sum = i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, i32x4_splat(0));
        if i32x4_extract_lane::<0>(sum) == 2 * i32::from(i16::MAX) {
            Self::Pairs
        } else {
            Self::Fours
        }
    }
}

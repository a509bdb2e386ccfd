//! Kernels of AVX2 with VNNI in its own encoding, as processors without AVX-512 have it.

mod blocks;
mod run_dots;
mod screen_dot;
mod ternary_dot;
mod ternary_panel;

use fearless_simd::x86::Avx2;

/// Proof of AVX-VNNI, which only detection gives out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AvxVnni(Avx2);

impl AvxVnni {
    pub(crate) fn detect(avx2: Avx2) -> Option<Self> {
        std::arch::is_x86_feature_detected!("avxvnni").then_some(Self(avx2))
    }
}

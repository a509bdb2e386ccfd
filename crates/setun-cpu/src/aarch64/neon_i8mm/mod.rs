//! Kernels of NEON with products of int8 matrices (`FEAT_I8MM`).

mod ternary_dot;
mod ternary_panel;

use fearless_simd::aarch64::Neon;

/// Proof of the extension, which only detection gives out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeonI8mm(pub(super) Neon);

impl NeonI8mm {
    pub(crate) fn detect(neon: Neon) -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("i8mm").then_some(Self(neon))
    }
}

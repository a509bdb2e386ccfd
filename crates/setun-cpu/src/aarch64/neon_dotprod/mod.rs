//! Kernels of NEON with the dot product of bytes (`FEAT_DotProd`).

mod dot4;
mod run_dots;
mod ternary_dot;
mod ternary_panel;

use fearless_simd::aarch64::Neon;

/// Proof of the extension, which only detection gives out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeonDotprod(pub(super) Neon);

impl NeonDotprod {
    pub(crate) fn detect(neon: Neon) -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(Self(neon))
    }
}

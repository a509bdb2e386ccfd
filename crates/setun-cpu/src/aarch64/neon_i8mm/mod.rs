//! Kernels of NEON with products of int8 matrices (`FEAT_I8MM`).

mod ternary_dot;
mod ternary_panel;

use fearless_simd::aarch64::Neon;

use super::neon_dotprod::NeonDotprod;

/// Proof of the extension and of the dot product of bytes, which only detection gives out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeonI8mm(pub(super) NeonDotprod);

impl NeonI8mm {
    pub(crate) fn detect(neon: Neon) -> Option<Self> {
        let has_i8mm = std::arch::is_aarch64_feature_detected!("i8mm");
        NeonDotprod::detect(neon).filter(|_| has_i8mm).map(Self)
    }
}

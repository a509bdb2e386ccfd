//! The one place where a level becomes code.

use crate::{level::Level, ternary_dot::TernaryDot};

/// Proof that the processor has a level: a token that only detection gives out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512(fearless_simd::x86::Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(fearless_simd::x86::Avx2),
    #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
    Relaxed(crate::wasm32::relaxed::Relaxed),
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128(crate::wasm32::simd128::Simd128),
}

impl Isa {
    /// The token of a level, if this processor and build have it.
    pub(crate) fn detect(level: Level) -> Option<Self> {
        #[cfg(any(
            target_arch = "x86_64",
            all(target_arch = "wasm32", target_feature = "simd128")
        ))]
        let detected = fearless_simd::Level::new();
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => detected.as_avx512().map(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => detected.as_avx2().map(Self::Avx2),
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Level::Relaxed => {
                detected.as_wasm_simd128().map(crate::wasm32::relaxed::Relaxed).map(Self::Relaxed)
            }
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Level::Simd128 => {
                detected.as_wasm_simd128().map(crate::wasm32::simd128::Simd128).map(Self::Simd128)
            }
            #[expect(
                clippy::allow_attributes,
                reason = "whether it is unreachable depends on the target"
            )]
            #[allow(unreachable_patterns, reason = "a target has some of the levels")]
            _ => None,
        }
    }

    /// Whether matrices with sparse inputs are kept by columns.
    pub(crate) fn keeps_columns(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.columns().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.columns().is_some(),
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Self::Relaxed(relaxed) => relaxed.columns().is_some(),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128(simd128) => simd128.columns().is_some(),
        }
    }

    pub(crate) fn level(self) -> Level {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Level::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Level::Avx2,
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Self::Relaxed(_) => Level::Relaxed,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128(_) => Level::Simd128,
        }
    }
}

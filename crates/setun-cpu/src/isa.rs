//! The one place where a level becomes code.

#[cfg(target_arch = "aarch64")]
use crate::aarch64::{neon_dotprod::NeonDotprod, neon_i8mm::NeonI8mm};
use crate::level::Level;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
use crate::wasm32::relaxed::Relaxed;
#[cfg(all(
    target_arch = "wasm32",
    target_feature = "simd128",
    any(feature = "testing", not(target_feature = "relaxed-simd"))
))]
use crate::wasm32::simd128::Simd128;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{avx_vnni::AvxVnni, prefetch::choose_cache};

/// Proof that the processor has a level: a token that only detection gives out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512(fearless_simd::x86::Avx512),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(AvxVnni),
    #[cfg(target_arch = "x86_64")]
    Avx2(fearless_simd::x86::Avx2),
    #[cfg(target_arch = "aarch64")]
    NeonI8mm(NeonI8mm),
    #[cfg(target_arch = "aarch64")]
    NeonDotprod(NeonDotprod),
    #[cfg(target_arch = "aarch64")]
    Neon(fearless_simd::aarch64::Neon),
    #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
    Relaxed(Relaxed),
    #[cfg(all(
        target_arch = "wasm32",
        target_feature = "simd128",
        any(feature = "testing", not(target_feature = "relaxed-simd"))
    ))]
    Simd128(Simd128),
}

impl Isa {
    /// The token of a level, if this processor and build have it.
    pub(crate) fn detect(level: Level) -> Option<Self> {
        #[cfg(any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            all(target_arch = "wasm32", target_feature = "simd128")
        ))]
        let detected = fearless_simd::Level::new();
        #[cfg(target_arch = "x86_64")]
        choose_cache();
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => detected.as_avx512().map(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            Level::AvxVnni => AvxVnni::detect(detected.as_avx2()?).map(Self::AvxVnni),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => detected.as_avx2().map(Self::Avx2),
            #[cfg(target_arch = "aarch64")]
            Level::NeonI8mm => NeonI8mm::detect(detected.as_neon()?).map(Self::NeonI8mm),
            #[cfg(target_arch = "aarch64")]
            Level::NeonDotprod => NeonDotprod::detect(detected.as_neon()?).map(Self::NeonDotprod),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => detected.as_neon().map(Self::Neon),
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Level::Relaxed => Some(Self::Relaxed(Relaxed::new(detected.as_wasm_simd128()?))),
            #[cfg(all(
                target_arch = "wasm32",
                target_feature = "simd128",
                any(feature = "testing", not(target_feature = "relaxed-simd"))
            ))]
            Level::Simd128 => Some(Self::Simd128(Simd128(detected.as_wasm_simd128()?))),
            #[expect(
                clippy::allow_attributes,
                reason = "whether it is unreachable depends on the target"
            )]
            #[allow(unreachable_patterns, reason = "a target has some of the levels")]
            _ => None,
        }
    }
}

/// Evaluates `$run` with the token of an [`Isa`] as `$token`.
macro_rules! with_token {
    ($isa:expr, $token:ident => $run:expr) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Isa::Avx512($token) => $run,
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Isa::AvxVnni($token) => $run,
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Isa::Avx2($token) => $run,
            #[cfg(target_arch = "aarch64")]
            $crate::isa::Isa::NeonI8mm($token) => $run,
            #[cfg(target_arch = "aarch64")]
            $crate::isa::Isa::NeonDotprod($token) => $run,
            #[cfg(target_arch = "aarch64")]
            $crate::isa::Isa::Neon($token) => $run,
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            $crate::isa::Isa::Relaxed($token) => $run,
            #[cfg(all(
                target_arch = "wasm32",
                target_feature = "simd128",
                any(feature = "testing", not(target_feature = "relaxed-simd"))
            ))]
            $crate::isa::Isa::Simd128($token) => $run,
        }
    };
}
pub(crate) use with_token;

impl Level {
    /// The levels of this processor and build, best first. May be empty.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|&level| Isa::detect(level).is_some()).collect()
    }
}

//! Levels: the instruction sets that the backend has kernels for.

use std::fmt;

/// An instruction set. The definitions themselves, `scalar`, are
/// [`ScalarBackend`](setun_ops::ScalarBackend).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// x86-64 with AVX-512 as of Ice Lake and Zen 4: F, BW, CD, DQ, VL, VNNI, VBMI and more.
    Avx512,
    /// x86-64 with AVX2 (x86-64-v3) and AVX-VNNI.
    AvxVnni,
    /// x86-64 with AVX2 (x86-64-v3).
    Avx2,
    /// 64-bit ARM with NEON, the dot product of bytes and products of int8 matrices (`FEAT_I8MM`).
    NeonI8mm,
    /// 64-bit ARM with NEON and the dot product of bytes (`FEAT_DotProd`).
    NeonDotprod,
    /// 64-bit ARM with NEON, as every such processor has it.
    Neon,
    /// WebAssembly's relaxed SIMD; a build of its own, as other engines refuse its opcodes.
    Relaxed,
    /// WebAssembly's 128-bit SIMD. Not in a relaxed build, which loads only where that level runs,
    /// and whose code is downloaded.
    Simd128,
}

impl Level {
    /// All levels, better ones first among those of one machine.
    pub const ALL: [Self; 8] = [
        Self::Avx512,
        Self::AvxVnni,
        Self::Avx2,
        Self::NeonI8mm,
        Self::NeonDotprod,
        Self::Neon,
        Self::Relaxed,
        Self::Simd128,
    ];

    /// The name in every interface: `avx512`, `avx-vnni`, `avx2`, `neon-i8mm`, `neon-dotprod`,
    /// `neon`, `relaxed`, `simd128`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::AvxVnni => "avx-vnni",
            Self::Avx2 => "avx2",
            Self::NeonI8mm => "neon-i8mm",
            Self::NeonDotprod => "neon-dotprod",
            Self::Neon => "neon",
            Self::Relaxed => "relaxed",
            Self::Simd128 => "simd128",
        }
    }

    /// The level of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name()), Some(level));
        }
        assert_eq!(Level::from_name("scalar"), None);
    }
}

//! The thread's floating-point mode: checked to be that of IEEE 754.
//!
//! A host may have switched its threads to flush subnormal numbers to zero (FTZ, DAZ) or to
//! round otherwise, and threads inherit that. Real checkpoints hold values of 1e-32, whose
//! products are subnormal, so such a thread would compute other bits. The mode is observed
//! rather than read from a register, which works on every processor.

use std::hint::black_box;

/// True if subnormal results and operands are kept, and results round to the nearest, ties to
/// even.
pub(crate) fn is_ieee() -> bool {
    let min_normal = black_box(f32::MIN_POSITIVE);
    let least = black_box(f32::from_bits(1));
    let half_an_ulp = black_box(f32::EPSILON / 2.0);
    let keeps_results = min_normal * 0.5 != 0.0;
    let keeps_operands = least * 16_777_216.0 != 0.0;
    // 1 + half a unit is a tie that goes to 1; three halves go up to 2 units.
    let to_nearest = 1.0 + half_an_ulp == 1.0
        && (1.0 + f32::EPSILON) + half_an_ulp == 1.0 + 2.0 * f32::EPSILON
        && -1.0 - half_an_ulp == -1.0;
    keeps_results && keeps_operands && to_nearest
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod tests {
    #![expect(unsafe_code, reason = "only an instruction can set the mode")]

    use super::*;

    /// Runs `test` in a thread of its own with bits set in its control register.
    pub(crate) fn with_mode<T: Send>(bits: Mode, test: impl FnOnce() -> T + Send) -> T {
        let body = || {
            let mode = mode();
            set_mode(mode | bits);
            let result = black_box(test());
            set_mode(mode);
            result
        };
        std::thread::scope(|scope| scope.spawn(body).join()).unwrap()
    }

    pub(crate) use register::FLUSH_TO_ZERO;
    use register::{Mode, OTHER_MODES, mode, set_mode};

    /// The register MXCSR.
    #[cfg(target_arch = "x86_64")]
    mod register {
        pub(super) type Mode = u32;

        pub(crate) const FLUSH_TO_ZERO: Mode = 1 << 15;
        const DENORMALS_ARE_ZERO: Mode = 1 << 6;
        const ROUND_DOWN: Mode = 1 << 13;
        const ROUND_UP: Mode = 1 << 14;
        pub(super) const OTHER_MODES: [Mode; 4] =
            [FLUSH_TO_ZERO, DENORMALS_ARE_ZERO, ROUND_DOWN, ROUND_UP];

        pub(super) fn mode() -> Mode {
            let mut mode = 0;
            // SAFETY: stores the control register to a local variable.
            unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode) };
            mode
        }

        pub(super) fn set_mode(mode: Mode) {
            // SAFETY: loads valid bits; the caller puts the old ones back.
            unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode) };
        }
    }

    /// The register FPCR, whose one bit flushes results and operands.
    #[cfg(target_arch = "aarch64")]
    mod register {
        pub(super) type Mode = u64;

        pub(crate) const FLUSH_TO_ZERO: Mode = 1 << 24;
        const ROUND_UP: Mode = 1 << 22;
        const ROUND_DOWN: Mode = 1 << 23;
        pub(super) const OTHER_MODES: [Mode; 4] =
            [FLUSH_TO_ZERO, ROUND_UP, ROUND_DOWN, ROUND_UP | ROUND_DOWN];

        pub(super) fn mode() -> Mode {
            let mode;
            // SAFETY: reads the control register.
            unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) mode) };
            mode
        }

        pub(super) fn set_mode(mode: Mode) {
            // SAFETY: writes valid bits; the caller puts the old ones back.
            unsafe { std::arch::asm!("msr fpcr, {}", in(reg) mode) };
        }
    }

    #[test]
    fn every_other_mode_is_noticed() {
        assert!(is_ieee());
        assert!(with_mode(0, is_ieee));
        for bits in OTHER_MODES {
            assert!(!with_mode(bits, is_ieee), "{bits:#x}");
        }
    }
}

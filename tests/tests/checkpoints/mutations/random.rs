//! Numbers that a case's name decides.

/// `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    /// Of a case of a format.
    pub(crate) fn new(format: &str, case: usize) -> Self {
        let name = format.bytes().fold(0, |all: u64, byte| all.wrapping_mul(257) ^ u64::from(byte));
        Self(name.wrapping_mul(1 << 32) ^ case as u64)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `limit`, or 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or(0) % limit.max(1)
    }

    /// Less than `limit`, or 0; small ones as likely as large ones, by their numbers of digits.
    pub(crate) fn small(&mut self, limit: usize) -> usize {
        let digits = self.below(limit.max(1).ilog2() as usize + 2);
        self.below(limit.min(1 << digits))
    }
}

//! Random numbers of a test.

use setun_text::Draw;

/// A row of random numbers.
pub(crate) struct Random {
    seed: u64,
    sequence: u64,
    index: u64,
}

impl Random {
    pub(crate) fn new(seed: u64, sequence: u64) -> Self {
        Self { seed, sequence, index: 0 }
    }

    /// A number less than `limit`, which is not 0.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a small number"
    )]
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.index += 1;
        let draw = Draw { seed: self.seed, sequence: self.sequence, index: self.index };
        (draw.uniform(0) * limit as f64) as usize
    }
}

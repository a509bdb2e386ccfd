//! Choices from an input's bytes; 0 where it has ended.

/// What is left of an input.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// A number from `least` to `most`, both included; at most 65,536 of them.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        let number = usize::from(u16::from_le_bytes([self.byte(), self.byte()]));
        least + number % (most - least + 1)
    }

    /// One of several.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.between(0, from.len() - 1)].clone()
    }

    /// A token of a vocabulary.
    pub fn token(&mut self, vocabulary: usize) -> u32 {
        u32::try_from(self.between(0, vocabulary - 1)).unwrap_or(0)
    }
}

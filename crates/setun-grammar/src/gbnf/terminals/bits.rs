//! Sets of terminals.

#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn none(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    /// Whether it was not in the set.
    pub(super) fn insert(&mut self, member: usize) -> bool {
        let (word, bit) = (&mut self.0[member / 64], 1 << (member % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn insert_all(&mut self, others: &Self) {
        for (word, other) in self.0.iter_mut().zip(&others.0) {
            *word |= other;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(place, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| place * 64 + bit)
        })
    }
}

//! Counts of a schema with all that is intersected with it for the same value.

use crate::expressions::{COMBINATIONS, MAX_COMBINATIONS};
use crate::limits::{Exceeded, at_most};

/// The most pairs of property expressions that are compared, at up to a millisecond each.
const MAX_PAIRS: u32 = 1_000;

/// The most bytes of the expressions in all pairs.
const MAX_PAIR_BYTES: u32 = 10_000_000;

/// The most copies of a schema that alternatives beside other keywords make.
const MAX_COPIES: u32 = 5_000_000;

/// What a schema says about one value, whether itself, in `allOf`, or by the largest of its
/// alternatives and references. Numbers saturate.
#[derive(Clone, Copy, Debug)]
pub(super) struct InPlace {
    /// Properties that are listed or required.
    pub(super) names: u32,
    /// Expressions of `patternProperties`, and their bytes.
    pub(super) patterns: u32,
    pub(super) pattern_bytes: u32,
    /// The product of the classes in expressions for a string.
    pub(super) classes: u32,
    /// Alternatives, in all combinations.
    pub(super) options: u32,
    /// Schemas in it.
    pub(super) schemas: u32,
    /// Copies of them that are made to intersect its alternatives with what stands beside them.
    pub(super) copies: u32,
}

/// What adds up in a document.
#[derive(Default)]
pub(super) struct Totals {
    /// Pairs of expressions in `patternProperties`.
    pairs: u32,
    copies: u32,
}

impl InPlace {
    /// Keywords that say nothing.
    pub(super) fn nothing() -> Self {
        Self {
            names: 0,
            patterns: 0,
            pattern_bytes: 0,
            classes: 1,
            options: 1,
            schemas: 0,
            copies: 0,
        }
    }

    /// A schema that allows everything.
    pub(super) fn any() -> Self {
        Self { schemas: 1, ..Self::nothing() }
    }

    /// Both hold.
    pub(super) fn and(&mut self, other: Self) {
        let own = (self.options - 1).saturating_mul(other.schemas);
        let others = (other.options - 1).saturating_mul(self.schemas);
        for copies in [own, others, other.copies] {
            self.copies = self.copies.saturating_add(copies);
        }
        self.names = self.names.saturating_add(other.names);
        self.patterns = self.patterns.saturating_add(other.patterns);
        self.pattern_bytes = self.pattern_bytes.saturating_add(other.pattern_bytes);
        self.classes = self.classes.saturating_mul(other.classes);
        self.options = self.options.saturating_mul(other.options);
        self.schemas = self.schemas.saturating_add(other.schemas);
    }

    /// One of these holds; there is at least one.
    pub(super) fn one_of(all: &[Self]) -> Self {
        let mut sum = Self { options: 0, ..Self::nothing() };
        for one in all {
            sum.names = sum.names.max(one.names);
            sum.patterns = sum.patterns.max(one.patterns);
            sum.pattern_bytes = sum.pattern_bytes.max(one.pattern_bytes);
            sum.classes = sum.classes.max(one.classes);
            sum.options = sum.options.saturating_add(one.options);
            sum.schemas = sum.schemas.saturating_add(one.schemas);
        }
        sum.options = sum.options.max(1);
        sum
    }

    /// Refuses what takes too long to intersect. What it adds to the totals is counted once.
    pub(super) fn check(&mut self, totals: &mut Totals) -> Result<(), Exceeded> {
        counted(COMBINATIONS, MAX_COMBINATIONS, self.classes)?;
        totals.copies = totals.copies.saturating_add(std::mem::take(&mut self.copies));
        counted("copies of schemas beside alternatives", MAX_COPIES, totals.copies)?;
        if self.patterns > 1 {
            let own = self.patterns.saturating_mul(self.patterns - 1) / 2;
            totals.pairs = totals.pairs.saturating_add(own.saturating_mul(self.options));
            counted("pairs of expressions in `patternProperties`", MAX_PAIRS, totals.pairs)?;
            let bytes = totals.pairs.saturating_mul(self.pattern_bytes);
            counted("bytes in pairs of expressions of `patternProperties`", MAX_PAIR_BYTES, bytes)?;
        }
        Ok(())
    }
}

/// Refuses what exceeds a limit, by name.
pub(super) fn counted(what: &str, limit: u32, found: u32) -> Result<(), Exceeded> {
    at_most(what, limit as usize, found as usize)
}

/// A length as a count.
pub(super) fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

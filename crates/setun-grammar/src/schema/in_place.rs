//! Counts of a schema with all that is intersected with it for the same value.

use crate::GrammarError;
use crate::expressions::{COMBINATIONS, MAX_COMBINATIONS};
use crate::limits::at_most;

/// The most pairs of property expressions that are compared, at up to a millisecond each.
const MAX_PAIRS: u64 = 1_000;

/// The most bytes of the expressions in all pairs.
const MAX_PAIR_BYTES: u64 = 10_000_000;

/// The most copies of a schema that alternatives beside other keywords make.
const MAX_COPIES: u64 = 5_000_000;

/// What a schema says about one value, whether itself, in `allOf`, or by the largest of its
/// alternatives and references. Numbers saturate.
#[derive(Clone, Copy, Debug)]
pub(super) struct InPlace {
    /// Properties that are listed or required.
    pub(super) names: usize,
    /// Expressions of `patternProperties`, and their bytes.
    pub(super) patterns: u64,
    pub(super) pattern_bytes: u64,
    /// The product of the classes in expressions for a string.
    pub(super) classes: u64,
    /// Alternatives, in all combinations.
    pub(super) options: u64,
    /// Schemas in it.
    pub(super) schemas: u64,
    /// Copies of them that are made to intersect its alternatives with what stands beside them.
    pub(super) copies: u64,
}

/// What adds up in a document.
#[derive(Default)]
pub(super) struct Totals {
    /// Pairs of expressions in `patternProperties`.
    pairs: u64,
    copies: u64,
}

impl InPlace {
    /// A schema that allows everything.
    pub(super) fn any() -> Self {
        Self {
            names: 0,
            patterns: 0,
            pattern_bytes: 0,
            classes: 1,
            options: 1,
            schemas: 1,
            copies: 0,
        }
    }

    /// Both hold.
    pub(super) fn and(&mut self, other: Self) {
        for (options, schemas) in [(self.options, other.schemas), (other.options, self.schemas)] {
            let copies = (options - 1).saturating_mul(schemas);
            self.copies = self.copies.saturating_add(copies);
        }
        self.copies = self.copies.saturating_add(other.copies);
        self.names = self.names.saturating_add(other.names);
        self.patterns = self.patterns.saturating_add(other.patterns);
        self.pattern_bytes = self.pattern_bytes.saturating_add(other.pattern_bytes);
        self.classes = self.classes.saturating_mul(other.classes);
        self.options = self.options.saturating_mul(other.options);
        self.schemas = self.schemas.saturating_add(other.schemas);
    }

    /// One of these holds.
    pub(super) fn one_of(all: &[Self]) -> Self {
        let largest = |of: fn(&Self) -> u64| all.iter().map(of).max().unwrap_or(0);
        let sum = |of: fn(&Self) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
        Self {
            names: all.iter().map(|one| one.names).max().unwrap_or(0),
            patterns: largest(|one| one.patterns),
            pattern_bytes: largest(|one| one.pattern_bytes),
            classes: largest(|one| one.classes).max(1),
            options: sum(|one| one.options).max(1),
            schemas: sum(|one| one.schemas),
            copies: 0,
        }
    }

    /// Refuses what takes too long to intersect. What it adds to the totals is counted once.
    pub(super) fn check(&mut self, totals: &mut Totals) -> Result<(), GrammarError> {
        at_most(COMBINATIONS, MAX_COMBINATIONS, self.classes)?;
        totals.copies = totals.copies.saturating_add(std::mem::take(&mut self.copies));
        at_most("copies of schemas beside alternatives", MAX_COPIES, totals.copies)?;
        if self.patterns > 1 {
            let own = self.patterns.saturating_mul(self.patterns - 1) / 2;
            let pairs = totals.pairs.saturating_add(own.saturating_mul(self.options));
            totals.pairs = pairs;
            at_most("pairs of expressions in `patternProperties`", MAX_PAIRS, pairs)?;
            let bytes = pairs.saturating_mul(self.pattern_bytes);
            at_most("bytes in pairs of expressions of `patternProperties`", MAX_PAIR_BYTES, bytes)?;
        }
        Ok(())
    }
}

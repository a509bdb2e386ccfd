//! Histograms with the buckets of Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many values were at most each bound.
#[derive(Debug)]
pub(crate) struct BucketCounts {
    bounds: &'static [u64],
    counts: Vec<AtomicU64>, // one more than bounds: what is above the last
    sum: AtomicU64,
}

impl BucketCounts {
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// Each bound with the number of values up to it, and the number of all.
    pub(crate) fn cumulative(&self) -> (Vec<(u64, u64)>, u64) {
        let mut below = 0;
        let mut up_to = |count: &AtomicU64| {
            below += count.load(Ordering::Relaxed);
            below
        };
        let counts: Vec<u64> = self.counts.iter().map(&mut up_to).collect();
        let all = counts.last().copied().unwrap_or_default();
        (self.bounds.iter().copied().zip(counts).collect(), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_from_its_bound_on() {
        let counts = BucketCounts::new(&[1, 5]);
        for value in [0, 1, 2, 5, 6] {
            counts.add(value);
        }
        assert_eq!(counts.cumulative(), (vec![(1, 2), (5, 4)], 5));
        assert_eq!(counts.sum(), 14);
    }
}

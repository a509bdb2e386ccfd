//! Histograms of numbers and times, with fixed bounds.

use std::time::Duration;

/// Bits of a value that its bucket keeps beside the leading one: a bucket is at most an eighth of
/// its least value wide.
const KEPT_BITS: u32 = 3;

/// Values below have a bucket each.
const SINGLE: u64 = 1 << KEPT_BITS;

/// How often which values occurred, in buckets whose width grows with the value: values up to 15
/// are exact, larger ones to within an eighth. Two of them add up to that of all their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>, // by bucket, up to the last that has any
    count: u64,
    sum: u128,
    most: u64,
}

impl Histogram {
    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all values, exact.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The largest value, exact; 0 if there is none.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Mean of all values; none without any.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The least value that at least this share of the values, 0 to 1, do not exceed; of a bucket
    /// of several values its largest, if that occurred. None without any value.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = self.rank(share)?;
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return Some(largest(bucket).min(self.most));
            }
        }
        Some(self.most)
    }

    /// How many values are at most this. Of a bucket that reaches beyond it none is counted, so
    /// that it is too few by those of one bucket at most.
    #[must_use]
    pub fn count_up_to(&self, value: u64) -> u64 {
        let within =
            self.counts.iter().enumerate().take_while(|(bucket, _)| largest(*bucket) <= value);
        within.map(|(_, count)| count).sum()
    }

    /// How many of the values, put in order, lead up to this share of them.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the share is between 0 and 1, and this many values never come"
    )]
    fn rank(&self, share: f64) -> Option<u64> {
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
        (self.count > 0).then(|| rank.clamp(1, self.count))
    }

    pub(crate) fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    pub(crate) fn record_many(&mut self, value: u64, times: u64) {
        let bucket = bucket(value);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += times;
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.most = self.most.max(value);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, others) in self.counts.iter_mut().zip(&other.counts) {
            *own += others;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }
}

/// The bucket of a value.
fn bucket(value: u64) -> usize {
    let octave = value.max(SINGLE).ilog2() - KEPT_BITS;
    let bucket = u64::from(octave) * SINGLE + (value >> octave);
    usize::try_from(bucket).unwrap_or(usize::MAX) // it is below 500
}

/// The largest value of a bucket.
fn largest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = (bucket / SINGLE).saturating_sub(1);
    let first = u128::from(bucket - octave * SINGLE) << octave;
    u64::try_from(first + (1 << octave) - 1).unwrap_or(u64::MAX)
}

/// How often which times occurred: a [`Histogram`] of nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeHistogram(Histogram);

impl TimeHistogram {
    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos_u128(self.0.sum())
    }

    /// The longest; zero if there is none.
    #[must_use]
    pub fn most(&self) -> Duration {
        Duration::from_nanos(self.0.most())
    }

    /// Mean of all; none without any.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        self.0.mean().map(|nanoseconds| Duration::from_secs_f64(nanoseconds / 1e9))
    }

    /// The least time that at least this share of them, 0 to 1, do not exceed, to within an
    /// eighth. None without any.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.0.quantile(share).map(Duration::from_nanos)
    }

    /// How many times are at most this, to within an eighth of it.
    #[must_use]
    pub fn count_up_to(&self, time: Duration) -> u64 {
        self.0.count_up_to(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn record_many(&mut self, time: Duration, times: u64) {
        self.0.record_many(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), times);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values_to_within_an_eighth(
            values in prop::collection::vec((0_u32..64, any::<u64>()), 1..200),
            share in 0.0_f64..=1.0,
        ) {
            // Of all sizes alike.
            let mut values: Vec<u64> = values.iter().map(|(shift, bits)| bits >> shift).collect();
            let (mut left, mut right) = (Histogram::default(), Histogram::default());
            for (index, &value) in values.iter().enumerate() {
                if index % 3 == 0 { left.record(value) } else { right.record(value) }
            }
            left.add(&right);
            values.sort_unstable();
            prop_assert_eq!(left.count(), values.len() as u64);
            prop_assert_eq!(left.sum(), values.iter().map(|&value| u128::from(value)).sum::<u128>());
            prop_assert_eq!(left.quantile(1.0), values.last().copied());
            // The least value that so large a share does not exceed, by its definition.
            let enough = |&&value: &&u64| {
                let count = values.iter().filter(|&&other| other <= value).count();
                f64::from(u8::try_from(count).unwrap()) >= share * f64::from(u8::try_from(values.len()).unwrap())
            };
            let exact = *values.iter().find(enough).expect("the last one");
            let found = left.quantile(share).expect("values");
            prop_assert!(found >= exact && found - exact <= exact / 8, "{} {}", exact, found);
            let up_to = |most| values.iter().filter(|&&value| value <= most).count() as u64;
            let counted = left.count_up_to(exact);
            let (least, most) = (up_to(exact - exact.div_ceil(8)), up_to(exact));
            prop_assert!((least..=most).contains(&counted), "{} {} {}", least, counted, most);
            prop_assert_eq!(left.count_up_to(u64::MAX), left.count());
            if exact < 2 * SINGLE {
                prop_assert_eq!(found, exact);
            }
        }
    }

    #[test]
    fn buckets_meet_without_gap_or_overlap() {
        for value in (0..5000).chain([u64::MAX / 2, u64::MAX - 1, u64::MAX]) {
            let bucket = bucket(value);
            assert!(value <= largest(bucket), "{value}");
            assert!(bucket == 0 || value > largest(bucket - 1), "{value}");
        }
        assert_eq!(largest(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn without_values_there_is_no_quantile() {
        let none = TimeHistogram::default();
        assert_eq!((none.quantile(0.5), none.mean(), none.sum()), (None, None, Duration::ZERO));
    }
}

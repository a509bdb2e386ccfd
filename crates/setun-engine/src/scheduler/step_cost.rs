//! The cost of a step by its rows, so that it has as many as there is time for.

use std::time::Duration;

use super::STEP_TARGET;

/// What an older step counts beside the next one.
const KEEP: f64 = 0.875;

/// Relative spread of the rows of steps that a fit of the cost of a row needs.
const MIN_SPREAD: f64 = 0.1;

/// A row costs at least this part of the mean: one step that was slow by accident does not make
/// rows seem free.
const MIN_COST: f64 = 1.0 / 64.0;

/// The line through the times of the latest steps over their rows (weighted least squares). It
/// begins above zero, as every step reads all weights.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepCost {
    weight: f64,
    rows: f64,
    seconds: f64,
    squared_rows: f64,
    rows_by_seconds: f64,
    multi_steps: usize, // that may follow each other beyond the first
}

impl StepCost {
    /// Notes the time of a step of this many rows.
    #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
    pub(super) fn record(&mut self, rows: usize, time: Duration) {
        let (rows, seconds) = (rows as f64, time.as_secs_f64());
        self.weight = KEEP * self.weight + 1.0;
        self.rows = KEEP * self.rows + rows;
        self.seconds = KEEP * self.seconds + seconds;
        self.squared_rows = KEEP * self.squared_rows + rows * rows;
        self.rows_by_seconds = KEEP * self.rows_by_seconds + rows * seconds;
    }

    /// Records the time of a step in which the model chose by itself, of `max` that it may make in a
    /// row. At most twice as many as before are made next time, and no more than there is time for.
    pub(super) fn record_multi_step(&mut self, rows: usize, step: Duration, max: usize) {
        self.record(rows, step);
        let fit = STEP_TARGET.as_nanos() / step.as_nanos().max(1);
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        let most = max.min(2 * self.multi_steps());
        self.multi_steps = fit.clamp(1, most.max(1)) - 1;
    }

    /// Steps that may follow each other without a look at what they gave.
    pub(super) fn multi_steps(&self) -> usize {
        self.multi_steps + 1
    }

    /// Seconds that this many rows alone are expected to take, and each one more. None before the
    /// first step.
    #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
    fn line(&self, rows: usize) -> Option<(f64, f64)> {
        let (mean_rows, mean_seconds) = (self.rows / self.weight, self.seconds / self.weight);
        let each = mean_seconds / mean_rows;
        if !(each > 0.0 && each.is_finite()) {
            return None;
        }
        let spread = self.squared_rows / self.weight - mean_rows * mean_rows;
        let row = if spread > (MIN_SPREAD * mean_rows).powi(2) {
            let together = self.rows_by_seconds / self.weight - mean_rows * mean_seconds;
            (together / spread).clamp(MIN_COST * each, each)
        } else {
            each
        };
        Some((mean_seconds + (rows as f64 - mean_rows) * row, row))
    }

    /// The time that a step of this many rows is expected to take; none before the first.
    pub(super) fn step(&self, rows: usize) -> Duration {
        let seconds = self.line(rows).map_or(0.0, |(seconds, _)| seconds);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Rows more that take about this time, in a step that has this many; none known before the first.
    /// They may take as long as those do if that is more.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    pub(super) fn more(&self, rows: usize, time: Duration, may_double: bool) -> Option<usize> {
        let (expected, row) = self.line(rows)?;
        let time = time.as_secs_f64();
        let time = if may_double { time.max(expected) } else { time };
        Some((time / row).round() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(50);

    fn record(steps: &[(usize, u64)]) -> StepCost {
        let mut times = StepCost::default();
        for (rows, milliseconds) in steps {
            times.record(*rows, Duration::from_millis(*milliseconds));
        }
        times
    }

    #[test]
    fn nothing_is_known_before_the_first_step() {
        assert_eq!(StepCost::default().more(1, TARGET, true), None);
        assert_eq!(StepCost::default().step(1), Duration::ZERO);
        assert_eq!(record(&[(1, 0)]).more(1, TARGET, true), None);
    }

    #[test]
    fn steps_of_one_size_give_the_mean_alone() {
        assert_eq!(record(&[(2, 70), (2, 70)]).more(2, TARGET, false), Some(1));
        // As long as the two take, which is two more.
        assert_eq!(record(&[(2, 70), (2, 70)]).more(2, TARGET, true), Some(2));
    }

    #[test]
    fn what_all_rows_share_is_not_counted_for_each() {
        // 40 ms and 10 for each row.
        let times = record(&[(64, 680), (3, 70), (5, 90), (4, 80)]);
        assert_eq!(times.more(1, TARGET, false), Some(5));
        assert_eq!(times.more(16, TARGET, false), Some(5));
        assert_eq!(times.more(16, TARGET, true), Some(20));
        assert!(times.step(16).abs_diff(Duration::from_millis(200)) < Duration::from_micros(1));
    }

    #[test]
    fn a_slow_step_does_not_make_rows_free() {
        let times = record(&[(8, 80), (8, 80), (8, 80), (1, 500)]);
        let more = times.more(1, TARGET, false);
        assert!(more.is_some_and(|rows| rows < 200), "{more:?}");
    }

    #[test]
    fn older_steps_are_forgotten() {
        let mut steps = vec![(64, 680), (1, 50)];
        steps.extend([(1, 5), (9, 45), (5, 25)].repeat(40)); // 5 ms for each row
        assert_eq!(record(&steps).more(1, TARGET, false), Some(10));
    }
}

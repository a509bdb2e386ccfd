//! Progress of a query: rows, tokens a second, time left.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use datafusion::physical_plan::{
    ExecutionPlan,
    async_func::AsyncFuncExec,
    statistics::{StatisticsArgs, StatisticsContext},
};
use setun_cli::output::Progress;
use setun_sql::{ModelHandle, RowCounts, progress_words};

/// Time between two updates of the line.
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// A line on the terminal with what the functions have done of a query.
pub(super) struct QueryProgress<'a> {
    model: &'a ModelHandle,
    begun: Instant,
    before: RowCounts,
    /// Rows of all calls, as far as the files say.
    total: Option<u64>,
    line: Progress,
    ticks: tokio::time::Interval,
}

impl<'a> QueryProgress<'a> {
    pub(super) fn new(model: &'a ModelHandle, plan: &Arc<dyn ExecutionPlan>) -> Self {
        Self {
            model,
            begun: Instant::now(),
            before: model.counts(),
            total: call_rows(plan),
            line: Progress::new(),
            ticks: tokio::time::interval(INTERVAL),
        }
    }

    pub(super) async fn tick(&mut self) {
        self.ticks.tick().await;
    }

    pub(super) fn show(&mut self) {
        let (now, before) = (self.model.counts(), self.before);
        let done = now.rows - before.rows;
        if done == 0 {
            return;
        }
        let elapsed = self.begun.elapsed().as_secs_f64();
        let tokens = now.completion_tokens - before.completion_tokens;
        let words = progress_words(done, self.total, tokens, now.errors - before.errors, elapsed);
        self.line.show(|| words);
    }

    /// Prints while the line is not shown.
    pub(super) fn hidden<T>(&mut self, print: impl FnOnce() -> T) -> T {
        self.line = Progress::new();
        print()
    }
}

/// Rows that the calls of a plan will get; none where that is not known.
fn call_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let below: Vec<_> = plan.children().into_iter().map(call_rows).collect();
    let mut rows = below.into_iter().try_fold(0, |sum, rows| Some(sum + rows?))?;
    if let Some(calls) = plan.downcast_ref::<AsyncFuncExec>() {
        let input = calls.input().as_ref();
        let statistics = StatisticsContext::new().compute(input, &StatisticsArgs::new()).ok()?;
        rows += *statistics.num_rows.get_value()? as u64;
    }
    Some(rows)
}

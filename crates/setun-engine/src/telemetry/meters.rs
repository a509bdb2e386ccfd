//! Counters, gauges and histograms.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};

use crate::{
    engine_info::EngineInfo,
    metrics::{EngineMetrics, Timed},
};

/// Where a number is found.
type Reader = fn(&EngineMetrics) -> u64;

/// Name, meaning, and where it is found.
type Read = (&'static str, &'static str, Reader);

const COUNTERS: [Read; 17] = [
    ("setun_steps_total", "Passes over the weights", |m| m.steps),
    ("setun_rows_total", "Tokens that were computed", |m| m.rows),
    ("setun_prompt_rows_total", "Rows beyond one of a sequence in a step", |m| m.prompt_rows),
    ("setun_tokens_total", "Tokens that were generated", |m| m.tokens),
    ("setun_admissions_total", "Places given in the cache", |m| m.admissions),
    ("setun_prefix_hits_total", "Places that began with known tokens", |m| m.prefix_hits),
    ("setun_prefix_positions_total", "Positions that were known", |m| m.reused_positions),
    ("setun_drafted_total", "Tokens that were guessed", |m| m.guessed),
    ("setun_drafts_accepted_total", "Guessed tokens that were right", |m| m.right),
    ("setun_preemptions_total", "Places that were taken away", |m| m.preemptions),
    ("setun_dropped_positions_total", "Positions lost thereby", |m| m.dropped_positions),
    ("setun_reliefs_total", "Times that memory was given back", |m| m.reliefs),
    ("setun_relieved_bytes_total", "Bytes given back", |m| m.relieved_bytes),
    ("setun_finished_total", "Generations that came to their end", |m| m.finished),
    ("setun_aborted_total", "Generations that their caller ended", |m| m.aborted),
    ("setun_overdue_total", "Generations whose time was over", |m| m.overdue),
    ("setun_failed_total", "Generations that ended with an error", |m| m.failed),
];

const GAUGES: [Read; 5] = [
    ("setun_waiting", "Generations that wait", |m| m.waiting as u64),
    ("setun_running", "Generations that have a place", |m| m.running as u64),
    ("setun_cache_blocks", "Most blocks of the cache", |m| m.blocks as u64),
    ("setun_cache_used_blocks", "Blocks of running generations", |m| m.used_blocks as u64),
    ("setun_cache_idle_blocks", "Blocks kept for prefixes", |m| m.idle_blocks as u64),
];

const MEMORY: &str = "setun_memory_bytes";

const MEMORY_KINDS: [(&str, Reader); 4] = [
    ("body", |m| m.memory.body as u64),
    ("head", |m| m.memory.head as u64),
    ("screen", |m| m.memory.screen as u64),
    ("cache", |m| m.memory.cache as u64),
];

const ROWS: &str = "setun_step_rows";

/// By [`Timed`].
const TIMES: [(&str, &str); 4] = [
    ("setun_queue_seconds", "From a request to its place in the cache"),
    ("setun_first_token_seconds", "From a request to its first token"),
    ("setun_between_tokens_seconds", "From a token to the next"),
    ("setun_step_seconds", "A step"),
];

/// What an owner tells the recorder that was there when it began.
pub(crate) struct Meters {
    counters: Vec<(Counter, Reader, u64)>, // what was told last
    gauges: Vec<(Gauge, Reader, f64)>,
    times: [Histogram; TIMES.len()],
    rows: Histogram,
}

impl Meters {
    pub(crate) fn new(report: &EngineInfo) -> Self {
        describe();
        let labels = vec![
            Label::new("model", report.model.clone()),
            Label::new("backend", report.backend),
            Label::new("level", report.level.clone()),
        ];
        let counters = COUNTERS.map(|(name, _, read)| (counter!(name, labels.clone()), read, 0));
        let gauges = GAUGES.map(|(name, _, read)| (gauge!(name, labels.clone()), read, 0.0));
        let memory = MEMORY_KINDS.map(|(kind, read)| {
            let labels = [labels.clone(), vec![Label::new("kind", kind)]].concat();
            (gauge!(MEMORY, labels), read, 0.0)
        });
        Self {
            counters: counters.into(),
            gauges: gauges.into_iter().chain(memory).collect(),
            times: TIMES.map(|(name, _)| histogram!(name, labels.clone())),
            rows: histogram!(ROWS, labels),
        }
    }

    pub(crate) fn time(&self, timed: Timed, time: Duration, times: u64) {
        let times = usize::try_from(times).unwrap_or(usize::MAX);
        self.times[timed as usize].record_many(time.as_secs_f64(), times);
    }

    pub(crate) fn rows(&self, rows: usize, steps: usize) {
        self.rows.record_many(to_f64(rows as u64), steps);
    }

    /// Tells what has changed: several owners may share a name.
    pub(crate) fn update(&mut self, metrics: &EngineMetrics) {
        for (counter, read, told) in &mut self.counters {
            let now = read(metrics);
            if now > *told {
                counter.increment(now - *told);
                *told = now;
            }
        }
        for (gauge, read, told) in &mut self.gauges {
            let now = to_f64(read(metrics));
            if now != *told {
                gauge.increment(now - *told);
                *told = now;
            }
        }
    }
}

/// Its share of what is there now is gone.
impl Drop for Meters {
    fn drop(&mut self) {
        for (gauge, _, told) in &self.gauges {
            gauge.decrement(*told);
        }
    }
}

fn describe() {
    for (name, meaning, _) in COUNTERS {
        describe_counter!(name, Unit::Count, meaning);
    }
    for (name, meaning, _) in GAUGES {
        describe_gauge!(name, Unit::Count, meaning);
    }
    describe_gauge!(MEMORY, Unit::Bytes, "What the model keeps in memory");
    for (name, meaning) in TIMES {
        describe_histogram!(name, Unit::Seconds, meaning);
    }
    describe_histogram!(ROWS, Unit::Count, "Rows of a step: the size of the batch");
}

/// What is told is a float.
#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_documented() {
        let document = include_str!("../../../../docs/observability.md");
        let reads = COUNTERS.iter().chain(&GAUGES).map(|(name, ..)| *name);
        let times = TIMES.iter().map(|(name, _)| *name);
        for name in reads.chain(times).chain([ROWS, MEMORY]) {
            assert!(document.contains(&format!("`{name}`")), "{name}");
        }
    }
}

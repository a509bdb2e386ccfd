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
    ("setun_cached_prompt_tokens_total", "Positions that were known", |m| m.cached_prompt_tokens),
    ("setun_draft_tokens_total", "Tokens that were guessed", |m| m.draft_tokens),
    ("setun_accepted_tokens_total", "Guessed tokens that were right", |m| m.accepted_tokens),
    ("setun_preemptions_total", "Places that were taken away", |m| m.preemptions),
    ("setun_preempted_tokens_total", "Positions lost thereby", |m| m.preempted_tokens),
    ("setun_memory_releases_total", "Times that memory was given back", |m| m.memory_releases),
    ("setun_released_bytes_total", "Bytes given back", |m| m.released_bytes),
    ("setun_finished_total", "Generations that came to their end", |m| m.finished),
    ("setun_aborted_total", "Generations that their caller ended", |m| m.aborted),
    ("setun_timed_out_total", "Generations whose time was over", |m| m.timed_out),
    ("setun_failed_total", "Generations that ended with an error", |m| m.failed),
];

const GAUGES: [Read; 5] = [
    ("setun_waiting", "Generations that wait", |m| m.waiting as u64),
    ("setun_running", "Generations that have a place", |m| m.running as u64),
    ("setun_cache_blocks", "Most blocks of the cache", |m| m.blocks as u64),
    ("setun_cache_used_blocks", "Blocks of running generations", |m| m.used_blocks as u64),
    ("setun_cache_prefix_blocks", "Blocks kept for prefixes", |m| m.cached_blocks as u64),
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
const TIMES: [(&str, &str); 6] = [
    ("setun_queue_seconds", "From a request to its place in the cache"),
    ("setun_time_to_first_token_seconds", "From a request to its first token"),
    ("setun_inter_token_latency_seconds", "From a token to the next"),
    ("setun_step_seconds", "A step"),
    ("setun_prefill_seconds", "From a place in the cache to the first token"),
    ("setun_decode_seconds", "From the first token to the last"),
];

/// Metrics that a scheduler sends to the recorder installed when it began.
pub(crate) struct Meters {
    counters: Vec<(Counter, Reader, u64)>, // as last reported
    gauges: Vec<(Gauge, Reader, f64)>,
    times: [Histogram; TIMES.len()],
    rows: Histogram,
}

impl Meters {
    pub(crate) fn new(report: &EngineInfo) -> Self {
        describe();
        let labels = vec![
            Label::new("model", report.model.clone()),
            Label::new("backend", report.backend.name()),
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

    /// Reports what has changed: several schedulers may share a name.
    pub(crate) fn update(&mut self, metrics: &EngineMetrics) {
        for (counter, read, reported) in &mut self.counters {
            let now = read(metrics);
            if now > *reported {
                counter.increment(now - *reported);
                *reported = now;
            }
        }
        for (gauge, read, reported) in &mut self.gauges {
            let now = to_f64(read(metrics));
            if now != *reported {
                gauge.increment(now - *reported);
                *reported = now;
            }
        }
    }
}

/// Its share of what is there now is gone.
impl Drop for Meters {
    fn drop(&mut self) {
        for (gauge, _, reported) in &self.gauges {
            gauge.decrement(*reported);
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

/// Gauges are floats.
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

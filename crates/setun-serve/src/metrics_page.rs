//! Pages of metrics in the text format of Prometheus.

use std::{
    fmt::{Display, Write as _},
    time::Duration,
};

use setun::TimeHistogram;

use crate::bucket_counts::BucketCounts;

/// Metrics that vLLM has not, which keep setun's prefix where the others have vLLM's.
pub(crate) const OWN: [&str; 17] = [
    "admissions_total",
    "http_responses_total",
    "kv_blocks_cached",
    "kv_blocks_limit",
    "kv_blocks_used",
    "log_lines_dropped_total",
    "memory_bytes",
    "model_budget_bytes",
    "model_load_failures_total",
    "model_loaded",
    "model_loads_total",
    "model_unloads_total",
    "operation_time_seconds_total",
    "prefix_hits_total",
    "request_failure_total",
    "step_time_seconds",
    "steps_total",
];

/// A page that grows.
#[derive(Default)]
pub(crate) struct Page {
    has_vllm_names: bool,
    families: Vec<Family>,
    /// The place of the metric that is written.
    place: usize,
    /// Labels of all lines.
    labels: String,
}

/// A metric: its name, type and values.
struct Family {
    name: String,
    head: String,
    lines: String,
}

impl Page {
    pub(crate) fn new(has_vllm_names: bool) -> Self {
        Self { has_vllm_names, ..Self::default() }
    }

    /// Begins the lines of a model.
    pub(crate) fn begin(&mut self, model: &str) {
        let engine = if self.has_vllm_names { "engine=\"0\"," } else { "" };
        self.labels = format!("{engine}model_name=\"{}\"", escaped(model));
    }

    /// Begins lines that are of no model.
    pub(crate) fn begin_server(&mut self) {
        self.labels.clear();
    }

    pub(crate) fn into_text(self) -> String {
        self.families.into_iter().map(|family| family.head + &family.lines).collect()
    }

    pub(crate) fn times(&mut self, name: &str, help: &str, times: &TimeHistogram, bounds: &[u64]) {
        let bucket = |bound: &u64| {
            let time = Duration::from_micros(*bound);
            (time.as_secs_f64(), times.count_up_to(time))
        };
        let buckets: Vec<_> = bounds.iter().map(bucket).collect();
        self.histogram(name, help, &buckets, (times.count(), times.sum().as_secs_f64()));
    }

    pub(crate) fn counts(&mut self, name: &str, help: &str, counts: &BucketCounts, unit: f64) {
        let (buckets, all) = counts.cumulative();
        let buckets: Vec<_> =
            buckets.into_iter().map(|(bound, count)| (to_f64(bound) / unit, count)).collect();
        self.histogram(name, help, &buckets, (all, to_f64(counts.sum()) / unit));
    }

    pub(crate) fn histogram(
        &mut self,
        name: &str,
        help: &str,
        buckets: &[(f64, u64)],
        (count, sum): (u64, impl Display),
    ) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in buckets {
            self.line(&bucket, &format!("le=\"{bound}\""), count);
        }
        self.line(&bucket, "le=\"+Inf\"", count);
        self.line(&format!("{name}_sum"), "", sum);
        self.line(&format!("{name}_count"), "", count);
    }

    pub(crate) fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    /// Begins the metric, or continues it for another model.
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let known = self.families.iter().position(|family| family.name == name);
        self.place = known.unwrap_or_else(|| {
            let prefix = self.prefix(name);
            let head = format!("# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}\n");
            self.families.push(Family { name: name.to_owned(), head, lines: String::new() });
            self.families.len() - 1
        });
    }

    pub(crate) fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let place = self.place;
        let prefix = self.families.get(place).map_or("", |family| self.prefix(&family.name));
        let Some(family) = self.families.get_mut(place) else { return };
        let comma = if self.labels.is_empty() || labels.is_empty() { "" } else { "," };
        let labels = format!("{}{comma}{labels}", self.labels);
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        // A string takes all.
        let _ = writeln!(family.lines, "{prefix}{name}{labels} {value}");
    }

    fn prefix(&self, name: &str) -> &'static str {
        if self.has_vllm_names && !OWN.contains(&name) { "vllm:" } else { "setun_" }
    }
}

/// Values of metrics are floats.
#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
pub(crate) fn to_f64(number: u64) -> f64 {
    number as f64
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

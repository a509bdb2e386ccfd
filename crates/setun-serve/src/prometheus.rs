//! Metrics in the text format of Prometheus, with vLLM's nouns and units.

use std::{
    fmt::{Display, Write as _},
    sync::atomic::Ordering,
    time::Duration,
};

use setun::{EngineMetrics, TimeHistogram};

use crate::{
    bucket_counts::BucketCounts,
    model_metrics::ModelMetrics,
    registry::{LoadState, ModelView},
    server_metrics::ServerMetrics,
};

/// Bounds of times to the first token and in the queue, in microseconds.
const FIRST_TOKEN: [u64; 17] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    40_000,
    80_000,
    160_000,
    320_000,
    640_000,
    1_280_000,
    2_560_000,
    5_000_000,
    10_000_000,
    40_000_000,
    160_000_000,
    640_000_000,
];

/// Bounds of times between tokens, in microseconds. A small model takes less than one millisecond.
const BETWEEN_TOKENS: [u64; 17] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 200_000, 500_000,
    1_000_000, 5_000_000, 20_000_000, 80_000_000,
];

/// Bounds of the rows of a step.
const ROWS: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// The metrics of models, each with the counts of its engines, and of the server before them.
pub(crate) fn text(models: &[(ModelView, EngineMetrics)], server: &ServerMetrics) -> String {
    let mut page = Page::default();
    for (model, engine) in models {
        page.labels = format!("model_name=\"{}\"", escaped(&model.name));
        page.loads(model);
        page.gauges(engine);
        page.counters(engine, &model.metrics);
        page.histograms(engine, &model.metrics);
    }
    page.labels.clear();
    page.responses(server);
    page.families.into_iter().map(|family| family.head + &family.lines).collect()
}

/// A page that grows.
#[derive(Default)]
struct Page {
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
    fn loads(&mut self, model: &ModelView) {
        let is_loaded = u64::from(model.state == LoadState::Loaded);
        self.one("model_loaded", "gauge", "Whether the model is in memory", is_loaded);
        let help = "Bytes of the memory budget that the model has";
        self.one("model_budget_bytes", "gauge", help, model.bytes);
        let counters = [
            ("model_loads_total", "Loads of the model", model.loads),
            ("model_unloads_total", "Times that it was unloaded", model.unloads),
            ("model_load_failures_total", "Loads that failed", model.failures),
        ];
        for (name, help, value) in counters {
            self.one(name, "counter", help, value);
        }
    }

    fn gauges(&mut self, engine: &EngineMetrics) {
        self.one("num_requests_running", "gauge", "Generations in the batch", engine.running);
        self.one("num_requests_waiting", "gauge", "Generations in the queue", engine.waiting);
        let blocks = [
            ("kv_blocks_total", "Most blocks of the KV cache", engine.blocks),
            ("kv_blocks_used", "Blocks of running generations", engine.used_blocks),
            ("kv_blocks_cached", "Blocks kept for prefixes", engine.cached_blocks),
        ];
        for (name, help, value) in blocks {
            self.one(name, "gauge", help, value);
        }
        self.one("kv_cache_usage_perc", "gauge", "Share of used blocks, 0 to 1", usage(engine));
        let memory = engine.memory;
        let kinds = [
            ("body", memory.body),
            ("head", memory.head),
            ("screen", memory.screen),
            ("cache", memory.cache),
        ];
        self.head("memory_bytes", "gauge", "Bytes that the model keeps");
        for (kind, bytes) in kinds {
            self.line("memory_bytes", &format!("kind=\"{kind}\""), bytes);
        }
    }

    fn counters(&mut self, engine: &EngineMetrics, answers: &ModelMetrics) {
        let prompts = answers.prompt_tokens.load(Ordering::Relaxed);
        let cached = answers.cached_tokens.load(Ordering::Relaxed);
        let counters = [
            ("prompt_tokens_total", "Tokens of prompts of requests that ended", prompts),
            ("prefix_cache_hits_total", "Those found in the prefix cache", cached),
            ("generation_tokens_total", "Tokens that were generated", engine.tokens),
            ("num_preemptions_total", "Generations that gave up their blocks", engine.preemptions),
            ("request_failure_total", "Generations that ended with an error", engine.failed),
        ];
        for (name, help, value) in counters {
            self.one(name, "counter", help, value);
        }
        self.head("request_success_total", "counter", "Choices by the reason of their end");
        for (reason, count) in answers.finished().chain([("abort", engine.aborted)]) {
            let label = format!("finished_reason=\"{reason}\"");
            self.line("request_success_total", &label, count);
        }
    }

    fn responses(&mut self, server: &ServerMetrics) {
        self.head("http_responses_total", "counter", "Answers by their status");
        for (status, count) in server.responses() {
            self.line("http_responses_total", &format!("status=\"{status}\""), count);
        }
    }

    fn histograms(&mut self, engine: &EngineMetrics, answers: &ModelMetrics) {
        let times = [
            ("time_to_first_token_seconds", &engine.time_to_first_token, &FIRST_TOKEN),
            ("request_queue_time_seconds", &engine.queue_time, &FIRST_TOKEN),
            ("inter_token_latency_seconds", &engine.inter_token_latency, &BETWEEN_TOKENS),
            ("step_time_seconds", &engine.step_time, &BETWEEN_TOKENS),
        ];
        for (name, histogram, bounds) in times {
            self.times(name, histogram, bounds);
        }
        let rows = &engine.step_rows;
        let buckets = ROWS.map(|bound| (to_f64(bound), rows.count_up_to(bound)));
        self.histogram("iteration_tokens_total", &buckets, rows.count(), rows.sum());
        let (prompts, texts) = (&answers.request_prompt_tokens, &answers.request_generation_tokens);
        self.counts("request_prompt_tokens", prompts, 1.0);
        self.counts("request_generation_tokens", texts, 1.0);
        self.counts("e2e_request_latency_seconds", &answers.latency, 1e3);
    }

    fn times(&mut self, name: &str, times: &TimeHistogram, bounds: &[u64]) {
        let bucket = |bound: &u64| {
            let time = Duration::from_micros(*bound);
            (time.as_secs_f64(), times.count_up_to(time))
        };
        let buckets: Vec<_> = bounds.iter().map(bucket).collect();
        self.histogram(name, &buckets, times.count(), times.sum().as_secs_f64());
    }

    fn counts(&mut self, name: &str, counts: &BucketCounts, unit: f64) {
        let (buckets, all) = counts.cumulative();
        let buckets: Vec<_> =
            buckets.into_iter().map(|(bound, count)| (to_f64(bound) / unit, count)).collect();
        self.histogram(name, &buckets, all, to_f64(counts.sum()) / unit);
    }

    fn histogram(&mut self, name: &str, buckets: &[(f64, u64)], count: u64, sum: impl Display) {
        self.head(name, "histogram", "See docs/serving.md");
        let bucket = format!("{name}_bucket");
        for (bound, count) in buckets {
            self.line(&bucket, &format!("le=\"{bound}\""), count);
        }
        self.line(&bucket, "le=\"+Inf\"", count);
        self.line(&format!("{name}_sum"), "", sum);
        self.line(&format!("{name}_count"), "", count);
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    /// Begins the metric, or continues it for another model.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let known = self.families.iter().position(|family| family.name == name);
        self.place = known.unwrap_or_else(|| {
            let head = format!("# HELP setun_{name} {help}\n# TYPE setun_{name} {kind}\n");
            self.families.push(Family { name: name.to_owned(), head, lines: String::new() });
            self.families.len() - 1
        });
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let Some(family) = self.families.get_mut(self.place) else { return };
        let comma = if self.labels.is_empty() || labels.is_empty() { "" } else { "," };
        let labels = format!("{}{comma}{labels}", self.labels);
        // A string takes all.
        let _ = writeln!(family.lines, "setun_{name}{{{labels}}} {value}");
    }
}

/// Values of metrics are floats.
#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn usage(engine: &EngineMetrics) -> f64 {
    to_f64(engine.used_blocks as u64) / to_f64(engine.blocks.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{LoadProgress, ModelRegistry, ModelSpec, OpenError};

    #[test]
    fn each_metric_has_a_type_and_its_buckets_rise() {
        let server = ServerMetrics::default();
        server.add_response(200);
        let opener = |_: &LoadProgress| Err(OpenError::from("none"));
        let specs = ["a\"b", "c"].map(|name| ModelSpec::new(name, opener));
        let models = ModelRegistry::new(specs.into()).expect("two names").views();
        let counted = |model: ModelView| {
            model.metrics.add_prompt(7);
            (model, EngineMetrics::default())
        };
        let models: Vec<_> = models.into_iter().map(counted).collect();
        let page = text(&models, &server);
        assert!(page.contains("setun_prompt_tokens_total{model_name=\"a\\\"b\"} 7\n"), "{page}");
        assert!(page.contains("setun_prompt_tokens_total{model_name=\"c\"} 7\n"), "{page}");
        assert!(page.contains("setun_http_responses_total{status=\"200\"} 1\n"));
        let mut typed = std::collections::BTreeSet::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(typed.insert(rest.split(' ').next().unwrap_or_default()), "{line} twice");
            } else if !line.starts_with('#') {
                let name = line.split('{').next().unwrap_or_default();
                let ends = ["_bucket", "_sum", "_count"];
                let base = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
                assert!(typed.contains(base) || typed.contains(name), "{line}");
            }
        }
        let bucket = |bound: &str| {
            let line =
                format!("request_prompt_tokens_bucket{{model_name=\"a\\\"b\",le=\"{bound}\"}} ");
            let at = page.find(&line).expect(bound) + line.len();
            page[at..].starts_with('1')
        };
        assert!(!bucket("5") && bucket("10") && bucket("+Inf"));
    }
}

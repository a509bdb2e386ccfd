//! Metrics in the text format of Prometheus, with vLLM's nouns and units.

use std::sync::atomic::Ordering;

use setun::{EngineMetrics, OperationTime};

use crate::{
    metrics_page::{Page, to_f64},
    model_metrics::{ModelMetrics, REQUEST_TIMES, TOKEN_TIMES},
    registry::{LoadState, ModelView},
    server_metrics::ServerMetrics,
};

/// Bounds of times to the first token, in microseconds: vLLM's, and one below.
const FIRST_TOKEN: &[u64] = &[
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    40_000,
    60_000,
    80_000,
    100_000,
    250_000,
    500_000,
    750_000,
    1_000_000,
    2_500_000,
    5_000_000,
    7_500_000,
    10_000_000,
    20_000_000,
    40_000_000,
    80_000_000,
    160_000_000,
    640_000_000,
    2_560_000_000,
];

const FIRST_TOKEN_HELP: &str = "From a request to its first token";
const QUEUE_HELP: &str = "From a request to its place in the batch";
const PREFILL_HELP: &str = "From the place in the batch to the first token";
const DECODE_HELP: &str = "From the first token to the last";
const PER_TOKEN_HELP: &str = "Time of a token after the first, mean of a text";

/// Bounds of the rows of a step.
const ROWS: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// The metrics of models, each with the counts of its engines, and of the server before them.
pub(crate) fn text(models: &[(ModelView, EngineMetrics)], server: &ServerMetrics) -> String {
    let mut page = Page::new(server.has_vllm_names);
    for (model, engine) in models {
        page.begin(&model.name);
        page.loads(model);
        page.gauges(engine);
        page.counters(engine, &model.metrics);
        page.operations(engine);
        page.histograms(engine, &model.metrics);
    }
    page.begin_server();
    page.responses(server);
    page.into_text()
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
            ("kv_blocks_limit", "Most blocks of the KV cache", engine.blocks),
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
        let queried = answers.queried_tokens.load(Ordering::Relaxed);
        let cached = answers.cached_tokens.load(Ordering::Relaxed);
        let counters = [
            ("prompt_tokens_total", "Tokens of prompts of requests that ended", prompts),
            ("prefix_cache_queries_total", "Those looked up in the prefix cache", queried),
            ("prefix_cache_hits_total", "Those found in the prefix cache", cached),
            ("generation_tokens_total", "Tokens that were generated", engine.tokens),
            ("num_preemptions_total", "Generations that gave up their blocks", engine.preemptions),
            ("steps_total", "Passes over the weights", engine.steps),
            ("admissions_total", "Places given in the batch", engine.admissions),
            ("prefix_hits_total", "Those that found cached tokens", engine.prefix_hits),
            ("spec_decode_num_drafts_total", "Drafts that were verified", engine.drafts),
            ("spec_decode_num_draft_tokens_total", "Tokens of drafts", engine.draft_tokens),
            (
                "spec_decode_num_accepted_tokens_total",
                "Those that were right",
                engine.accepted_tokens,
            ),
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

    fn operations(&mut self, engine: &EngineMetrics) {
        let name = "operation_time_seconds_total";
        self.head(name, "counter", "Time of steps by operation, from those that were timed");
        for operation in &engine.operations {
            let OperationTime { name: operation, role, prefill, decode } = operation;
            let role = role.map(|role| format!(",role=\"{role}\"")).unwrap_or_default();
            for (phase, time) in [("prefill", prefill), ("decode", decode)] {
                let labels = format!("operation=\"{operation}\"{role},phase=\"{phase}\"");
                self.line(name, &labels, time.as_secs_f64());
            }
        }
    }

    fn responses(&mut self, server: &ServerMetrics) {
        self.head("http_responses_total", "counter", "Answers by their status");
        for (status, count) in server.responses() {
            self.line("http_responses_total", &format!("status=\"{status}\""), count);
        }
        let help = "Requests of batches by the status of their answers";
        self.head("batch_requests_total", "counter", help);
        for (status, count) in server.batch_requests() {
            self.line("batch_requests_total", &format!("status=\"{status}\""), count);
        }
        let dropped = server.dropped_log_lines.load(Ordering::Relaxed);
        let help = "Lines of the log that could not be written";
        self.one("log_lines_dropped_total", "counter", help, dropped);
    }

    fn histograms(&mut self, engine: &EngineMetrics, answers: &ModelMetrics) {
        let times = [
            ("time_to_first_token_seconds", FIRST_TOKEN_HELP, &engine.time_to_first_token),
            ("request_queue_time_seconds", QUEUE_HELP, &engine.queue_time),
            ("request_prefill_time_seconds", PREFILL_HELP, &engine.prefill_time),
            ("request_decode_time_seconds", DECODE_HELP, &engine.decode_time),
            (
                "inter_token_latency_seconds",
                "From a token to the next",
                &engine.inter_token_latency,
            ),
            ("step_time_seconds", "Time of a step", &engine.step_time),
        ];
        for (name, help, histogram) in times {
            let bounds = match name {
                "time_to_first_token_seconds" => FIRST_TOKEN,
                "inter_token_latency_seconds" | "step_time_seconds" => TOKEN_TIMES,
                _ => REQUEST_TIMES,
            };
            self.times(name, help, histogram, bounds);
        }
        let rows = &engine.step_rows;
        let buckets = ROWS.map(|bound| (to_f64(bound), rows.count_up_to(bound)));
        let help = "Rows of a step: prompt tokens and one of each other text";
        self.histogram("iteration_tokens_total", help, &buckets, (rows.count(), rows.sum()));
        let counts = [
            ("request_prompt_tokens", "Tokens of a prompt", &answers.request_prompt_tokens),
            ("request_generation_tokens", "Tokens of a text", &answers.request_generation_tokens),
            ("e2e_request_latency_seconds", "From a request to its end", &answers.latency),
            ("request_time_per_output_token_seconds", PER_TOKEN_HELP, &answers.time_per_token),
        ];
        for (name, help, counts) in counts {
            let unit = if name.ends_with("_seconds") { 1e6 } else { 1.0 };
            self.counts(name, help, counts, unit);
        }
    }
}

fn usage(engine: &EngineMetrics) -> f64 {
    to_f64(engine.used_blocks as u64) / to_f64(engine.blocks.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        metrics_page::OWN,
        registry::{LoadProgress, ModelRegistry, ModelSpec, OpenError},
    };

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
                let name = line.split(['{', ' ']).next().unwrap_or_default();
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
        let own: Vec<_> = OWN.iter().map(|name| format!("setun_{name}")).collect();
        assert!(own.iter().all(|name| typed.contains(&**name)), "{typed:?}");
        let vllm = text(&models, &ServerMetrics::new(true, Arc::default()));
        for name in typed {
            let is_own = own.iter().any(|own| own == name);
            let name = if is_own { name.to_owned() } else { name.replacen("setun_", "vllm:", 1) };
            assert!(vllm.contains(&format!("# TYPE {name} ")), "{name}");
        }
        let line = "vllm:num_requests_running{engine=\"0\",model_name=\"c\"} 0\n";
        assert!(vllm.contains(line), "{vllm}");
    }
}

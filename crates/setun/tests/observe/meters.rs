//! Counters, gauges and histograms.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use setun::GenerateOptions;

use super::{builder, metrics};

/// Sums of what was told, by name and kind; histograms are read once.
struct Heard {
    sums: BTreeMap<String, f64>,
    counts: BTreeMap<String, usize>,
}

impl Heard {
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    fn read(snapshotter: &Snapshotter) -> Self {
        let (mut sums, mut counts) = (BTreeMap::new(), BTreeMap::new());
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let labels: BTreeMap<_, _> =
                key.key().labels().map(|label| (label.key(), label.value())).collect();
            assert_eq!((labels["model"], labels["backend"]), ("setun-stories", "cpu"));
            let name = match labels.get("kind") {
                Some(kind) => format!("{} {kind}", key.key().name()),
                None => key.key().name().to_owned(),
            };
            let (sum, count) = match value {
                DebugValue::Counter(count) => (count as f64, 1),
                DebugValue::Gauge(now) => (now.into_inner(), 1),
                DebugValue::Histogram(values) => {
                    (values.iter().map(|value| value.into_inner()).sum(), values.len())
                }
            };
            sums.insert(name.clone(), sum);
            counts.insert(name, count);
        }
        Self { sums, counts }
    }
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn a_recorder_hears_what_the_engine_counts() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let engine = ::metrics::with_local_recorder(&recorder, || builder().build()).expect("a start");
    let prompt: Vec<u32> = (0..100).map(|at| at * 7 % 500).collect();
    let options = || GenerateOptions::new().max_tokens(12).seed(1);
    engine.complete(prompt.clone(), options()).expect("a text");
    engine.complete(prompt.clone(), options()).expect("a text");
    let repeating = "The bird sang a song. The bird sang a song. The bird sang a song.";
    engine.complete(repeating, options().lookahead(8)).expect("a text");
    // Longer than what waits to be read: it cannot end by itself.
    let long = options().min_tokens(200).max_tokens(200);
    drop(engine.generate("Once", long).expect("a stream"));

    let told = metrics(&engine);
    let memory = pollster::block_on(engine.memory()).expect("an engine");
    let heard = Heard::read(&snapshotter);
    let count = |name: &str| heard.sums[name];
    assert_eq!(count("setun_tokens_total"), told.tokens as f64);
    assert_eq!(count("setun_rows_total"), told.rows as f64);
    assert_eq!(count("setun_finished_total"), 3.0);
    assert_eq!((told.finished, told.failed, told.timed_out), (3, 0, 0));
    assert_eq!(told.memory, memory);
    assert_eq!(count("setun_memory_bytes body"), memory.body as f64);
    assert_eq!(count("setun_memory_bytes cache"), memory.cache as f64);
    assert!(memory.cache > 0);
    // The second prompt found the first one's three full blocks of 32 positions.
    assert!(told.prefix_hits >= 1 && told.cached_prompt_tokens >= 96, "{told:?}");
    assert_eq!(count("setun_prefix_hits_total"), told.prefix_hits as f64);
    assert!(told.draft_tokens > 0);
    assert_eq!(count("setun_draft_tokens_total"), told.draft_tokens as f64);
    assert_eq!(count("setun_accepted_tokens_total"), told.accepted_tokens as f64);

    // Of the last generation some tokens may have come before it was dropped.
    let (queue, first) = (&told.queue_time, &told.time_to_first_token);
    assert_eq!(heard.counts["setun_queue_seconds"] as u64, queue.count());
    assert_eq!(heard.counts["setun_time_to_first_token_seconds"] as u64, first.count());
    assert!((3..=4).contains(&first.count()) && queue.count() >= first.count());
    let between = &told.inter_token_latency;
    assert_eq!(between.count() + first.count(), told.tokens);
    let seconds = count("setun_inter_token_latency_seconds");
    assert!((seconds - between.sum().as_secs_f64()).abs() < 1e-6);
    assert_eq!(heard.counts["setun_step_rows"] as u64, told.steps);
    assert_eq!(count("setun_step_rows"), told.rows as f64);
    assert_eq!(told.step_rows.sum(), u128::from(told.rows));
    assert_eq!(told.step_time.count(), told.steps);
    assert!(told.step_time.most() <= first.sum() + between.sum() + told.step_time.sum());

    engine.close();
    // A snapshot is of what came since the last one.
    let after = Heard::read(&snapshotter);
    assert_eq!(heard.sums["setun_running"] + after.sums["setun_running"], 0.0);
    for (name, bytes) in heard.sums.iter().filter(|(name, _)| name.contains("memory")) {
        assert_eq!(bytes + after.sums[name], 0.0, "its memory is free: {name}");
    }
}

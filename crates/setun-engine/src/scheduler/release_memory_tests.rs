//! Memory that a scheduler releases, and the order of it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use futures::{FutureExt, StreamExt};

use super::{
    test_support::{Stepped, info, limits, request, submit},
    *,
};
use crate::{
    ErrorCode,
    command::MaintenanceTask,
    event::Event,
    fake_model::{BLOCK_POSITIONS, FakeModel},
    memory_pressure::Pressure,
    metrics::EngineMetrics,
    stream::GenerationStream,
};

const BLOCK_BYTES: usize = 100;

/// The next token is always the same.
fn model() -> FakeModel {
    FakeModel {
        context: 40 * BLOCK_POSITIONS,
        max_rows: 64,
        block_bytes: BLOCK_BYTES,
        spread: 0.0,
        ..FakeModel::new(2, 0)
    }
}

fn scheduler(model: FakeModel) -> Scheduler {
    let limits = Limits { blocks: 60, min_blocks: 10, prefix_blocks: 60, ..limits(0) };
    Scheduler::new(Box::new(model), info(), limits)
}

impl Stepped {
    fn start(&self, prompt: Vec<u32>, max_tokens: usize) -> GenerationStream {
        submit(&self.commands, request(prompt, max_tokens))
    }

    /// The tokens of a stream up to its end, and how it fails.
    fn read(&mut self, mut stream: GenerationStream) -> (Vec<u32>, Option<ErrorCode>) {
        let mut tokens = vec![];
        loop {
            self.steps(1);
            match stream.next().now_or_never() {
                None | Some(Some(Ok(Event::Progress(_) | Event::Prompt(_)))) => {}
                Some(Some(Ok(Event::Text(delta)))) => tokens.push(delta.token),
                Some(Some(Ok(Event::Done(_))) | None) => return (tokens, None),
                Some(Some(Err(error))) => return (tokens, Some(error.code())),
            }
        }
    }

    /// Bytes that are given back.
    fn release_memory(&mut self, pressure: Pressure) -> Result<usize, Error> {
        self.ask(|reply| MaintenanceTask::ReleaseMemory { pressure, reply })
    }

    /// Blocks that are given back.
    fn limit(&mut self, blocks: usize) -> usize {
        let bytes = BLOCK_BYTES.saturating_mul(blocks);
        self.ask(|reply| MaintenanceTask::LimitCache { bytes, reply }).expect("no failure")
            / BLOCK_BYTES
    }
}

#[test]
fn prefixes_go_before_generations_and_those_before_their_texts() {
    let mut scheduler = Stepped::new(scheduler(model()));
    let kept = scheduler.start(vec![0; 31], 1);
    assert_eq!(scheduler.read(kept), (vec![0], None));
    // Nobody reads these two, so that they wait with what they have.
    let streams = [vec![1; 9], vec![1, 0, 1, 0, 1, 0, 1, 0, 1]].map(|p| scheduler.start(p, 100));
    scheduler.steps(300);
    let full = scheduler.metrics();
    let used = full.used_blocks;
    assert_eq!((full.running, full.cached_blocks, full.memory.cache), (2, 7, 100 * (used + 7)));

    let state = |scheduler: &mut Stepped| {
        let EngineMetrics { running, cached_blocks, memory, preemptions, .. } = scheduler.metrics();
        (running, cached_blocks, memory.cache / BLOCK_BYTES, preemptions)
    };
    assert_eq!(scheduler.limit(used + 20), 0);
    assert_eq!(scheduler.limit(used + 3), 4);
    assert_eq!(state(&mut scheduler), (2, 3, used + 3, 0));
    assert_eq!(scheduler.limit(used), 3);
    assert_eq!(state(&mut scheduler), (2, 0, used, 0));
    // What the later one has computed is kept as far as there is room.
    assert_eq!(scheduler.limit(used - 1), 1);
    assert!(matches!(state(&mut scheduler), (1, 1.., memory, 1) if memory == used - 1));
    for stream in streams {
        assert_eq!(scheduler.read(stream), (vec![0; 100], None));
    }
    let within = scheduler.metrics();
    assert!(within.blocks == used - 1 && within.memory.cache <= 100 * (used - 1), "{within:?}");
    assert_eq!(within.memory_releases, 3);
    scheduler.limit(0);
    assert_eq!(scheduler.metrics().blocks, 10, "one context");
    scheduler.limit(usize::MAX);
    assert_eq!(scheduler.metrics().blocks, 60);
}

#[test]
fn only_where_it_is_critical_do_generations_give_up_what_they_have() {
    let mut scheduler = Stepped::new(scheduler(model()));
    let unread = scheduler.start(vec![1; 9], 100);
    scheduler.steps(300);
    let held = scheduler.metrics().used_blocks;
    let read = scheduler.start(vec![0; 9], 40);
    scheduler.steps(8);
    let given = scheduler.release_memory(Pressure::Moderate).expect("no failure");
    let moderate = scheduler.metrics();
    assert_eq!((given, moderate.running, moderate.preemptions), (0, 2, 0));
    let given = scheduler.release_memory(Pressure::Critical).expect("no failure") / BLOCK_BYTES;
    let critical = scheduler.metrics();
    assert!((1..=held).contains(&given) && critical.waiting == 1, "{given} of {held}");
    assert_eq!((critical.running, critical.preemptions, critical.cached_blocks), (1, 1, 0));
    assert!(critical.memory.cache <= 100 * (critical.used_blocks + 1), "{critical:?}");
    assert_eq!(scheduler.read(read), (vec![0; 40], None));
    assert_eq!(scheduler.read(unread), (vec![0; 100], None));
}

#[test]
fn a_watch_is_heeded_while_nothing_is_done_and_only_where_it_helps() {
    let (asked, short) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let monitor = {
        let (asked, short) = (Arc::clone(&asked), Arc::clone(&short));
        move || {
            asked.fetch_add(1, Ordering::Relaxed);
            short.load(Ordering::Relaxed).then_some(Pressure::Moderate)
        }
    };
    let monitor: SharedMonitor = Arc::new(Mutex::new(Box::new(monitor)));
    let scheduler = scheduler(model()).with_monitor(monitor, Duration::ZERO);
    let mut scheduler = Stepped::new(scheduler);
    let stream = scheduler.start(vec![1; 17], 4);
    assert_eq!(scheduler.read(stream), (vec![0; 4], None));
    assert_eq!(scheduler.metrics().cached_blocks, 5);
    short.store(true, Ordering::Relaxed);
    scheduler.steps(2);
    let released = scheduler.metrics();
    assert_eq!(
        (released.memory_releases, released.released_bytes, released.cached_blocks),
        (1, 500, 0)
    );
    assert_eq!(released.memory.cache, 0);
    // Nobody wakes up for an empty cache.
    let before = asked.load(Ordering::Relaxed);
    scheduler.steps(20);
    assert_eq!(asked.load(Ordering::Relaxed), before);
    assert_eq!(scheduler.metrics().memory_releases, 1);
}

#[test]
fn a_memory_monitor_is_asked_at_its_interval() {
    let mut monitor =
        PolledMonitor::new(Arc::new(Mutex::new(Box::new(|| None))), Duration::from_mins(1));
    let now = Clock::held().now();
    assert!(monitor.left(now).is_zero());
    assert_eq!(monitor.pressure(now), None);
    assert_eq!(monitor.left(now + Duration::from_secs(59)), Duration::from_secs(1));
    assert!(monitor.left(now + Duration::from_secs(61)).is_zero());
}

#[test]
fn a_model_that_fails_to_shrink_ends_what_runs_and_nothing_later() {
    let failing = FakeModel { fails_to_shrink: true, ..model() };
    let mut scheduler = Stepped::new(scheduler(failing));
    let stream = scheduler.start(vec![1; 9], 100);
    scheduler.steps(8);
    let error = scheduler.release_memory(Pressure::Moderate).expect_err("a failure");
    assert_eq!(error.code(), ErrorCode::DeviceLost);
    let (tokens, failed) = scheduler.read(stream);
    assert!(tokens.len() < 20 && failed == Some(ErrorCode::DeviceLost), "{tokens:?} {failed:?}");
    let stream = scheduler.start(vec![1; 9], 100);
    assert_eq!(scheduler.read(stream), (vec![0; 100], None));
    assert_eq!(scheduler.metrics().failed, 1);
}

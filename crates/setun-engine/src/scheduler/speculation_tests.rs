//! The scheduler beside a draft: good, bad, failing, with a long prompt, short of memory, lost.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt, channel::mpsc::UnboundedSender, future::ready};
use setun_text::SamplerOptions;

use super::{
    draft_runner::MAX_DRAFTED_ROWS,
    test_support::{ask, info, request, sampler, spawn, spawn_after, submit},
    *,
};
use crate::{
    command::MaintenanceTask,
    fake_model::{BLOCK_POSITIONS, FakeModel},
    memory_pressure::Pressure,
    metrics::EngineMetrics,
    parts::ReloadModel,
    stream::GenerationStream,
};

const VOCABULARY: usize = 30;
const BLOCKS: usize = 200;
const CONTEXT: usize = BLOCKS * BLOCK_POSITIONS;

fn model(seed: u64) -> FakeModel {
    FakeModel { context: CONTEXT, max_rows: 64, order: 6, ..FakeModel::new(VOCABULARY, seed) }
}

fn draft_runner(model: FakeModel) -> DraftModelRunner {
    DraftModelRunner::new(Box::new(model), BLOCKS, 0, None).expect("a draft")
}

const LIMITS: Limits = Limits {
    blocks: BLOCKS,
    min_blocks: BLOCKS,
    prefix_blocks: 0,
    max_concurrent: 64,
    wait: Duration::ZERO,
};

fn scheduler(target: &FakeModel) -> Scheduler {
    Scheduler::new(Box::new(target.clone()), info(), LIMITS)
}

fn generate(
    commands: &UnboundedSender<Command>,
    prompt: &[u32],
    (tokens, temperature): (usize, f32),
) -> GenerationStream {
    let options = SamplerOptions { temperature, ..SamplerOptions::default() };
    let mut request = request(prompt.to_vec(), tokens);
    request.sampler = sampler(options);
    (request.vocabulary, request.lookahead, request.seed) = (VOCABULARY, 8, 3);
    submit(commands, request)
}

fn text(commands: &UnboundedSender<Command>, prompt: &[u32], how: (usize, f32)) -> Vec<u32> {
    generate(commands, prompt, how).wait().expect("a text").tokens
}

fn metrics(commands: &UnboundedSender<Command>) -> EngineMetrics {
    pollster::block_on(ask(commands, MaintenanceTask::Metrics)).expect("an owner")
}

/// Holds the cache to this many bytes; how many are given back.
fn limit(commands: &UnboundedSender<Command>, bytes: usize) -> usize {
    let released = ask(commands, |reply| MaintenanceTask::LimitCache { bytes, reply });
    pollster::block_on(released).expect("an answer").expect("no failure")
}

fn steps(of: &Arc<Mutex<Vec<usize>>>) -> Vec<usize> {
    of.lock().expect("steps").clone()
}

fn prompt(len: usize) -> Vec<u32> {
    (0..len).map(|at| u32::try_from(at * at % VOCABULARY).expect("few")).collect()
}

#[test]
fn a_draft_that_is_always_right_saves_most_steps_greedy_and_sampled() {
    for temperature in [0.0, 1.0] {
        let how = (60, temperature);
        let alone = text(&spawn(scheduler(&model(5))), &prompt(9), how);
        let target = model(5);
        let commands = spawn(scheduler(&target).with_draft_runner(draft_runner(model(5))));
        assert_eq!(text(&commands, &prompt(9), how), alone);
        let found = metrics(&commands);
        assert!(
            found.draft_tokens > 40 && found.accepted_tokens == found.draft_tokens,
            "{found:?}"
        );
        assert!(steps(&target.steps).len() < 20, "{:?}", steps(&target.steps));
    }
}

#[test]
fn a_draft_that_says_something_else_is_hardly_asked() {
    let alone = text(&spawn(scheduler(&model(5))), &prompt(9), (200, 0.0));
    let draft = model(6);
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(scheduler(&model(5)).with_draft_runner(draft_runner(draft)));
    assert_eq!(text(&commands, &prompt(9), (200, 0.0)), alone);
    let found = metrics(&commands);
    assert!(found.accepted_tokens < found.draft_tokens / 2, "{found:?}");
    assert!(steps(&of_draft).len() < 50, "{:?}", steps(&of_draft));
}

#[test]
fn several_texts_share_the_steps_of_a_draft() {
    let draft = model(5);
    let of_draft = Arc::clone(&draft.steps);
    let scheduler_of_both = scheduler(&model(5)).with_draft_runner(draft_runner(draft));
    let prompts: Vec<_> = (5..13).map(prompt).collect();
    let (_commands, streams) = spawn_after(scheduler_of_both, |commands| {
        prompts.iter().map(|prompt| generate(commands, prompt, (30, 1.0))).collect::<Vec<_>>()
    });
    for (stream, prompt) in streams.into_iter().zip(&prompts) {
        let alone = text(&spawn(scheduler(&model(5))), prompt, (30, 1.0));
        assert_eq!(stream.wait().expect("a text").tokens, alone);
    }
    let rows = steps(&of_draft);
    assert!(rows.iter().filter(|&&rows| rows > 1).count() > rows.len() / 2, "{rows:?}");
}

#[test]
fn a_draft_that_fails_changes_no_text_and_is_asked_again_when_nothing_runs() {
    let draft = FakeModel { fails_at: Some(5), ..model(5) };
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(scheduler(&model(5)).with_draft_runner(draft_runner(draft)));
    let alone = text(&spawn(scheduler(&model(5))), &prompt(9), (60, 0.0));
    assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
    assert_eq!(steps(&of_draft).len(), 6, "until it failed");
    assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
    assert!(steps(&of_draft).len() > 40, "{:?}", steps(&of_draft));
}

#[test]
fn a_long_prompt_comes_to_a_draft_in_parts() {
    let target = FakeModel { max_rows: CONTEXT, ..model(5) };
    let draft = FakeModel { max_rows: CONTEXT, ..model(5) };
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(scheduler(&target).with_draft_runner(draft_runner(draft)));
    let long = prompt(2 * MAX_DRAFTED_ROWS + 20);
    let how = (30, 0.0);
    let alone = text(&spawn(scheduler(&model(5))), &long, how);
    assert_eq!(text(&commands, &long, how), alone);
    let rows = steps(&of_draft);
    assert_eq!(rows[..2], [MAX_DRAFTED_ROWS; 2]);
    assert!((20..30).contains(&rows[2]), "what is left, and tokens since: {rows:?}");
    assert!(metrics(&commands).accepted_tokens > 20);
}

#[test]
fn a_draft_gives_its_cache_back_where_memory_is_very_short() {
    let draft = model(5);
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(scheduler(&model(5)).with_draft_runner(draft_runner(draft)));
    let stream = generate(&commands, &prompt(9), (150, 0.0));
    let mut events = stream.blocking();
    events.nth(20);
    let pressure = Pressure::Critical;
    // Together, so that no step is between them.
    let before = ask(&commands, MaintenanceTask::Metrics);
    let released = ask(&commands, |reply| MaintenanceTask::ReleaseMemory { pressure, reply });
    let after = ask(&commands, MaintenanceTask::Metrics);
    let released = pollster::block_on(released).expect("an answer").expect("no failure");
    let [before, after] =
        [before, after].map(|metrics| pollster::block_on(metrics).expect("an owner").memory.cache);
    assert!(released > 0 && after < before, "{released} of {before}, {after} left");
    let asked = steps(&of_draft).len();
    assert_eq!(events.count(), 150 - 21 + 1, "and the end");
    assert_eq!(steps(&of_draft).len(), asked, "it rests");
    text(&commands, &prompt(9), (20, 0.0));
    assert!(steps(&of_draft).len() > asked, "until nothing runs");
}

#[test]
fn a_limit_of_the_cache_is_one_of_both() {
    const LIMIT: usize = 150;
    let (target, draft) = (model(5), model(5));
    let limits = Limits { min_blocks: 1, ..LIMITS };
    let scheduler =
        Scheduler::new(Box::new(target), info(), limits).with_draft_runner(draft_runner(draft));
    let commands = spawn(scheduler);
    let streams: Vec<_> =
        (5..13).map(|seed| generate(&commands, &prompt(seed), (150, 0.0))).collect();
    let mut texts: Vec<_> = streams.into_iter().map(GenerationStream::blocking).collect();
    for events in &mut texts {
        drop(events.nth(100));
    }
    let before = metrics(&commands).memory.cache;
    assert!(before > LIMIT, "{before}");
    let given = limit(&commands, LIMIT);
    let after = metrics(&commands).memory.cache;
    assert!(after <= LIMIT && given + LIMIT >= before, "{before}, {after}, {given}");
    for events in texts {
        assert_eq!(events.count(), 150 - 101 + 1, "and the end");
    }
    assert!(metrics(&commands).memory.cache <= LIMIT);
    limit(&commands, usize::MAX);
    let alone = text(&spawn(self::scheduler(&model(5))), &prompt(9), (150, 0.0));
    assert_eq!(text(&commands, &prompt(9), (150, 0.0)), alone);
}

/// Makes the same model every time, but for the first few, and counts.
struct Anew {
    model: FakeModel,
    failing: usize,
    made: Arc<AtomicUsize>,
}

impl ReloadModel for Anew {
    fn reload(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Model>, Error>> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let failing = self.failing > 0;
        self.failing = self.failing.saturating_sub(1);
        let made =
            if failing { Err(Error::Disposed) } else { Ok(Box::new(self.model.clone()) as _) };
        ready(made).boxed_local()
    }
}

/// A scheduler beside a twin, both lost with their device in the fourth step. Each comes back after
/// some failures; how often each was tried.
fn losing([failing, of_draft]: [usize; 2]) -> (UnboundedSender<Command>, [Arc<AtomicUsize>; 2]) {
    let made: [Arc<AtomicUsize>; 2] = Default::default();
    let target = FakeModel { fails_at: Some(4), is_device_lost: true, ..model(5) };
    let anew = |model: &FakeModel, failing, made: &Arc<AtomicUsize>| {
        Box::new(Anew { model: model.clone(), failing, made: Arc::clone(made) })
    };
    let draft = model(5);
    let reload = anew(&draft, of_draft, &made[1]);
    let draft_runner =
        DraftModelRunner::new(Box::new(draft), BLOCKS, 0, Some(reload)).expect("a draft");
    let scheduler =
        Scheduler::new(Box::new(target.clone()), info(), Limits { min_blocks: 1, ..LIMITS })
            .with_reload(anew(&target, failing, &made[0]));
    (spawn(scheduler.with_draft_runner(draft_runner)), made)
}

fn tried(made: &[Arc<AtomicUsize>; 2]) -> [usize; 2] {
    made.each_ref().map(|made| made.load(Ordering::Relaxed))
}

#[test]
fn a_draft_comes_back_with_a_model_whose_device_was_lost() {
    let (commands, made) = losing([0, 0]);
    let alone = text(&spawn(scheduler(&model(5))), &prompt(9), (60, 0.0));
    assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
    assert_eq!(tried(&made), [1, 1]);
    let found = metrics(&commands);
    assert!(found.accepted_tokens > 30 && found.accepted_tokens == found.draft_tokens, "{found:?}");
}

#[test]
fn a_draft_that_does_not_come_back_is_tried_again_with_later_texts() {
    let (commands, made) = losing([0, 3]);
    let alone = text(&spawn(scheduler(&model(5))), &prompt(9), (60, 0.0));
    for times in [1, 2, 2, 3, 3, 3, 3, 4, 4] {
        assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
        assert_eq!(tried(&made), [1, times]);
    }
    let found = metrics(&commands);
    assert!(found.accepted_tokens > 60, "{found:?}");
}

#[test]
fn a_draft_is_not_loaded_again_beside_a_model_that_is_lost() {
    let (commands, made) = losing([2, 0]);
    let alone = text(&spawn(scheduler(&model(5))), &prompt(9), (60, 0.0));
    for (times, comes) in [([1, 0], false), ([2, 0], false), ([3, 1], true)] {
        let found = generate(&commands, &prompt(9), (60, 0.0)).wait();
        assert_eq!(found.ok().map(|found| found.tokens), comes.then(|| alone.clone()));
        assert_eq!(tried(&made), times);
    }
}

#[test]
fn a_draft_whose_device_alone_is_lost_comes_back_with_the_next_text() {
    let made = Arc::new(AtomicUsize::new(0));
    let draft = FakeModel { fails_at: Some(5), is_device_lost: true, ..model(5) };
    let reload = Anew { model: model(5), failing: 0, made: Arc::clone(&made) };
    let draft_runner = DraftModelRunner::new(Box::new(draft), BLOCKS, 0, Some(Box::new(reload)));
    let commands = spawn(scheduler(&model(5)).with_draft_runner(draft_runner.expect("a draft")));
    let alone = text(&spawn(scheduler(&model(5))), &prompt(9), (60, 0.0));
    for times in [0, 1, 1] {
        assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
        assert_eq!(made.load(Ordering::Relaxed), times);
    }
    let found = metrics(&commands);
    assert!(found.accepted_tokens > 90 && found.accepted_tokens == found.draft_tokens, "{found:?}");
}

#[test]
fn a_limit_holds_for_a_draft_that_comes_back_later() {
    const LIMIT: usize = 100;
    let (commands, made) = losing([0, 1]);
    let alone = text(&spawn(scheduler(&model(5))), &prompt(9), (60, 0.0));
    assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
    limit(&commands, LIMIT);
    let streams = [9; 8].map(|len| generate(&commands, &prompt(len), (60, 0.0)));
    for stream in streams {
        assert_eq!(stream.wait().expect("a text").tokens, alone);
    }
    assert_eq!(tried(&made), [1, 2]);
    let found = metrics(&commands);
    assert!(found.accepted_tokens > 30 && found.memory.cache <= LIMIT, "{found:?}");
}

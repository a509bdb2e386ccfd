//! What an owner gives back, and in what order.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use futures::{
    FutureExt,
    channel::mpsc::{UnboundedSender, unbounded},
    future::ready,
};
use setun_model::{Batch, ModelError};
use setun_ops::OpsError;

use super::{
    machine_tests::once,
    tests::{limits, report, request},
    *,
};
use crate::command::Chore;
use crate::{ErrorCode, GenerationStream, event::Event, pressure::Pressure};
use futures::channel::oneshot;
use setun_model::MemoryUse;

const BLOCK_POSITIONS: usize = 4;
const BLOCK_BYTES: usize = 100;

/// A model that counts the blocks that it has memory for. The next token is always the same.
#[derive(Default)]
struct Counting {
    blocks: usize,
    /// Shrinking fails.
    fails: bool,
}

impl Model for Counting {
    fn vocab_size(&self) -> usize {
        2
    }

    fn context_length(&self) -> usize {
        40 * BLOCK_POSITIONS
    }

    fn block_positions(&self) -> usize {
        BLOCK_POSITIONS
    }

    fn block_bytes(&self) -> usize {
        BLOCK_BYTES
    }

    fn max_rows(&self) -> usize {
        64
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse { cache: BLOCK_BYTES * self.blocks, ..MemoryUse::default() }
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.blocks = self.blocks.max(cache.high_water_blocks());
        cache.copies_made();
        outputs.logits_mut(batch.wanted(), 2).fill(0.0);
        ready(Ok(())).boxed_local()
    }

    fn shrink<'a>(
        &'a mut self,
        cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        if self.fails {
            let reason = "on purpose".to_owned();
            return ready(Err(OpsError::DeviceLost { reason }.into())).boxed_local();
        }
        cache.copies_made();
        self.blocks = cache.high_water_blocks();
        ready(Ok(())).boxed_local()
    }
}

/// An owner that makes one step a poll.
struct Driven {
    commands: UnboundedSender<Command>,
    run: LocalBoxFuture<'static, ()>,
}

impl Driven {
    fn new(model: Counting, with: impl FnOnce(Owner) -> Owner) -> Self {
        let limits = Limits { blocks: 60, min_blocks: 10, prefix_blocks: 60, ..limits(0) };
        let (commands, receiver) = unbounded();
        let owner = with(Owner::new(Box::new(model), report(), limits));
        let run = owner.run(receiver, Box::new(|_| once().boxed_local())).boxed_local();
        Self { commands, run }
    }

    fn steps(&mut self, steps: usize) {
        for _ in 0..steps {
            assert!(self.run.as_mut().now_or_never().is_none(), "it runs");
        }
    }

    fn start(&self, prompt: Vec<u32>, max_tokens: usize) -> GenerationStream {
        let request = request(prompt, max_tokens);
        let stream = GenerationStream::new(Arc::clone(&request.queue), self.commands.clone());
        self.commands.unbounded_send(Command::Generate(Box::new(request))).expect("an owner");
        stream
    }

    /// The tokens of a stream up to its end, and how it fails.
    fn read(&mut self, mut stream: GenerationStream) -> (Vec<u32>, Option<ErrorCode>) {
        let mut tokens = vec![];
        loop {
            self.steps(1);
            match stream.next().now_or_never() {
                None | Some(Some(Ok(Event::Prompt(_)))) => {}
                Some(Some(Ok(Event::Text(delta)))) => tokens.push(delta.token),
                Some(Some(Ok(Event::Done(_))) | None) => return (tokens, None),
                Some(Some(Err(error))) => return (tokens, Some(error.code())),
            }
        }
    }

    fn ask<T>(&mut self, chore: impl FnOnce(oneshot::Sender<T>) -> Chore) -> T {
        let (reply, answer) = oneshot::channel();
        self.commands.unbounded_send(Command::Chore(chore(reply))).expect("an owner");
        self.steps(2);
        answer.now_or_never().expect("an answer").expect("an owner")
    }

    fn metrics(&mut self) -> EngineMetrics {
        self.ask(Chore::Metrics)
    }

    /// Bytes that are given back.
    fn relieve(&mut self, pressure: Pressure) -> Result<usize, Error> {
        self.ask(|reply| Chore::Relieve { pressure, reply })
    }

    /// Blocks that are given back.
    fn limit(&mut self, blocks: usize) -> usize {
        let bytes = BLOCK_BYTES.saturating_mul(blocks);
        self.ask(|reply| Chore::LimitCache { bytes, reply }).expect("no failure") / BLOCK_BYTES
    }
}

#[test]
fn prefixes_go_before_generations_and_those_before_their_texts() {
    let mut owner = Driven::new(Counting::default(), |owner| owner);
    let kept = owner.start(vec![0; 31], 1);
    assert_eq!(owner.read(kept), (vec![0], None));
    // Nobody reads these two, so that they wait with what they have.
    let streams = [vec![1; 9], vec![1, 0, 1, 0, 1, 0, 1, 0, 1]].map(|p| owner.start(p, 100));
    owner.steps(300);
    let full = owner.metrics();
    let used = full.used_blocks;
    assert_eq!((full.running, full.idle_blocks, full.memory.cache), (2, 7, 100 * (used + 7)));

    let state = |owner: &mut Driven| {
        let EngineMetrics { running, idle_blocks, memory, preemptions, .. } = owner.metrics();
        (running, idle_blocks, memory.cache / BLOCK_BYTES, preemptions)
    };
    assert_eq!(owner.limit(used + 20), 0);
    assert_eq!(owner.limit(used + 3), 4);
    assert_eq!(state(&mut owner), (2, 3, used + 3, 0));
    assert_eq!(owner.limit(used), 3);
    assert_eq!(state(&mut owner), (2, 0, used, 0));
    // What the later one has computed is kept as far as there is room.
    assert_eq!(owner.limit(used - 1), 1);
    assert!(matches!(state(&mut owner), (1, 1.., memory, 1) if memory == used - 1));
    for stream in streams {
        assert_eq!(owner.read(stream), (vec![0; 100], None));
    }
    let within = owner.metrics();
    assert!(within.blocks == used - 1 && within.memory.cache <= 100 * (used - 1), "{within:?}");
    assert_eq!(within.reliefs, 3);
    owner.limit(0);
    assert_eq!(owner.metrics().blocks, 10, "one context");
    owner.limit(usize::MAX);
    assert_eq!(owner.metrics().blocks, 60);
}

#[test]
fn only_where_it_is_critical_do_generations_give_up_what_they_have() {
    let mut owner = Driven::new(Counting::default(), |owner| owner);
    let unread = owner.start(vec![1; 9], 100);
    owner.steps(300);
    let held = owner.metrics().used_blocks;
    let read = owner.start(vec![0; 9], 40);
    owner.steps(8);
    let given = owner.relieve(Pressure::Moderate).expect("no failure");
    let moderate = owner.metrics();
    assert_eq!((given, moderate.running, moderate.preemptions), (0, 2, 0));
    let given = owner.relieve(Pressure::Critical).expect("no failure") / BLOCK_BYTES;
    let critical = owner.metrics();
    assert!((1..=held).contains(&given) && critical.waiting == 1, "{given} of {held}");
    assert_eq!((critical.running, critical.preemptions, critical.idle_blocks), (1, 1, 0));
    assert!(critical.memory.cache <= 100 * (critical.used_blocks + 1), "{critical:?}");
    assert_eq!(owner.read(read), (vec![0; 40], None));
    assert_eq!(owner.read(unread), (vec![0; 100], None));
}

#[test]
fn a_watch_is_heeded_while_nothing_is_done_and_only_where_it_helps() {
    let (asked, short) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let watch = {
        let (asked, short) = (Arc::clone(&asked), Arc::clone(&short));
        move || {
            asked.fetch_add(1, Ordering::Relaxed);
            short.load(Ordering::Relaxed).then_some(Pressure::Moderate)
        }
    };
    let watch: SharedWatch = Arc::new(Mutex::new(Box::new(watch)));
    let with = |owner: Owner| owner.with_watch(watch, Duration::ZERO);
    let mut owner = Driven::new(Counting::default(), with);
    let stream = owner.start(vec![1; 17], 4);
    assert_eq!(owner.read(stream), (vec![0; 4], None));
    assert_eq!(owner.metrics().idle_blocks, 5);
    short.store(true, Ordering::Relaxed);
    owner.steps(2);
    let relieved = owner.metrics();
    assert_eq!((relieved.reliefs, relieved.relieved_bytes, relieved.idle_blocks), (1, 500, 0));
    assert_eq!(relieved.memory.cache, 0);
    // Nobody wakes up for an empty cache.
    let before = asked.load(Ordering::Relaxed);
    owner.steps(20);
    assert_eq!(asked.load(Ordering::Relaxed), before);
    assert_eq!(owner.metrics().reliefs, 1);
}

#[test]
fn a_watch_is_asked_as_often_as_was_said() {
    let mut watch = Watch::new(Arc::new(Mutex::new(Box::new(|| None))), Duration::from_mins(1));
    let now = Instant::now();
    assert!(watch.left(now).is_zero());
    assert_eq!(watch.pressure(now), None);
    assert_eq!(watch.left(now + Duration::from_secs(59)), Duration::from_secs(1));
    assert!(watch.left(now + Duration::from_secs(61)).is_zero());
}

#[test]
fn a_model_that_fails_to_shrink_ends_what_runs_and_nothing_later() {
    let mut owner = Driven::new(Counting { fails: true, ..Counting::default() }, |owner| owner);
    let stream = owner.start(vec![1; 9], 100);
    owner.steps(8);
    let error = owner.relieve(Pressure::Moderate).expect_err("a failure");
    assert_eq!(error.code(), ErrorCode::DeviceLost);
    let (tokens, failed) = owner.read(stream);
    assert!(tokens.len() < 20 && failed == Some(ErrorCode::DeviceLost), "{tokens:?} {failed:?}");
    let stream = owner.start(vec![1; 9], 100);
    assert_eq!(owner.read(stream), (vec![0; 100], None));
    assert_eq!(owner.metrics().failed, 1);
}

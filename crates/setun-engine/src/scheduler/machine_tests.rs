//! The scheduler against a model of itself: whatever is asked of it in whatever order, every text is
//! what its request gives alone, and no block is lost.
//!
//! The model's logits follow from all tokens that the cache holds of a sequence, so that a block that
//! is shared, copied or given away wrongly changes texts.

mod beam_search;
mod operations;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt, channel::oneshot};
use operations::{Beside, beside, operation};
use proptest::{collection::vec, prelude::*};
use setun_text::{Draw, Sampler, SamplerOptions, SamplerState, Step};

use super::{
    test_support::{Stepped, ask, info, request, sampler},
    *,
};
use crate::{
    beams::BeamText,
    command::MaintenanceTask,
    event::{Event, FinishReason},
    fake_model::{BLOCK_POSITIONS, FakeModel},
    memory_pressure::Pressure,
    ranking_model::RankingModel,
    sequence::{SearchRequest, TaskRequest},
    stream::GenerationStream,
};

const VOCAB: usize = 11;
const EOS: u32 = 10;
const CONTEXT: usize = 160;
const BLOCKS: usize = CONTEXT / BLOCK_POSITIONS + 8;

/// Of the model under test.
const SEED: u64 = 1;

/// Time of a step, and of each of its rows: a step fits fewer rows than the model takes.
const STEP: [Duration; 2] = [Duration::from_millis(8), Duration::from_millis(3)];

fn model(seed: u64) -> FakeModel {
    FakeModel { context: CONTEXT, spread: 4.0, ..FakeModel::new(VOCAB, seed) }
}

/// The contents of a request.
#[derive(Clone, Debug)]
struct Asked {
    prompt: Vec<u32>,
    max_tokens: usize,
    samples: u64,
    is_warm: bool,
    seed: u64,
    priority: i32,
    /// Of the prefix cache; 0 is none.
    salt: u8,
    lookahead: usize,
    /// Of a search; otherwise 0.
    beams: usize,
}

impl Asked {
    fn sampler(&self) -> Sampler {
        let mut options = SamplerOptions::default();
        if self.is_warm {
            options.temperature = 1.0;
            options.mirostat_tau = if self.seed == 0 { 2.0 } else { 0.0 }; // which has a state
            // With which all logits are requested.
            options.frequency_penalty = if self.seed < 2 { 0.5 } else { 0.0 };
        }
        sampler(options)
    }

    /// The tokens of one sample and how they end, without a cache or a scheduler.
    fn alone(&self, sample: u64) -> (Vec<u32>, FinishReason) {
        let (model, mut tokens) = (model(SEED), self.prompt.clone());
        let (sampler, mut state) = (self.sampler(), SamplerState::default());
        for index in 0..self.max_tokens as u64 {
            let draw = Draw { seed: self.seed, sequence: sample, index };
            let step = Step::new(&tokens, self.prompt.len(), draw);
            let token = sampler.sample(&model.logits(&tokens), &step, &mut state).unwrap().token;
            tokens.push(token);
            if token == EOS {
                return (tokens.split_off(self.prompt.len()), FinishReason::Stop);
            }
        }
        (tokens.split_off(self.prompt.len()), FinishReason::Length)
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Submit(Asked),
    /// Continue a stream's prompt and text, as a conversation does.
    Continue(usize, usize),
    Run(usize),
    Read(usize, usize),
    Cancel(usize),
    Drop(usize),
    ResetPrefixCache,
    /// The system gives this many blocks.
    Memory(usize),
    ReleaseMemory(Pressure),
    LimitCache(usize),
}

/// A stream, what it is expected to say, and what it has said.
struct Open {
    asked: Asked,
    expected: Vec<u32>,
    found: Vec<u32>,
    stream: GenerationStream,
    /// Of a search.
    texts: oneshot::Receiver<Vec<BeamText>>,
    reason: FinishReason,
    is_cancelled: bool,
    end: Option<Result<FinishReason, crate::ErrorCode>>,
}

impl Open {
    fn read(&mut self, most: usize) {
        use futures::StreamExt;
        for _ in 0..most {
            let Some(Some(event)) = self.stream.next().now_or_never() else { return };
            match event {
                Ok(Event::Progress(_) | Event::Prompt(_)) => {}
                Ok(Event::Text(delta)) => self.found.push(delta.token),
                Ok(Event::Done(done)) => {
                    if self.asked.beams > 0 && done.finish_reason != FinishReason::Aborted {
                        let texts = self.texts.try_recv().unwrap().expect("before the event");
                        self.found = beam_search::spell_all(&texts);
                    }
                    self.end = Some(Ok(done.finish_reason));
                }
                Err(error) => self.end = Some(Err(error.code())),
            }
        }
    }

    /// Whether it has said what it had to, as far as it came.
    fn check(&self) {
        let (found, expected) = (&self.found, &self.expected);
        assert!(expected.starts_with(found), "{found:?} of {expected:?} for {:?}", self.asked);
        match self.end {
            None => {}
            Some(Ok(FinishReason::Aborted)) => assert!(self.is_cancelled),
            // Where the system gives less than this one needs alone.
            Some(Err(code)) => assert_eq!(code, crate::ErrorCode::OutOfMemory),
            Some(Ok(reason)) => {
                assert_eq!(found, expected);
                assert_eq!(reason, self.reason);
            }
        }
    }
}

/// The scheduler under test, which runs one step a poll.
struct Machine {
    scheduler: Stepped,
    open: Vec<Open>,
    max_blocks: Arc<AtomicUsize>,
    clock: Clock,
}

impl Machine {
    fn new(prefix_blocks: usize, max_concurrent: usize, beside: Beside) -> Self {
        let max_blocks = Arc::new(AtomicUsize::new(BLOCKS));
        let limits = Limits {
            blocks: BLOCKS,
            min_blocks: CONTEXT / BLOCK_POSITIONS,
            prefix_blocks,
            max_concurrent,
            wait: Duration::ZERO,
        };
        let clock = Clock::held();
        let takes = Some((clock.clone(), STEP));
        let target = FakeModel { max_blocks: Arc::clone(&max_blocks), takes, ..model(SEED) };
        let target = RankingModel::new(target);
        let mut scheduler =
            Scheduler::new(Box::new(target), info(), limits).with_clock(clock.clone());
        if let Some((seed, blocks)) = beside.draft() {
            let max_blocks = Arc::new(AtomicUsize::new(blocks));
            let draft = FakeModel { max_blocks, is_counted: false, ..model(seed) };
            let draft = DraftModelRunner::new(Box::new(draft), BLOCKS / 2, prefix_blocks, None);
            scheduler = scheduler.with_draft_runner(draft.unwrap());
        }
        Self { scheduler: Stepped::new(scheduler), open: vec![], max_blocks, clock }
    }

    fn submit(&mut self, asked: &Asked) {
        let make = |sample| {
            let mut request = request(asked.prompt.clone(), asked.max_tokens);
            (request.sampler, request.seed, request.sample) = (asked.sampler(), asked.seed, sample);
            (request.priority, request.eos_tokens) = (asked.priority, vec![EOS]);
            request.lookahead = asked.lookahead;
            (request.clock, request.arrival_time) = (self.clock.clone(), self.clock.now());
            request.salt = (asked.salt > 0).then(|| asked.salt.to_string().into());
            request
        };
        let mut requests: Vec<_> = (0..asked.samples).map(make).collect();
        for (sample, request) in (0..).zip(&mut requests) {
            let (expected, reason) = match asked.beams {
                0 => asked.alone(sample),
                _ => asked.found_alone(),
            };
            let (reply, texts) = oneshot::channel();
            let options = asked.beam_options();
            if asked.beams > 0 {
                request.task = TaskRequest::Beam(SearchRequest { options, reply });
            }
            let commands = self.scheduler.commands.clone();
            self.open.push(Open {
                asked: asked.clone(),
                expected,
                texts,
                reason,
                found: vec![],
                stream: GenerationStream::new(request.queue.clone(), commands),
                is_cancelled: false,
                end: None,
            });
        }
        let mut first = requests.remove(0);
        first.samples = requests;
        let command = Command::Generate(Box::new(first));
        self.scheduler.commands.unbounded_send(command).unwrap();
    }

    fn apply(&mut self, operation: Operation) {
        let one = |index: usize, count: usize| (count > 0).then(|| index % count);
        let count = self.open.len();
        match operation {
            Operation::Submit(asked) => self.submit(&asked),
            Operation::Continue(index, more) => {
                if let Some(index) = one(index, count) {
                    let Open { asked, found, .. } = &self.open[index];
                    let mut asked = asked.clone();
                    if asked.beams == 0 {
                        asked.prompt.extend(found);
                    }
                    asked.prompt.extend((0..more).map(|at| u32::try_from(at % 10).unwrap()));
                    asked.prompt.truncate(CONTEXT / 2);
                    asked.max_tokens = asked.max_tokens.min(CONTEXT / 2);
                    self.submit(&asked);
                }
            }
            Operation::Run(steps) => self.scheduler.steps(steps),
            Operation::Read(index, most) => {
                if let Some(index) = one(index, count) {
                    self.open[index].read(most);
                    self.open[index].check();
                }
            }
            Operation::Cancel(index) => {
                if let Some(index) = one(index, count) {
                    self.open[index].is_cancelled = true;
                    self.open[index].stream.cancel_handle().cancel();
                }
            }
            Operation::Drop(index) => {
                if let Some(index) = one(index, count) {
                    self.open.swap_remove(index);
                }
            }
            Operation::ResetPrefixCache => {
                self.scheduler.commands.unbounded_send(Command::ResetPrefixCache).unwrap();
            }
            Operation::ReleaseMemory(pressure) => self.release_memory(pressure),
            Operation::LimitCache(bytes) => {
                let limit = |reply| MaintenanceTask::LimitCache { bytes, reply };
                drop(ask(&self.scheduler.commands, limit));
            }
            Operation::Memory(blocks) => self.max_blocks.store(blocks, Ordering::Relaxed),
        }
    }

    /// Nothing is kept then but what generations hold that somebody waits for.
    fn release_memory(&mut self, pressure: Pressure) {
        let release = |reply| MaintenanceTask::ReleaseMemory { pressure, reply };
        let released = ask(&self.scheduler.commands, release);
        let metrics = ask(&self.scheduler.commands, MaintenanceTask::Metrics);
        self.scheduler.steps(1);
        let released = released.now_or_never().expect("an answer").expect("an owner");
        let metrics = metrics.now_or_never().expect("an answer").expect("an owner");
        assert!(released.unwrap() as u64 <= metrics.released_bytes);
        assert_eq!((metrics.memory.cache, metrics.cached_blocks), (metrics.used_blocks, 0));
    }

    /// Reads every stream to its end; nothing is left then.
    fn finish(mut self) {
        for _ in 0..100_000 {
            self.scheduler.steps(1);
            self.open.iter_mut().for_each(|open| open.read(usize::MAX));
            if self.open.iter().all(|open| open.end.is_some()) {
                break;
            }
        }
        let unfinished = self.open.iter().find(|open| open.end.is_none());
        if let Some(open) = unfinished.map(|open| format!("{:?}", open.asked)) {
            panic!("{open} never ended: {:?}", self.scheduler.metrics());
        }
        self.open.iter().for_each(Open::check);
        self.scheduler.commands.unbounded_send(Command::ResetPrefixCache).unwrap();
        let metrics = self.scheduler.metrics();
        let left = (metrics.waiting, metrics.running, metrics.used_blocks, metrics.cached_blocks);
        assert_eq!(left, (0, 0, 0, 0), "nothing is left: {metrics:?}");
    }
}

fn play(
    operations: Vec<Operation>,
    (prefix_blocks, max_concurrent): (usize, usize),
    beside: Beside,
) {
    let mut machine = Machine::new(prefix_blocks, max_concurrent, beside);
    for operation in operations {
        machine.apply(operation);
    }
    machine.finish();
}

#[test]
fn the_higher_priority_goes_first() {
    let mut machine = Machine::new(0, 1, Beside::Texts);
    let asked = |priority| Asked {
        prompt: vec![1, 2, 3],
        max_tokens: 3,
        samples: 1,
        is_warm: false,
        seed: 0,
        priority,
        salt: 0,
        lookahead: 0,
        beams: 0,
    };
    machine.submit(&asked(0));
    machine.scheduler.steps(1);
    for priority in [0, 2, 1, 2] {
        machine.submit(&asked(priority));
    }
    let mut order = vec![];
    while order.len() < 5 {
        machine.scheduler.steps(1);
        for (index, open) in machine.open.iter_mut().enumerate() {
            open.read(1);
            if !open.found.is_empty() && !order.contains(&index) {
                order.push(index);
            }
        }
    }
    // The first gives way, as it has not ended.
    assert_eq!(order, [0, 2, 4, 3, 1]);
    machine.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_text_is_the_text_of_its_request_alone(
        operations in vec(operation(), 100),
        prefix_blocks in prop_oneof![Just(0), 1..BLOCKS],
        max_concurrent in 3..12_usize,
        beside in beside(),
    ) {
        play(operations, (prefix_blocks, max_concurrent), beside);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "100,000 operations, for the long run"]
    fn every_text_is_the_text_of_its_request_alone_for_long(
        operations in vec(operation(), 400),
        prefix_blocks in prop_oneof![Just(0), 1..BLOCKS],
        max_concurrent in 3..12_usize,
        beside in beside(),
    ) {
        play(operations, (prefix_blocks, max_concurrent), beside);
    }
}

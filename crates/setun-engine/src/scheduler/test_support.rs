//! Requests, streams and ways to run a scheduler, for its tests.

use std::{sync::Arc, thread, time::Duration};

use futures::{
    FutureExt,
    channel::{
        mpsc::{UnboundedSender, unbounded},
        oneshot,
    },
    future::{LocalBoxFuture, ready},
};
use setun_clock::Clock;
use setun_model::{ModelError, PagedCache};
use setun_text::{Sampler, SamplerOptions, StopStrings};

use super::{Limits, Scheduler};
use crate::{
    command::{Command, MaintenanceTask},
    device::DeviceKind,
    engine_info::EngineInfo,
    error::Error,
    fake_model::{BLOCK_POSITIONS, ClosureModel, once},
    metrics::EngineMetrics,
    sequence::{Request, TaskRequest},
    stream::GenerationStream,
    telemetry::Trace,
};

pub(super) const BLOCKS: usize = 8;

/// A model of two tokens whose logits are all 0. `before` is called in each step, and may end it.
pub(super) fn zeros(
    mut before: impl FnMut(&PagedCache) -> Result<(), ModelError> + Send + 'static,
) -> ClosureModel {
    ClosureModel::new(2, BLOCKS * BLOCK_POSITIONS, move |_, cache, _| before(cache))
}

pub(super) fn info() -> EngineInfo {
    let (level, model) = ("fake".into(), "fake".into());
    EngineInfo { backend: DeviceKind::Cpu, level, model, load_seconds: 0.0 }
}

/// This many blocks, and none for prefixes.
pub(super) fn limits(blocks: usize) -> Limits {
    Limits {
        blocks,
        min_blocks: BLOCKS,
        prefix_blocks: 0,
        max_concurrent: 64,
        wait: Duration::ZERO,
    }
}

/// A greedy one without a tokenizer.
pub(super) fn request(prompt: Vec<u32>, max_tokens: usize) -> Request {
    Request {
        prompt,
        generated: vec![],
        ended: None,
        shortened: None,
        max_tokens,
        salt: None,
        context_length: usize::MAX,
        context_overflow: None,
        sampler: sampler(SamplerOptions::default()),
        seed: 0,
        sample: 0,
        samples: vec![],
        task: TaskRequest::default(),
        decoder: None,
        thinking: None,
        calls: None,
        stops: StopStrings::new(vec![]).unwrap(),
        filter: None,
        reasoning_filter: None,
        eos_tokens: vec![],
        logprobs: false,
        top_logprobs: 0,
        prompt_progress: false,
        constraint: None,
        vocabulary: 2,
        lookahead: 0,
        queue: Arc::default(),
        clock: Clock::system(),
        arrival_time: Clock::system().now(),
        priority: 0,
        tenant: None,
        deadline: None,
        queue_timeout: None,
        trace: Trace::default(),
        slot: None,
    }
}

pub(super) fn sampler(options: SamplerOptions) -> Sampler {
    Sampler::new(options).expect("sound options")
}

/// Runs a scheduler on a thread of its own, as an engine does.
pub(super) fn spawn(scheduler: Scheduler) -> UnboundedSender<Command> {
    spawn_after(scheduler, |_| ()).0
}

/// The same after some commands, which are all there before the first step.
pub(super) fn spawn_after<T>(
    scheduler: Scheduler,
    first: impl FnOnce(&UnboundedSender<Command>) -> T,
) -> (UnboundedSender<Command>, T) {
    let (commands, receiver) = unbounded();
    let first = first(&commands);
    thread::spawn(move || {
        pollster::block_on(scheduler.run(receiver, Box::new(|_| ready(()).boxed_local())));
    });
    (commands, first)
}

pub(super) fn submit(commands: &UnboundedSender<Command>, request: Request) -> GenerationStream {
    let stream = GenerationStream::new(Arc::clone(&request.queue), commands.clone());
    // A scheduler that is gone drops the request, which closes the queue.
    let _ = commands.unbounded_send(Command::Generate(Box::new(request)));
    stream
}

/// A generation of [`zeros`].
pub(super) fn generate(
    commands: &UnboundedSender<Command>,
    (prompt, tokens): (usize, usize),
) -> GenerationStream {
    submit(commands, request(vec![1; prompt], tokens))
}

/// Tokens before the end, and the error that was the end.
pub(super) fn failure(stream: GenerationStream) -> (usize, Error) {
    let mut events: Vec<_> = stream.blocking().collect();
    let error = events.pop().expect("an end").expect_err("an error");
    (events.into_iter().flatten().count(), error)
}

/// Asks a scheduler for something between two steps.
pub(super) fn ask<T>(
    commands: &UnboundedSender<Command>,
    task: impl FnOnce(oneshot::Sender<T>) -> MaintenanceTask,
) -> oneshot::Receiver<T> {
    let (reply, answer) = oneshot::channel();
    commands.unbounded_send(Command::Maintenance(task(reply))).expect("a scheduler");
    answer
}

/// A scheduler that makes one step a poll.
pub(super) struct Stepped {
    pub(super) commands: UnboundedSender<Command>,
    run: LocalBoxFuture<'static, ()>,
}

impl Stepped {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        let (commands, receiver) = unbounded();
        let run = scheduler.run(receiver, Box::new(|_| once().boxed_local())).boxed_local();
        Self { commands, run }
    }

    pub(super) fn steps(&mut self, steps: usize) {
        for _ in 0..steps {
            assert!(self.run.as_mut().now_or_never().is_none(), "it runs while it is heard of");
        }
    }

    pub(super) fn ask<T>(&mut self, task: impl FnOnce(oneshot::Sender<T>) -> MaintenanceTask) -> T {
        let answer = ask(&self.commands, task);
        self.steps(2);
        answer.now_or_never().expect("an answer").expect("a scheduler")
    }

    pub(super) fn metrics(&mut self) -> EngineMetrics {
        self.ask(MaintenanceTask::Metrics)
    }
}

//! The scheduler over models that fail, wait or only count.

use std::{
    panic::resume_unwind,
    sync::{Arc, mpsc},
    thread,
};

use futures::{
    FutureExt,
    channel::mpsc::{UnboundedSender, unbounded},
    future::ready,
};
use setun_model::{Batch, ModelError, Profile};
use setun_ops::OpsError;
use setun_text::{Sampler, SamplerOptions, StopStrings};

use super::*;
use crate::sequence::{Request, TaskRequest};
use crate::{DeviceKind, ErrorCode, GenerationStream, telemetry::Trace};
use futures::channel::oneshot;
use setun_model::MemoryUse;

pub(super) const BLOCKS: usize = 8;
const BLOCK_POSITIONS: usize = 4;

/// All logits are 0. `before` is called in each step, and may end it.
pub(super) struct Fake<F> {
    before: F,
    profile: Option<Profile>,
    max_rows: usize,
}

impl<F: FnMut(&PagedCache) -> Result<(), ModelError>> Fake<F> {
    pub(super) fn new(before: F) -> Self {
        Self { before, profile: None, max_rows: 64 }
    }

    pub(super) fn with_max_rows(self, max_rows: usize) -> Self {
        Self { max_rows, ..self }
    }
}

impl<F: FnMut(&PagedCache) -> Result<(), ModelError> + Send> Model for Fake<F> {
    fn vocab_size(&self) -> usize {
        2
    }

    fn context_length(&self) -> usize {
        BLOCKS * BLOCK_POSITIONS
    }

    fn block_positions(&self) -> usize {
        BLOCK_POSITIONS
    }

    fn block_bytes(&self) -> usize {
        1
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        outputs.logits_mut(batch.wanted(), self.vocab_size()).fill(0.0);
        if let Some(profile) = &mut self.profile {
            *profile = Profile { steps: 1, rows: batch.rows.len(), ..Profile::default() };
        }
        ready((self.before)(cache)).boxed_local()
    }

    fn set_profiled(&mut self, profiled: bool) {
        self.profile = profiled.then(Profile::default);
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }
}

/// A scheduler on a thread of its own, as an engine has it.
fn scheduler(
    before: impl FnMut(&PagedCache) -> Result<(), ModelError> + Send + 'static,
) -> UnboundedSender<Command> {
    spawn(Scheduler::new(Box::new(Fake::new(before)), report(), limits(BLOCKS)))
}

pub(super) fn report() -> EngineInfo {
    EngineInfo {
        backend: DeviceKind::Cpu,
        level: "fake".into(),
        model: "fake".into(),
        load_seconds: 0.0,
    }
}

pub(super) fn spawn(scheduler: Scheduler) -> UnboundedSender<Command> {
    let (commands, receiver) = unbounded();
    thread::spawn(move || {
        pollster::block_on(scheduler.run(receiver, Box::new(|_| ready(()).boxed_local())));
    });
    commands
}

pub(super) fn generate(
    commands: &UnboundedSender<Command>,
    (prompt, tokens): (usize, usize),
) -> GenerationStream {
    let request = request(vec![1; prompt], tokens);
    let stream = GenerationStream::new(Arc::clone(&request.queue), commands.clone());
    // A scheduler that is gone drops the request, which closes the queue.
    let _ = commands.unbounded_send(Command::Generate(Box::new(request)));
    stream
}

/// A greedy one without a tokenizer.
pub(super) fn request(prompt: Vec<u32>, max_tokens: usize) -> Request {
    Request {
        prompt,
        seen: None,
        max_tokens,
        positions: usize::MAX,
        context: None,
        sampler: Sampler::new(SamplerOptions::default()).unwrap(),
        seed: 0,
        sample: 0,
        samples: vec![],
        task: TaskRequest::default(),
        decoder: None,
        stops: StopStrings::new(vec![]).unwrap(),
        filter: None,
        eos_tokens: vec![],
        logprobs: false,
        top_logprobs: 0,
        form: None,
        vocabulary: 2,
        lookahead: 0,
        queue: Arc::default(),
        asked: Instant::now(),
        priority: 0,
        deadline: None,
        trace: Trace::default(),
        queue_slot: None,
        load: Arc::new(()),
    }
}

/// This many blocks, and none for prefixes.
pub(super) fn limits(blocks: usize) -> Limits {
    Limits { blocks, min_blocks: BLOCKS, prefix_blocks: 0, streams: 64, wait: Duration::ZERO }
}

/// Tokens before the end, and the error that was the end.
pub(super) fn failure(stream: GenerationStream) -> (usize, Error) {
    let mut events: Vec<_> = stream.blocking().collect();
    let error = events.pop().expect("an end").expect_err("an error");
    (events.into_iter().flatten().count(), error)
}

#[test]
fn a_panic_of_the_owner_ends_every_stream_with_an_error() {
    let mut steps = 0;
    let commands = scheduler(move |_| {
        steps += 1;
        // Without a word on standard error.
        if steps < 6 { Ok(()) } else { resume_unwind(Box::new("on purpose")) }
    });
    // The third waits until one of the others has ended.
    let streams = [8, 8, 20].map(|tokens| generate(&commands, (5, tokens)));
    for stream in streams {
        let (tokens, error) = failure(stream);
        assert!(tokens < 8, "{tokens}");
        assert_eq!(error.code(), ErrorCode::Disposed);
    }
    assert!(matches!(failure(generate(&commands, (5, 1))), (0, Error::Disposed)));
}

#[test]
fn refused_memory_ends_those_that_ran_and_no_later_ones() {
    // As a model whose cache cannot grow beyond four blocks.
    let commands = scheduler(|cache| match cache.high_water_blocks() {
        0..=4 => Ok(()),
        _ => Err(OpsError::OutOfMemory { what: "a cache", bytes: 1 }.into()),
    });
    for _ in 0..2 {
        // 5 + 12 positions are one more than four blocks hold; the last token is never cached.
        let (tokens, error) = failure(generate(&commands, (5, 13)));
        assert_eq!((tokens, error.code()), (12, ErrorCode::OutOfMemory));
        let done = generate(&commands, (5, 12)).wait().expect("it fits");
        assert_eq!(done.tokens, [0; 12]);
    }
}

#[test]
fn dropping_a_stream_while_its_token_is_computed_frees_its_cache() {
    let (entered, enters) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let commands = scheduler(move |cache| {
        let _ = entered.send(cache.free_blocks());
        let _ = goes.recv(); // an error lets every further step pass
        Ok(())
    });
    let stream = generate(&commands, (1, 20));
    assert_eq!(enters.recv(), Ok(BLOCKS - 1));
    drop(stream);
    let next = generate(&commands, (1, 2));
    go.send(()).expect("the owner waits");
    assert_eq!(enters.recv(), Ok(BLOCKS - 1), "the first one's blocks are free again");
    drop(go);
    assert_eq!(next.wait().expect("a text").tokens, [0; 2]);
}

#[test]
fn a_profile_tells_prompts_from_decoding() {
    let commands = scheduler(|_| Ok(()));
    let profile = |profiled| {
        let (reply, profile) = oneshot::channel();
        commands
            .unbounded_send(Command::Profile { profiled, timeline: None, reply })
            .expect("an owner");
        pollster::block_on(profile).expect("a reply")
    };
    assert_eq!(profile(true), None);
    // The prompt, which gives the first token, then three.
    generate(&commands, (5, 4)).wait().expect("a text");
    let found = profile(true).expect("steps were timed");
    assert_eq!((found.prefill.steps.steps, found.prefill.steps.rows), (1, 5));
    assert_eq!((found.decode.steps.steps, found.decode.steps.rows), (3, 3));
    assert_eq!(profile(false), None, "begun anew, and nothing ran since");
    generate(&commands, (5, 4)).wait().expect("a text");
    assert_eq!(profile(false), None, "no longer");
}

//! The scheduler with a model that chooses by itself.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, mpsc},
    thread,
};

use futures::{
    FutureExt,
    channel::mpsc::{UnboundedSender, unbounded},
    future::ready,
};
use setun_model::{Batch, ModelError, RequestedOutput};
use setun_ops::argmax::NONE;
use setun_text::{Sampler, SamplerOptions};

use super::{
    tests::{limits, request},
    *,
};
use crate::{Completion, DeviceKind, stream::GenerationStream};
use setun_model::MemoryUse;

const VOCAB: usize = 97;
const BLOCKS: usize = 64;
const BLOCK_POSITIONS: usize = 4;
const MAX_STEPS: usize = 16;

/// What a test sees of a model.
#[derive(Default)]
struct Seen {
    /// Of each time that the model chose, how many steps it made and how many rows it had.
    argmax_tokens: Vec<(usize, usize)>,
    free_blocks: usize,
}

/// After a token at a position comes [`next`].
struct Script {
    most: usize,
    unchosen: BTreeSet<usize>, // positions after which it does not choose
    broken: BTreeSet<usize>,   // and those after which logits are none either
    seen: Arc<Mutex<Seen>>,
    entered: mpsc::Sender<()>,
    go: mpsc::Receiver<()>,
}

fn next(token: u32, position: usize) -> u32 {
    let vocab = u32::try_from(VOCAB).unwrap();
    (token * 7 + u32::try_from(position).unwrap() * 3 + 1) % vocab
}

impl Model for Script {
    fn vocab_size(&self) -> usize {
        VOCAB
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
        8
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        _: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        let logits = outputs.logits_mut(batch.wanted(), VOCAB);
        logits.fill(0.0);
        let wanted = batch.rows.iter().filter(|row| row.output != RequestedOutput::Nothing);
        for (row, logits) in wanted.zip(logits.chunks_exact_mut(VOCAB)) {
            let is_broken = self.broken.contains(&row.position);
            logits[next(row.token, row.position) as usize] = if is_broken { f32::NAN } else { 9.0 };
        }
        ready(Ok(())).boxed_local()
    }

    fn max_multi_steps(&self) -> usize {
        self.most
    }

    fn run_multi_step<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        steps: usize,
        tokens: &'a mut Vec<u32>,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        let wanted = batch.rows.iter().filter(|row| row.output != RequestedOutput::Nothing);
        let mut rows: Vec<_> = wanted.map(|row| (row.token, row.position, row.sequence)).collect();
        assert!(steps == 1 || rows.len() == batch.rows.len(), "only rows that decode follow");
        tokens.clear();
        for _ in 0..steps {
            for (token, position, sequence) in &mut rows {
                assert!(*position < cache.len(*sequence).unwrap(), "room for each step");
                *token = next(*token, *position);
                let is_chosen = !self.unchosen.contains(position);
                tokens.push(if is_chosen { *token } else { NONE });
                *position += 1;
            }
        }
        let mut seen = self.seen.lock().unwrap();
        seen.argmax_tokens.push((steps, rows.len()));
        seen.free_blocks = cache.free_blocks();
        drop(seen);
        let _ = self.entered.send(());
        let _ = self.go.recv(); // an error lets every further step pass
        ready(Ok(())).boxed_local()
    }
}

struct Started {
    commands: UnboundedSender<Command>,
    seen: Arc<Mutex<Seen>>,
    enters: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
}

/// A scheduler on a thread of its own, whose model waits before each of its runs.
fn start(most: usize, unchosen: &[usize], broken: &[usize]) -> Started {
    let (commands, receiver) = unbounded();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let ((entered, enters), (go, goes)) = (mpsc::channel(), mpsc::channel());
    let model = Script {
        most,
        unchosen: unchosen.iter().copied().collect(),
        broken: broken.iter().copied().collect(),
        seen: Arc::clone(&seen),
        entered,
        go: goes,
    };
    let report = EngineInfo {
        backend: DeviceKind::Cpu,
        level: "none".into(),
        model: "script".into(),
        load_seconds: 0.0,
    };
    thread::spawn(move || {
        let scheduler = Scheduler::new(Box::new(model), report, limits(BLOCKS));
        pollster::block_on(scheduler.run(receiver, Box::new(|_| ready(()).boxed_local())));
    });
    Started { commands, seen, enters, go }
}

/// One whose model does not wait.
fn running(most: usize, unchosen: &[usize], broken: &[usize]) -> Started {
    let started = start(most, unchosen, broken);
    Started { go: mpsc::channel().0, ..started }
}

impl Started {
    fn generate(
        &self,
        prompt: &[u32],
        max_tokens: usize,
        options: SamplerOptions,
    ) -> GenerationStream {
        let mut request = request(prompt.to_vec(), max_tokens);
        request.sampler = Sampler::new(options).unwrap();
        request.seed = 5;
        request.eos_tokens = vec![33];
        let stream = GenerationStream::new(Arc::clone(&request.queue), self.commands.clone());
        self.commands.unbounded_send(Command::Generate(Box::new(request))).unwrap();
        stream
    }

    fn greedy(&self, prompt: &[u32], max_tokens: usize) -> GenerationStream {
        self.generate(prompt, max_tokens, SamplerOptions::default())
    }

    fn max_steps(&self) -> usize {
        self.seen.lock().unwrap().argmax_tokens.iter().map(|(steps, _)| *steps).max().unwrap_or(0)
    }
}

/// What the script says, up to the token that ends a text.
fn expected(prompt: &[u32], max_tokens: usize) -> Vec<u32> {
    let mut tokens = prompt.to_vec();
    while tokens.len() < prompt.len() + max_tokens
        && (tokens.len() == prompt.len() || tokens.last() != Some(&33))
    {
        tokens.push(next(tokens[tokens.len() - 1], tokens.len() - 1));
    }
    tokens.split_off(prompt.len())
}

fn finished(completion: &Completion, prompt: &[u32], max_tokens: usize) {
    assert_eq!(completion.tokens, expected(prompt, max_tokens));
    let is_eos = completion.tokens.last() == Some(&33);
    let reason = if is_eos { FinishReason::Stop } else { FinishReason::Length };
    assert_eq!(completion.done.finish_reason, reason);
    assert_eq!(completion.done.usage.generated_tokens, completion.tokens.len());
}

const PROMPTS: [&[u32]; 5] = [&[1], &[2, 3, 4], &[5; 12], &[6, 7], &[8]];

#[test]
fn texts_are_the_same_however_many_steps_follow() {
    let texts: Vec<_> = PROMPTS.iter().map(|prompt| expected(prompt, 60)).collect();
    assert!(texts.iter().any(|text| text.len() < 60), "some end before");
    assert!(texts.iter().any(|text| text.len() == 60), "some do not");
    for most in [0, 1, 3, MAX_STEPS] {
        let scheduler = running(most, &[], &[]);
        for max_tokens in [1, 2, 17, 60] {
            let streams = PROMPTS.map(|prompt| scheduler.greedy(prompt, max_tokens));
            for (prompt, stream) in PROMPTS.iter().zip(streams) {
                finished(&stream.wait().expect("a text"), prompt, max_tokens);
            }
        }
        // A machine that is busy makes fewer.
        assert!((most.min(4)..=most).contains(&scheduler.max_steps()), "{most}");
    }
}

#[test]
fn no_more_steps_than_tokens_are_left() {
    let scheduler = running(MAX_STEPS, &[], &[]);
    let prompt = [2, 3, 4];
    let tokens = expected(&prompt, 60).len();
    scheduler.greedy(&prompt, tokens).wait().expect("a text");
    let argmax_tokens: Vec<_> = scheduler.seen.lock().unwrap().argmax_tokens.clone();
    assert_eq!(
        argmax_tokens.iter().map(|(steps, rows)| steps * rows.min(&1)).sum::<usize>(),
        tokens
    );
}

#[test]
fn a_row_that_is_not_chosen_runs_again_with_all_logits() {
    let scheduler = running(MAX_STEPS, &[9, 20], &[]);
    for prompt in PROMPTS {
        finished(&scheduler.greedy(prompt, 60).wait().expect("a text"), prompt, 60);
    }
    let scheduler = running(MAX_STEPS, &[25], &[25]);
    let long = PROMPTS.iter().find(|prompt| expected(prompt, 40).len() == 40).expect("a long one");
    let error = scheduler.greedy(long, 40).wait().expect_err("no logits");
    assert!(error.to_string().contains("NaN"), "{error}");
    finished(&scheduler.greedy(long, 5).wait().expect("a text"), long, 5);
}

#[test]
fn who_draws_tokens_has_logits_and_disturbs_nobody() {
    let scheduler = running(MAX_STEPS, &[], &[]);
    let warm = SamplerOptions { temperature: 0.5, ..SamplerOptions::default() };
    let drawn = || scheduler.generate(&[9, 9], 30, warm.clone());
    let alone = drawn().wait().expect("a text").tokens;
    let (beside, greedy) = (drawn(), PROMPTS.map(|prompt| scheduler.greedy(prompt, 40)));
    for (prompt, stream) in PROMPTS.iter().zip(greedy) {
        finished(&stream.wait().expect("a text"), prompt, 40);
    }
    assert_eq!(beside.wait().expect("a text").tokens, alone);
}

#[test]
fn a_stream_that_is_dropped_while_steps_follow_frees_its_cache() {
    let scheduler = start(MAX_STEPS, &[], &[]);
    let long = *PROMPTS.iter().find(|prompt| expected(prompt, 60).len() == 60).expect("a long one");
    let (stream, other) = (scheduler.greedy(long, 60), scheduler.greedy(long, 60));
    let cancelled = other.cancel_handle();
    let lasting = scheduler.greedy(long, 60);
    while scheduler.max_steps() < 8 {
        scheduler.enters.recv().expect("steps");
        scheduler.go.send(()).expect("the owner waits");
    }
    scheduler.enters.recv().expect("steps");
    drop(stream);
    cancelled.cancel();
    let ended = thread::spawn(move || other.wait());
    scheduler.go.send(()).expect("the owner waits");
    scheduler.enters.recv().expect("steps");
    {
        let seen = scheduler.seen.lock().unwrap();
        assert_eq!(seen.argmax_tokens.last().expect("steps").1, 1, "one goes on");
        let tokens = long.len() + seen.argmax_tokens.iter().map(|(steps, _)| steps).sum::<usize>();
        let used = BLOCKS - seen.free_blocks;
        assert!(used <= tokens.div_ceil(BLOCK_POSITIONS), "{used} blocks for {tokens} tokens");
    }
    drop(scheduler.go);
    let ended = ended.join().expect("no panic").expect("an end");
    assert_eq!(ended.done.finish_reason, FinishReason::Aborted);
    assert_eq!(ended.tokens[..], expected(long, 60)[..ended.tokens.len()]);
    finished(&lasting.wait().expect("a text"), long, 60);
}

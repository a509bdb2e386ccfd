//! The scheduler with a model that chooses by itself.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
};

use futures::channel::mpsc::UnboundedSender;
use setun_model::{BatchRow, RequestedOutput};
use setun_ops::argmax::NONE;
use setun_text::SamplerOptions;

use super::{
    test_support::{info, limits, request, sampler, spawn, submit},
    *,
};
use crate::{
    Completion,
    event::FinishReason,
    fake_model::{BLOCK_POSITIONS, ClosureModel},
    stream::GenerationStream,
};

const VOCAB: usize = 97;
const BLOCKS: usize = 64;
const MAX_STEPS: usize = 16;

/// What a test sees of a model.
#[derive(Default)]
struct Seen {
    /// Of each time that the model chose, how many steps it made and how many rows it had.
    argmax_tokens: Vec<(usize, usize)>,
    free_blocks: usize,
}

/// What comes after a token at a position.
fn next(token: u32, position: usize) -> u32 {
    let vocab = u32::try_from(VOCAB).unwrap();
    (token * 7 + u32::try_from(position).unwrap() * 3 + 1) % vocab
}

struct Started {
    commands: UnboundedSender<Command>,
    seen: Arc<Mutex<Seen>>,
    enters: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
}

/// A scheduler on a thread of its own, whose model waits before each of its runs. It does not choose
/// after the positions `unchosen`; after those `broken` logits are none either.
fn start(most: usize, unchosen: &[usize], broken: &[usize]) -> Started {
    start_with(most, unchosen, broken, |_| {}, |scheduler| scheduler)
}

fn start_with(
    most: usize,
    unchosen: &[usize],
    broken: &[usize],
    of_model: impl FnOnce(&mut ClosureModel),
    of_scheduler: impl FnOnce(Scheduler) -> Scheduler,
) -> Started {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let ((entered, enters), (go, goes)) = (mpsc::channel(), mpsc::channel::<()>());
    let (unchosen, broken) = (unchosen.to_vec(), broken.to_vec());
    let wants = |row: &&BatchRow| row.output != RequestedOutput::Nothing;
    let mut model = ClosureModel::new(VOCAB, BLOCKS * BLOCK_POSITIONS, move |batch, _, outputs| {
        let logits = outputs.logits_mut(batch.wanted(), VOCAB)?.chunks_exact_mut(VOCAB);
        for (row, logits) in batch.rows.iter().filter(wants).zip(logits) {
            let is_broken = broken.contains(&row.position);
            logits[next(row.token, row.position) as usize] = if is_broken { f32::NAN } else { 9.0 };
        }
        Ok(())
    });
    model.max_rows = 8;
    of_model(&mut model);
    let of_model = Arc::clone(&seen);
    model.multi_step = Some((
        most,
        Box::new(move |batch, cache, steps, tokens| {
            let rows = batch.rows.iter().filter(wants);
            let mut rows: Vec<_> =
                rows.map(|row| (row.token, row.position, row.sequence)).collect();
            assert!(steps == 1 || rows.len() == batch.rows.len(), "only rows that decode follow");
            for _ in 0..steps {
                for (token, position, sequence) in &mut rows {
                    assert!(*position < cache.len(*sequence).unwrap(), "room for each step");
                    *token = next(*token, *position);
                    tokens.push(if unchosen.contains(position) { NONE } else { *token });
                    *position += 1;
                }
            }
            let mut seen = of_model.lock().unwrap();
            seen.argmax_tokens.push((steps, rows.len()));
            seen.free_blocks = cache.free_blocks();
            drop(seen);
            let _ = entered.send(());
            let _ = goes.recv(); // an error lets every further step pass
        }),
    ));
    let commands = spawn(of_scheduler(Scheduler::new(Box::new(model), info(), limits(BLOCKS))));
    Started { commands, seen, enters, go }
}

/// One whose model does not wait.
fn running(most: usize, unchosen: &[usize], broken: &[usize]) -> Started {
    start(most, unchosen, broken).unheld()
}

impl Started {
    /// Lets every run pass.
    fn unheld(self) -> Self {
        Self { go: mpsc::channel().0, ..self }
    }

    fn generate(
        &self,
        prompt: &[u32],
        max_tokens: usize,
        options: SamplerOptions,
    ) -> GenerationStream {
        let mut request = request(prompt.to_vec(), max_tokens);
        request.sampler = sampler(options);
        request.seed = 5;
        request.eos_tokens = vec![33];
        submit(&self.commands, request)
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
    assert_eq!(completion.done.usage.completion_tokens, completion.tokens.len());
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

/// A timed step is a single one; a device that times none is not asked again.
#[test]
fn steps_follow_each_other_beside_those_that_are_timed() {
    for has_times in [true, false] {
        let of_model = |model: &mut ClosureModel| model.has_times = has_times;
        let started = start_with(MAX_STEPS, &[], &[], of_model, Scheduler::with_operation_times);
        let scheduler = started.unheld();
        for prompt in PROMPTS {
            finished(&scheduler.greedy(prompt, 60).wait().expect("a text"), prompt, 60);
        }
        assert!(scheduler.max_steps() >= 4, "{has_times}: {}", scheduler.max_steps());
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
fn a_text_whose_token_is_not_chosen_begins_again_with_all_logits() {
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
fn sampled_sequences_have_logits_and_disturb_no_other() {
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

//! The owner beside a draft: good, bad, failing, with a long prompt, short of memory, lost.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt, channel::mpsc::UnboundedSender, future::ready};
use setun_text::{Sampler, SamplerOptions};

use super::{
    drafter::MOST_DRAFTED_ROWS,
    tests::{report, request, spawn},
    *,
};
use crate::{
    pressure::Pressure,
    remembering::{BLOCK_POSITIONS, Remembering},
    stream::GenerationStream,
};

const VOCABULARY: usize = 30;
const BLOCKS: usize = 200;
const CONTEXT: usize = BLOCKS * BLOCK_POSITIONS;

fn model(seed: u64) -> Remembering {
    Remembering { context: CONTEXT, max_rows: 64, order: 6, ..Remembering::new(VOCABULARY, seed) }
}

fn drafter(model: Remembering) -> Drafter {
    Drafter::new(Box::new(model), BLOCKS, 0, None).expect("a draft")
}

fn owner(target: &Remembering) -> Owner {
    let limits = Limits {
        blocks: BLOCKS,
        least_blocks: BLOCKS,
        prefix_blocks: 0,
        streams: 64,
        wait: Duration::ZERO,
    };
    Owner::new(Box::new(target.clone()), report(), limits)
}

fn generate(
    commands: &UnboundedSender<Command>,
    prompt: &[u32],
    (tokens, temperature): (usize, f32),
) -> GenerationStream {
    let options = SamplerOptions { temperature, ..SamplerOptions::default() };
    let mut request = request(prompt.to_vec(), tokens);
    request.sampler = Sampler::new(options).expect("sound options");
    (request.vocabulary, request.lookahead, request.seed) = (VOCABULARY, 8, 3);
    let stream = GenerationStream::new(Arc::clone(&request.queue), commands.clone());
    commands.unbounded_send(Command::Generate(Box::new(request))).expect("an owner");
    stream
}

fn text(commands: &UnboundedSender<Command>, prompt: &[u32], how: (usize, f32)) -> Vec<u32> {
    generate(commands, prompt, how).wait().expect("a text").tokens
}

fn metrics(commands: &UnboundedSender<Command>) -> EngineMetrics {
    let (reply, metrics) = oneshot::channel();
    commands.unbounded_send(Command::Chore(Chore::Metrics(reply))).expect("an owner");
    pollster::block_on(metrics).expect("an owner")
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
        let alone = text(&spawn(owner(&model(5))), &prompt(9), how);
        let target = model(5);
        let commands = spawn(owner(&target).with_drafter(drafter(model(5))));
        assert_eq!(text(&commands, &prompt(9), how), alone);
        let found = metrics(&commands);
        assert!(found.guessed > 40 && found.right == found.guessed, "{found:?}");
        assert!(steps(&target.steps).len() < 20, "{:?}", steps(&target.steps));
    }
}

#[test]
fn a_draft_that_says_something_else_is_hardly_asked() {
    let alone = text(&spawn(owner(&model(5))), &prompt(9), (200, 0.0));
    let draft = model(6);
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(owner(&model(5)).with_drafter(drafter(draft)));
    assert_eq!(text(&commands, &prompt(9), (200, 0.0)), alone);
    let found = metrics(&commands);
    assert!(found.right < found.guessed / 2, "{found:?}");
    assert!(steps(&of_draft).len() < 50, "{:?}", steps(&of_draft));
}

#[test]
fn several_texts_share_the_steps_of_a_draft() {
    let draft = model(5);
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(owner(&model(5)).with_drafter(drafter(draft)));
    let prompts: Vec<_> = (5..13).map(prompt).collect();
    let streams: Vec<_> =
        prompts.iter().map(|prompt| generate(&commands, prompt, (30, 1.0))).collect();
    for (stream, prompt) in streams.into_iter().zip(&prompts) {
        let alone = text(&spawn(owner(&model(5))), prompt, (30, 1.0));
        assert_eq!(stream.wait().expect("a text").tokens, alone);
    }
    let rows = steps(&of_draft);
    assert!(rows.iter().filter(|&&rows| rows > 1).count() > rows.len() / 2, "{rows:?}");
}

#[test]
fn a_draft_that_fails_changes_no_text_and_is_asked_again_when_nothing_runs() {
    let draft = Remembering { fails_at: Some(5), ..model(5) };
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(owner(&model(5)).with_drafter(drafter(draft)));
    let alone = text(&spawn(owner(&model(5))), &prompt(9), (60, 0.0));
    assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
    assert_eq!(steps(&of_draft).len(), 6, "until it failed");
    assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
    assert!(steps(&of_draft).len() > 40, "{:?}", steps(&of_draft));
}

#[test]
fn a_long_prompt_comes_to_a_draft_in_parts() {
    let target = Remembering { max_rows: CONTEXT, ..model(5) };
    let draft = Remembering { max_rows: CONTEXT, ..model(5) };
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(owner(&target).with_drafter(drafter(draft)));
    let long = prompt(2 * MOST_DRAFTED_ROWS + 20);
    let how = (30, 0.0);
    let alone = text(&spawn(owner(&model(5))), &long, how);
    assert_eq!(text(&commands, &long, how), alone);
    let rows = steps(&of_draft);
    assert_eq!(rows[..2], [MOST_DRAFTED_ROWS; 2]);
    assert!((20..30).contains(&rows[2]), "what is left, and tokens since: {rows:?}");
    assert!(metrics(&commands).right > 20);
}

#[test]
fn a_draft_gives_its_cache_back_where_memory_is_very_short() {
    let draft = model(5);
    let of_draft = Arc::clone(&draft.steps);
    let commands = spawn(owner(&model(5)).with_drafter(drafter(draft)));
    let stream = generate(&commands, &prompt(9), (150, 0.0));
    let mut events = stream.blocking();
    events.nth(20);
    let before = metrics(&commands).memory.cache;
    let (reply, relieved) = oneshot::channel();
    let relief = Chore::Relieve { pressure: Pressure::Critical, reply };
    commands.unbounded_send(Command::Chore(relief)).expect("an owner");
    let relieved = pollster::block_on(relieved).expect("an answer").expect("no failure");
    let after = metrics(&commands).memory.cache;
    assert!(relieved > 0 && after < before, "{relieved} of {before}, {after} left");
    let asked = steps(&of_draft).len();
    assert_eq!(events.count(), 150 - 21 + 1, "and the end");
    assert_eq!(steps(&of_draft).len(), asked, "it rests");
    text(&commands, &prompt(9), (20, 0.0));
    assert!(steps(&of_draft).len() > asked, "until nothing runs");
}

/// Makes the same model every time, and counts.
struct Anew(Remembering, Arc<AtomicUsize>);

impl Revive for Anew {
    fn revive(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Model>, Error>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Box::new(self.0.clone()) as _)).boxed_local()
    }
}

#[test]
fn a_draft_comes_back_with_a_model_whose_device_was_lost() {
    let made = Arc::new(AtomicUsize::new(0));
    let anew = |model: &Remembering| Box::new(Anew(model.clone(), Arc::clone(&made)));
    let target = Remembering { fails_at: Some(4), is_lost: true, ..model(5) };
    let draft = model(5);
    let drafter =
        Drafter::new(Box::new(draft.clone()), BLOCKS, 0, Some(anew(&draft))).expect("a draft");
    let owner_of_both = owner(&target).with_revival(anew(&target)).with_drafter(drafter);
    let commands = spawn(owner_of_both);
    let alone = text(&spawn(owner(&model(5))), &prompt(9), (60, 0.0));
    assert_eq!(text(&commands, &prompt(9), (60, 0.0)), alone);
    assert_eq!(made.load(Ordering::Relaxed), 2);
    let found = metrics(&commands);
    assert!(found.right > 30 && found.right == found.guessed, "{found:?}");
}

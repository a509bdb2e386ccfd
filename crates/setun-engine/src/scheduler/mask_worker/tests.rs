//! Masks beside steps that a device takes its time for: on a thread, without one, and lost.

use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use futures::channel::mpsc::UnboundedSender;
use setun_text::TokenMask;

use super::{
    super::{
        Limits, Scheduler,
        test_support::{info, request, spawn, submit},
    },
    *,
};
use crate::{
    command::Command,
    constraint::{Constraint, SharedConstraint},
    error::Error,
    fake_model::{BLOCK_POSITIONS, FakeModel, StepEvent},
    stream::GenerationStream,
};

const VOCABULARY: u32 = 30;
const CONTEXT: usize = 96;
const TOKENS: u32 = 12;

/// What a mask takes.
const MASK: Duration = Duration::from_millis(12);

/// The wait for a batch.
const WAIT: Duration = Duration::from_hours(1);

/// What happens, in its order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Step(StepEvent),
    Mask(Place),
}

/// Where a mask is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Scheduler,
    Thread,
}

type Log = Arc<Mutex<Vec<Event>>>;

fn record(log: &Log, event: Event) {
    log.lock().expect("a log").push(event);
}

/// At each position a third of all tokens.
#[derive(Clone)]
struct Thirds {
    log: Log,
    clock: Clock,
    /// The thread that computes this mask is gone before it has it.
    lost_at: Option<u32>,
}

impl Constraint for Thirds {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(Third { form: self.clone(), position: 0, mask: third(0) })
    }
}

struct Third {
    form: Thirds,
    position: u32,
    mask: TokenMask,
}

fn third(position: u32) -> TokenMask {
    let mut mask = TokenMask::none(VOCABULARY as usize);
    (position % 3..VOCABULARY).step_by(3).for_each(|token| mask.insert(token));
    mask
}

impl ConstraintState for Third {
    fn prepare(&mut self) {
        if self.form.lost_at == Some(self.position) {
            resume_unwind(Box::new("on purpose"));
        }
        self.form.clock.advance(MASK);
        let is_thread = thread::current().name() == Some("setun-masks");
        record(
            &self.form.log,
            Event::Mask(if is_thread { Place::Thread } else { Place::Scheduler }),
        );
        self.mask = third(self.position);
    }

    fn mask(&mut self) -> Result<&TokenMask, Error> {
        assert_eq!(self.mask, third(self.position), "it was made ready");
        Ok(&self.mask)
    }

    fn accept(&mut self, _: u32) -> Result<(), Error> {
        self.position += 1;
        Ok(())
    }
}

/// What a form's text is, by its definition.
fn expected(prompt: &[u32]) -> Vec<u32> {
    let model = FakeModel::new(VOCABULARY as usize, 5);
    let mut text = prompt.to_vec();
    for position in 0..TOKENS {
        let (mask, logits) = (third(position), model.logits(&text));
        let allowed = (0..VOCABULARY).filter(|&token| mask.contains(token));
        let logit = |token: &u32| logits[*token as usize];
        text.extend(allowed.max_by(|a, b| logit(a).total_cmp(&logit(b))));
    }
    text.split_off(prompt.len())
}

fn scheduler(mask_worker: MaskWorker) -> (UnboundedSender<Command>, Log, Clock) {
    let (log, clock) = (Log::default(), Clock::held());
    let of_model = Arc::clone(&log);
    let under_way = Arc::new(move |event| record(&of_model, Event::Step(event)));
    let model = FakeModel { under_way: Some(under_way), ..FakeModel::new(VOCABULARY as usize, 5) };
    let blocks = CONTEXT / BLOCK_POSITIONS;
    let limits = Limits {
        blocks,
        min_blocks: blocks,
        prefix_blocks: 0,
        max_concurrent: PROMPTS.len(),
        wait: WAIT,
    };
    let mut scheduler = Scheduler::new(Box::new(model), info(), limits);
    scheduler.model.masks = mask_worker;
    (spawn(scheduler.with_clock(clock.clone())), log, clock)
}

fn generate(
    commands: &UnboundedSender<Command>,
    prompt: &[u32],
    form: &Thirds,
) -> GenerationStream {
    let mut request = request(prompt.to_vec(), TOKENS as usize);
    request.vocabulary = VOCABULARY as usize;
    request.constraint = Some(SharedConstraint::new(form.clone()));
    (request.clock, request.arrival_time) = (form.clock.clone(), form.clock.now());
    submit(commands, request)
}

const PROMPTS: [&[u32]; 3] = [&[1, 2], &[3], &[4, 5, 6, 7, 8]];

/// All of them at once.
fn texts((commands, log, clock): &(UnboundedSender<Command>, Log, Clock)) {
    let form = Thirds { log: Arc::clone(log), clock: clock.clone(), lost_at: None };
    let streams = PROMPTS.map(|prompt| generate(commands, prompt, &form));
    for (prompt, stream) in PROMPTS.iter().zip(streams) {
        assert_eq!(stream.wait().expect("a text").tokens, expected(prompt));
    }
}

/// Computes no mask at once but the first, however long the steps of a busy machine are.
fn with_thread() -> MaskWorker {
    MaskWorker { part_of_step: u32::MAX, least: Duration::ZERO, ..MaskWorker::default() }
}

/// As in a browser, where there is no thread to be had.
fn without_thread() -> MaskWorker {
    MaskWorker { jobs: Some(mpsc::channel().0), ..with_thread() }
}

#[test]
fn a_thread_computes_all_but_the_first() {
    let run = scheduler(with_thread());
    texts(&run);
    let events = run.1.lock().expect("a log");
    let mask_worker =
        |kv_slot| events.iter().filter(|event| **event == Event::Mask(kv_slot)).count();
    assert_eq!(mask_worker(Place::Scheduler), PROMPTS.len(), "{events:?}");
    assert_eq!(mask_worker(Place::Thread), PROMPTS.len() * (TOKENS as usize - 2), "{events:?}");
}

#[test]
fn without_a_thread_they_are_computed_while_a_device_has_the_step() {
    let run = scheduler(without_thread());
    texts(&run);
    let events = run.1.lock().expect("a log");
    let mut beside = 0;
    let mut is_under_way = false;
    for event in events.iter() {
        match event {
            Event::Step(StepEvent::Begins) => is_under_way = true,
            Event::Step(StepEvent::Ends) => is_under_way = false,
            Event::Mask(kv_slot) => {
                assert_eq!(*kv_slot, Place::Scheduler, "{events:?}");
                beside += usize::from(is_under_way);
            }
        }
    }
    assert_eq!(beside, PROMPTS.len() * (TOKENS as usize - 2), "{events:?}");
}

#[test]
fn a_thread_that_is_lost_ends_the_text_it_had_and_no_other() {
    let run = scheduler(with_thread());
    let (commands, log, clock) = &run;
    let form = Thirds { log: Arc::clone(log), clock: clock.clone(), lost_at: Some(4) };
    let stream = generate(commands, PROMPTS[0], &form);
    clock.advance(WAIT); // it begins without others
    let error = stream.wait().expect_err("no mask");
    assert!(error.to_string().contains("the form panicked"), "{error}");
    texts(&run);
}

/// The same, with a mask that takes until it is let go.
#[derive(Clone)]
struct Held {
    form: Thirds,
    let_go: Arc<Mutex<mpsc::Receiver<()>>>,
    waited: Arc<Mutex<Vec<bool>>>,
}

struct HeldState(Held, Third);

impl Constraint for Held {
    fn begin(&self) -> Box<dyn ConstraintState> {
        let third = Third { form: self.form.clone(), position: 0, mask: third(0) };
        Box::new(HeldState(self.clone(), third))
    }
}

impl ConstraintState for HeldState {
    fn prepare(&mut self) {
        if self.1.position == 3 {
            let let_go = self.0.let_go.lock().expect("a gate").recv_timeout(Duration::from_mins(1));
            self.0.waited.lock().expect("a list").push(let_go.is_ok());
        }
        self.1.prepare();
    }

    fn mask(&mut self) -> Result<&TokenMask, Error> {
        self.1.mask()
    }

    fn accept(&mut self, token: u32) -> Result<(), Error> {
        self.1.accept(token)
    }
}

#[test]
fn nobody_waits_for_a_mask_that_takes_longer_than_a_step() {
    let (commands, log, clock) = scheduler(with_thread());
    let (gate, let_go) = mpsc::channel();
    let form = Thirds { log, clock: clock.clone(), lost_at: None };
    let let_go = Arc::new(Mutex::new(let_go));
    let held = Held { form: form.clone(), let_go, waited: Arc::default() };
    let request = |prompt: &[u32], form: Option<SharedConstraint>| {
        let mut request = request(prompt.to_vec(), TOKENS as usize);
        request.vocabulary = VOCABULARY as usize;
        request.constraint = form;
        (request.clock, request.arrival_time) = (clock.clone(), clock.now());
        submit(&commands, request)
    };
    let slow = request(PROMPTS[0], Some(SharedConstraint::new(held.clone())));
    let free = [PROMPTS[1], PROMPTS[2]].map(|prompt| request(prompt, None));
    for text in free {
        assert_eq!(text.wait().expect("a text").tokens.len(), TOKENS as usize);
    }
    assert!(held.waited.lock().expect("a list").iter().all(|let_go| *let_go), "somebody waited");
    gate.send(()).expect("a thread that waits");
    assert_eq!(slow.wait().expect("a text").tokens, expected(PROMPTS[0]));
    assert_eq!(*held.waited.lock().expect("a list"), [true]);
}

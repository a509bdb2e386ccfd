//! Masks beside steps that a device takes its time for: on a thread, without one, and lost.

use std::{
    future::poll_fn,
    mem::replace,
    panic::resume_unwind,
    sync::{Arc, Mutex, mpsc},
    task::Poll,
    thread::{self, sleep},
    time::Duration,
};

use futures::{
    channel::mpsc::UnboundedSender,
    future::{FutureExt, LocalBoxFuture},
};
use setun_model::{Batch, MemoryUse, Model, ModelError, Outputs, PagedCache};
use setun_text::TokenMask;

use super::{
    super::{
        Command, Limits, Scheduler,
        tests::{report, request, spawn},
    },
    *,
};
use crate::{
    constraint::{Constraint, SharedConstraint},
    error::Error,
    fake_model::{BLOCK_POSITIONS, FakeModel},
    stream::GenerationStream,
};

const VOCABULARY: u32 = 30;
const CONTEXT: usize = 96;
const TOKENS: u32 = 12;

/// Longer than [`PART_OF_STEP`] of a step of [`FakeModel`], so that no mask is computed at once
/// but the first.
const MASK: Duration = Duration::from_millis(3);

/// What happens, in its order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    StepBegins,
    StepEnds,
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

/// A model whose steps are under way for a while, as those of a device are.
struct Distant {
    model: FakeModel,
    log: Log,
}

impl Model for Distant {
    fn vocab_size(&self) -> usize {
        VOCABULARY as usize
    }

    fn context_length(&self) -> usize {
        CONTEXT
    }

    fn block_positions(&self) -> usize {
        BLOCK_POSITIONS
    }

    fn block_bytes(&self) -> usize {
        1
    }

    fn max_rows(&self) -> usize {
        self.model.max_rows
    }

    fn memory(&self) -> MemoryUse {
        self.model.memory()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        async {
            record(&self.log, Event::StepBegins);
            be_under_way().await;
            let result = self.model.forward(batch, cache, outputs).await;
            record(&self.log, Event::StepEnds);
            result
        }
        .boxed_local()
    }
}

/// Is not ready the first time that it is asked.
async fn be_under_way() {
    let mut is_under_way = false;
    poll_fn(|context| {
        if replace(&mut is_under_way, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// At each position a third of all tokens.
#[derive(Clone)]
struct Thirds {
    log: Log,
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
        sleep(MASK);
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

fn scheduler(mask_worker: MaskWorker) -> (UnboundedSender<Command>, Log) {
    let log = Log::default();
    let model = Distant { model: FakeModel::new(VOCABULARY as usize, 5), log: Arc::clone(&log) };
    let blocks = CONTEXT / BLOCK_POSITIONS;
    // So that the prompts begin in one batch, however the threads are scheduled.
    let (streams, wait) = (PROMPTS.len(), Duration::from_secs(1));
    let limits = Limits { blocks, min_blocks: blocks, prefix_blocks: 0, streams, wait };
    let scheduler = Scheduler { mask_worker, ..Scheduler::new(Box::new(model), report(), limits) };
    (spawn(scheduler), log)
}

fn generate(
    commands: &UnboundedSender<Command>,
    prompt: &[u32],
    form: &Thirds,
) -> GenerationStream {
    let mut request = request(prompt.to_vec(), TOKENS as usize);
    request.vocabulary = VOCABULARY as usize;
    request.form = Some(SharedConstraint::new(form.clone()));
    let stream = GenerationStream::new(Arc::clone(&request.queue), commands.clone());
    commands.unbounded_send(Command::Generate(Box::new(request))).expect("an owner");
    stream
}

const PROMPTS: [&[u32]; 3] = [&[1, 2], &[3], &[4, 5, 6, 7, 8]];

/// All of them at once.
fn texts(commands: &UnboundedSender<Command>, log: &Log) {
    let form = Thirds { log: Arc::clone(log), lost_at: None };
    let streams = PROMPTS.map(|prompt| generate(commands, prompt, &form));
    for (prompt, stream) in PROMPTS.iter().zip(streams) {
        assert_eq!(stream.wait().expect("a text").tokens, expected(prompt));
    }
}

/// As in a browser, where there is no thread to be had.
fn without_thread() -> MaskWorker {
    MaskWorker { jobs: Some(mpsc::channel().0), left: vec![] }
}

#[test]
fn a_thread_computes_all_but_the_first() {
    let (commands, log) = scheduler(MaskWorker::default());
    texts(&commands, &log);
    let events = log.lock().expect("a log");
    let mask_worker =
        |kv_slot| events.iter().filter(|event| **event == Event::Mask(kv_slot)).count();
    assert_eq!(mask_worker(Place::Scheduler), PROMPTS.len(), "{events:?}");
    assert_eq!(mask_worker(Place::Thread), PROMPTS.len() * (TOKENS as usize - 2), "{events:?}");
}

#[test]
fn without_a_thread_they_are_computed_while_a_device_has_the_step() {
    let (commands, log) = scheduler(without_thread());
    texts(&commands, &log);
    let events = log.lock().expect("a log");
    let mut beside = 0;
    let mut is_under_way = false;
    for event in events.iter() {
        match event {
            Event::StepBegins => is_under_way = true,
            Event::StepEnds => is_under_way = false,
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
    let (commands, log) = scheduler(MaskWorker::default());
    let form = Thirds { log: Arc::clone(&log), lost_at: Some(4) };
    let error = generate(&commands, PROMPTS[0], &form).wait().expect_err("no mask");
    assert!(error.to_string().contains("the form panicked"), "{error}");
    texts(&commands, &log);
}

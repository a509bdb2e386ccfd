//! Tokens that a constraint leaves no choice about: the same texts in fewer steps.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use setun_text::TokenMask;

use super::{
    super::{
        Limits, Scheduler,
        test_support::{info, request, spawn, submit},
    },
    *,
};
use crate::{
    constraint::{Constraint, SharedConstraint},
    error::Error,
    event::FinishReason,
    fake_model::{BLOCK_POSITIONS, FakeModel, StepEvent},
    sequence::Request,
    stream::GenerationStream,
};

const VOCABULARY: u32 = 30;
const CONTEXT: usize = 96;
const TOKENS: usize = 40;

/// Masks move it, so that each takes some time. A mask is quick however long it took, or never.
static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::held);

/// One of a third of all tokens, and then tokens without a choice; one position refuses.
#[derive(Clone)]
struct Runs {
    position: u32,
    /// The tokens from a choice to the next.
    period: u32,
    mask: Option<TokenMask>,
    refuses_at: Option<u32>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { position: 0, period: 4, mask: None, refuses_at: None }
    }
}

fn allowed(position: u32, period: u32) -> TokenMask {
    let mut mask = TokenMask::none(VOCABULARY as usize);
    if position.is_multiple_of(period) {
        (position % 3..VOCABULARY).step_by(3).for_each(|token| mask.insert(token));
    } else {
        mask.insert(7 * position % VOCABULARY);
    }
    mask
}

impl Constraint for Runs {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(self.clone())
    }
}

impl ConstraintState for Runs {
    fn prepare(&mut self) {
        CLOCK.advance(Duration::from_nanos(1));
    }

    fn mask(&mut self) -> Result<&TokenMask, Error> {
        if self.refuses_at == Some(self.position) {
            return Err(Error::Constraint { reason: "no token fits".into() });
        }
        Ok(self.mask.insert(allowed(self.position, self.period)))
    }

    fn accept(&mut self, token: u32) -> Result<(), Error> {
        assert!(
            allowed(self.position, self.period).contains(token),
            "{token} at {}",
            self.position
        );
        self.position += 1;
        Ok(())
    }
}

/// What the text is, by its definition.
fn expected(prompt: &[u32], tokens: usize) -> Vec<u32> {
    let model = FakeModel::new(VOCABULARY as usize, 5);
    let mut text = prompt.to_vec();
    for position in (0..).take(tokens) {
        let (mask, logits) = (allowed(position, 4), model.logits(&text));
        let logit = |token: &u32| logits[*token as usize];
        text.extend(mask.iter().max_by(|a, b| logit(a).total_cmp(&logit(b))));
    }
    text.split_off(prompt.len())
}

/// Texts of these requests, or their errors, and the steps that they took. Where tokens are forced, every mask is quick.
fn run(requests: Vec<Request>, is_forced: bool) -> (Vec<Result<Text, String>>, usize) {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let under_way = Arc::new(move |event| {
        counted.fetch_add(usize::from(event == StepEvent::Begins), Ordering::Relaxed);
    });
    let model = FakeModel { under_way: Some(under_way), ..FakeModel::new(VOCABULARY as usize, 5) };
    let blocks = CONTEXT / BLOCK_POSITIONS;
    let (max_concurrent, wait) = (requests.len(), Duration::from_hours(1));
    let limits = Limits { blocks, min_blocks: blocks, prefix_blocks: 0, max_concurrent, wait };
    let mut scheduler = Scheduler::new(Box::new(model), info(), limits);
    let (part_of_step, least) =
        if is_forced { (8, Duration::MAX) } else { (u32::MAX, Duration::ZERO) };
    scheduler.model.masks = MaskWorker { part_of_step, least, ..MaskWorker::default() };
    let commands = spawn(scheduler.with_clock(CLOCK.clone()));
    let streams: Vec<_> = requests.into_iter().map(|own| submit(&commands, own)).collect();
    let text = |stream: GenerationStream| {
        let text = stream.wait().map_err(|error| error.to_string())?;
        Ok((text.tokens, text.text, text.done.finish_reason))
    };
    let texts = streams.into_iter().map(text).collect();
    (texts, steps.load(Ordering::Relaxed))
}

type Text = (Vec<u32>, String, FinishReason);

fn constrained(prompt: &[u32], tokens: usize, form: &Runs) -> Request {
    let mut request = request(prompt.to_vec(), tokens);
    request.vocabulary = VOCABULARY as usize;
    request.constraint = Some(SharedConstraint::new(form.clone()));
    request
}

#[test]
fn a_run_without_a_choice_takes_one_step() {
    let requests = || vec![constrained(&[1, 2], TOKENS, &Runs::default())];
    let (forced, few) = run(requests(), true);
    let (plain, all) = run(requests(), false);
    assert_eq!(forced, plain);
    let Ok((tokens, ..)) = &forced[0] else { panic!("{forced:?}") };
    assert_eq!(*tokens, expected(&[1, 2], TOKENS));
    // The second token comes before a mask was timed, and the last may be one too many.
    assert_eq!((few, all), (TOKENS / 4 + 2, TOKENS));
}

#[test]
fn a_long_run_is_cut_into_several_steps() {
    let form = Runs { period: 80, ..Runs::default() };
    let requests = || vec![constrained(&[1, 2], 80, &form)];
    let ((forced, few), (plain, all)) = (run(requests(), true), run(requests(), false));
    assert_eq!(forced, plain);
    assert!(forced[0].is_ok(), "{forced:?}");
    // Of the 80 tokens two come before a mask was timed, then 16 a step.
    assert_eq!((few, all), (7, 80));
}

#[test]
fn texts_beside_each_other_stay_what_they_are_alone() {
    let prompts: [&[u32]; 3] = [&[1, 2], &[3], &[4, 5, 6, 7, 8]];
    let requests = || {
        let own = |(index, prompt): (usize, &&[u32])| {
            constrained(prompt, 9 + 4 * index, &Runs::default())
        };
        let mut requests: Vec<_> = prompts.iter().enumerate().map(own).collect();
        requests.push(request(vec![9, 1], 16));
        requests
    };
    let ((forced, few), (plain, all)) = (run(requests(), true), run(requests(), false));
    assert_eq!(forced, plain);
    assert!(few < all, "{few} of {all}");
    for ((index, prompt), found) in prompts.iter().enumerate().zip(&forced) {
        let Ok((tokens, ..)) = found else { panic!("{found:?}") };
        assert_eq!(*tokens, expected(prompt, 9 + 4 * index));
    }
}

#[test]
fn every_length_ends_where_it_does_without_them() {
    for tokens in 1..10 {
        let requests = || vec![constrained(&[1, 2], tokens, &Runs::default())];
        assert_eq!(run(requests(), true).0, run(requests(), false).0, "{tokens}");
    }
}

#[test]
fn an_end_token_within_a_run_ends_the_text() {
    for position in 1..8 {
        let requests = || {
            let mut request = constrained(&[1, 2], TOKENS, &Runs::default());
            request.eos_tokens = vec![7 * position % VOCABULARY];
            vec![request]
        };
        let (forced, _) = run(requests(), true);
        assert_eq!(forced, run(requests(), false).0, "{position}");
        assert!(matches!(&forced[0], Ok((_, _, FinishReason::Stop))), "{forced:?}");
    }
}

#[test]
fn an_error_within_a_run_is_the_error_of_the_text() {
    for position in 0..8 {
        let form = Runs { refuses_at: Some(position), ..Runs::default() };
        let requests = || vec![constrained(&[1, 2], TOKENS, &form)];
        let (forced, _) = run(requests(), true);
        assert_eq!(forced, run(requests(), false).0, "{position}");
        assert!(forced[0].is_err(), "{forced:?}");
    }
}

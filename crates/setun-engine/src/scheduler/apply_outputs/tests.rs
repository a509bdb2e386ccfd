//! Made-up outputs, without a model.

use setun_clock::Clock;
use setun_model::RequestedOutput;
use setun_ops::{
    argmax::NONE,
    top_logits::{Ranked, TopLogitsRequest},
};

use super::{
    super::test_support::{limits, request},
    *,
};
use crate::{
    ErrorCode,
    beams::BeamOptions,
    event::Event,
    event_queue::Queue,
    fake_model::BLOCK_POSITIONS,
    sequence::{PromptRange, Request, SearchRequest, Sequence, TaskRequest},
};

const VOCABULARY: usize = 8;
const STOP: u32 = 7;

/// Sequences of a step that runs their whole prompts.
struct Step {
    running: Vec<Running>,
    kv: KvCache,
    plan: StepPlan,
    queues: Vec<Arc<Queue>>,
}

impl Step {
    fn new(requests: Vec<Request>) -> Self {
        Self::with(requests, None, &[])
    }

    /// The same in several steps, or with drafted tokens behind the first prompt.
    fn with(requests: Vec<Request>, multi_step: Option<usize>, draft: &[u32]) -> Self {
        let mut kv = KvCache::new(limits(64), setun_model::PagedCache::new(BLOCK_POSITIONS, 64));
        let queues = requests.iter().map(|request| Arc::clone(&request.queue)).collect();
        let mut running = vec![];
        for (arrival, request) in (1..).zip(requests) {
            let mut one = Running::new(Sequence::new(request, arrival), kv.pool.create());
            one.rows = one.sequence.pending().len();
            if let (1, [_, ..]) = (arrival, draft) {
                let rows = one.sequence.pending().iter().chain(draft);
                one.draft = rows.map(|&token| (token, RequestedOutput::Logits)).collect();
            }
            let positions = one.rows + multi_step.unwrap_or(1) - 1;
            kv.extend(&one, positions.max(one.draft.len())).expect("room");
            running.push(one);
        }
        let plan = StepPlan::new(&mut running, multi_step, VOCABULARY);
        Self { running, kv, plan, queues }
    }

    fn apply(&mut self, outputs: &StepOutputs) -> Result<AppliedStep, Error> {
        apply_outputs(&mut self.running, &mut self.kv, &self.plan, outputs)
    }

    /// Applies logits of which each row names a token.
    fn apply_tokens(&mut self, tokens: &[u32]) -> AppliedStep {
        self.apply(&logits(tokens)).expect("right outputs")
    }

    /// The tokens that the consumer of each has got.
    fn tokens(&self) -> Vec<Vec<u32>> {
        let token = |event| match event {
            Ok(Event::Text(delta)) => Some(delta.token),
            _ => None,
        };
        self.queues
            .iter()
            .map(|queue| queue.take_all().into_iter().filter_map(token).collect())
            .collect()
    }

    /// Positions of each that are in the cache.
    fn cached(&self) -> Vec<usize> {
        let cached = |running: &Running| {
            let cached = running.sequence.cached();
            assert_eq!(self.kv.pool.len(running.kv_slot).expect("a slot"), cached);
            cached
        };
        self.running.iter().map(cached).collect()
    }
}

fn rows(count: usize, write: impl FnOnce(&mut [f32])) -> StepOutputs {
    let mut outputs = StepOutputs::default();
    let logits = outputs.rows.logits_mut(count, VOCABULARY).expect("memory");
    logits.fill(0.0);
    write(logits);
    outputs
}

fn logits(tokens: &[u32]) -> StepOutputs {
    rows(tokens.len(), |logits| {
        for (row, &token) in logits.chunks_exact_mut(VOCABULARY).zip(tokens) {
            row[token as usize] = 1.0;
        }
    })
}

fn argmax(tokens: &[u32]) -> StepOutputs {
    StepOutputs { argmax: tokens.to_vec(), ..StepOutputs::default() }
}

/// Two prompts, of two tokens and of three.
fn two() -> Vec<Request> {
    vec![request(vec![1; 2], 5), request(vec![1; 3], 5)]
}

fn reason(applied: &AppliedStep) -> Vec<(usize, FinishReason)> {
    let reason = |(index, end): &(usize, End)| (*index, end.as_ref().expect("no error").0);
    applied.ended.iter().map(reason).collect()
}

#[test]
fn each_sequence_gets_the_token_of_its_row() {
    let mut step = Step::new(two());
    let applied = step.apply_tokens(&[3, 4]);
    assert_eq!((applied.waits.len(), applied.ended.len()), (2, 0));
    assert!(applied.waits.iter().all(|wait| matches!(wait, Wait::First { .. })));
    assert_eq!((step.tokens(), step.cached()), (vec![vec![3], vec![4]], vec![2, 3]));
    assert_eq!(step.running[1].sequence.pending(), [4]);
}

#[test]
fn part_of_a_prompt_gets_no_token() {
    let mut step = Step::new(two());
    step.running[0].rows = 1;
    step.plan = StepPlan::new(&mut step.running, None, VOCABULARY);
    step.apply_tokens(&[4]);
    assert_eq!(step.tokens(), [vec![], vec![4]]);
    assert_eq!(step.running[0].sequence.pending(), [1]);
}

#[test]
fn other_outputs_than_were_planned_change_nothing() {
    let wrong = |outputs: StepOutputs, what: &str| {
        let mut step = Step::new(two());
        let error = step.apply(&outputs).expect_err("wrong outputs");
        assert_eq!(error.code(), ErrorCode::UnsupportedModel);
        assert!(error.to_string().contains(what), "{error}");
        assert!(step.tokens().iter().all(Vec::is_empty));
        assert!(step.running.iter().all(|running| running.sequence.cached() == 0));
    };
    wrong(logits(&[]), "the number of output rows is 0, expected 2");
    wrong(logits(&[1]), "the number of output rows is 1, expected 2");
    wrong(logits(&[1, 2, 3]), "the number of output rows is 3, expected 2");
    let mut outputs = StepOutputs::default();
    outputs.rows.logits_mut(2, VOCABULARY + 1).expect("memory").fill(0.0);
    wrong(outputs, "the length of a row of logits is 9, expected 8");
    let mut outputs = StepOutputs::default();
    outputs.rows.states_mut(2, VOCABULARY).expect("memory").fill(0.0);
    wrong(outputs, "an output row is a hidden state");
    let mut outputs = StepOutputs::default();
    outputs.rows.ranked_mut(2, 1).expect("memory").fill(Ranked { token: 8, logit: 0.0 });
    wrong(outputs, "a top token is 8");
}

#[test]
fn a_logit_that_is_not_a_number_ends_its_sequence_alone() {
    let mut step = Step::new(two());
    let applied = step.apply(&rows(2, |logits| logits[0] = f32::NAN)).expect("two rows");
    let [(0, Err(error))] = &applied.ended[..] else { panic!("{applied:?}") };
    assert!(error.to_string().contains("NaN"), "{error}");
    assert_eq!(step.tokens(), [vec![], vec![0]]);
}

#[test]
fn a_prompt_whose_logprobs_fail_takes_no_rows_of_others() {
    let mut requests = two();
    let range = PromptRange { from: 0, decoder: None };
    requests[0].task = TaskRequest::Generate(Some(range));
    let mut step = Step::new(requests);
    assert_eq!(step.plan.batch.wanted(), 3, "one of the prompt, and the last of both");
    let outputs = rows(3, |logits| {
        logits[..VOCABULARY].fill(f32::NAN);
        logits[2 * VOCABULARY + 5] = 1.0;
    });
    let applied = step.apply(&outputs).expect("three rows");
    assert!(matches!(applied.ended[..], [(0, Err(_))]), "{applied:?}");
    assert_eq!(step.tokens(), [vec![], vec![5]]);
}

#[test]
fn a_stop_token_and_a_full_context_end_a_sequence() {
    let mut requests = two();
    requests.push(request(vec![1], 1));
    requests[0].eos_tokens = vec![STOP];
    requests[1].context_length = 4;
    let mut step = Step::new(requests);
    let applied = step.apply_tokens(&[STOP, 2, 3]);
    let length = FinishReason::Length;
    assert_eq!(reason(&applied), [(0, FinishReason::Stop), (1, length), (2, length)]);
    assert_eq!(step.tokens(), [vec![STOP], vec![2], vec![3]], "the last tokens are sent");
}

#[test]
fn a_prompt_that_is_only_scored_ends_without_a_token() {
    let mut requests = two();
    requests[0].task = TaskRequest::Score(None);
    requests[0].max_tokens = 0;
    let mut step = Step::new(requests);
    let applied = step.apply_tokens(&[6]);
    assert_eq!(reason(&applied), [(0, FinishReason::Length)]);
    assert_eq!(step.tokens(), [vec![], vec![6]]);
}

#[test]
fn one_that_was_cancelled_meanwhile_disturbs_no_other() {
    let mut step = Step::new(two());
    step.queues[0].cancel();
    let applied = step.apply_tokens(&[3, 4]);
    assert!(applied.ended.is_empty(), "the scheduler ends it before the next step");
    assert!(step.running[0].sequence.is_interrupted(Clock::held().now()));
    assert_eq!(step.tokens()[1], [4]);
}

#[test]
fn drafted_tokens_are_accepted_up_to_the_first_that_differs() {
    for (chosen, accepted) in [([2, 3, 4], 2), ([2, 5, 6], 1), ([5, 6, 1], 0)] {
        let mut step = Step::with(vec![request(vec![1], 9), request(vec![1], 9)], None, &[2, 3]);
        let applied = step.apply_tokens(&[&chosen[..], &[6]].concat());
        assert_eq!(applied.drafts, [(2, accepted)]);
        assert_eq!(step.tokens(), [chosen[..=accepted].to_vec(), vec![6]]);
        assert_eq!((step.cached(), applied.waits.len()), (vec![accepted + 1, 1], accepted + 2));
    }
}

#[test]
fn a_draft_ends_with_the_token_that_ends_its_text() {
    let mut request = request(vec![1], 9);
    request.eos_tokens = vec![STOP];
    let mut step = Step::with(vec![request], None, &[STOP, 3]);
    let applied = step.apply_tokens(&[STOP, 3, 4]);
    assert_eq!(reason(&applied), [(0, FinishReason::Stop)]);
    assert_eq!(step.tokens(), [vec![STOP]]);
}

#[test]
fn samples_begin_behind_the_others_where_their_prompt_ends() {
    let mut requests = two();
    requests[0].samples = vec![request(vec![1; 2], 1), request(vec![1; 2], 5)];
    let queues: Vec<_> = requests[0].samples.iter().map(|one| Arc::clone(&one.queue)).collect();
    let mut step = Step::new(requests);
    step.queues.extend(queues);
    let applied = step.apply_tokens(&[3, 4]);
    assert_eq!(reason(&applied), [(2, FinishReason::Length)]);
    assert_eq!(step.tokens(), [vec![3], vec![4], vec![3], vec![3]]);
    assert_eq!((step.cached(), applied.failed_samples), (vec![2, 3, 2, 2], 0));
}

#[test]
fn the_beams_of_a_search_get_slots_of_their_own() {
    let mut search = request(vec![1; 2], 5);
    let (reply, _texts) = futures::channel::oneshot::channel();
    search.task = TaskRequest::Beam(SearchRequest { options: BeamOptions::new(3), reply });
    let mut step = Step::new(vec![search, request(vec![1], 5)]);
    let applied = step.apply_tokens(&[3, 4]);
    assert!(applied.ended.is_empty() && applied.waits.len() == 1, "{applied:?}");
    assert_eq!(step.running[0].width(), 3);
    for kv_slot in step.running[0].kv_slots() {
        assert_eq!(step.kv.pool.len(kv_slot).expect("a slot"), 2);
    }
    assert_eq!(step.tokens()[1], [4]);
}

#[test]
fn several_steps_give_each_sequence_its_column() {
    let requests = || vec![request(vec![1], 9), request(vec![1], 9)];
    let mut step = Step::with(requests(), Some(3), &[]);
    let applied = step.apply(&argmax(&[2, 5, 3, 6, 4, 1])).expect("three steps");
    assert_eq!((applied.waits.len(), applied.ended.len()), (6, 0));
    assert_eq!((step.tokens(), step.cached()), (vec![vec![2, 3, 4], vec![5, 6, 1]], vec![3, 3]));
    let mut step = Step::with(requests(), Some(3), &[]);
    let error = step.apply(&argmax(&[2, 5, 3, 6])).expect_err("too few");
    assert_eq!(error.code(), ErrorCode::UnsupportedModel);
}

#[test]
fn tokens_after_the_end_and_after_a_row_without_one_are_dropped() {
    let mut ends = request(vec![1], 9);
    ends.eos_tokens = vec![STOP];
    let mut step = Step::with(vec![ends, request(vec![1], 9)], Some(3), &[]);
    let applied = step.apply(&argmax(&[STOP, 5, 3, NONE, 4, 1])).expect("three steps");
    assert_eq!(reason(&applied), [(0, FinishReason::Stop)]);
    assert_eq!(step.tokens(), [vec![STOP], vec![5]]);
    let running = &mut step.running[1].sequence;
    assert_eq!((running.pending(), running.cached()), (&[][..], 2));
    assert!(running.shorten().expect("no error"), "it begins again, for its logits");
    assert!(!running.shorten().expect("no error"), "once");
}

/// Ranked rows that name a token each, or none where it is undecided.
fn ranked(tokens: &[Option<u32>]) -> StepOutputs {
    let mut outputs = StepOutputs::default();
    let rows = outputs.rows.ranked_mut(tokens.len(), 1).expect("memory");
    for (row, token) in rows.iter_mut().zip(tokens) {
        *row = token.map_or(Ranked::PADDING, |token| Ranked { token, logit: 1.0 });
    }
    outputs
}

/// The first of two has a draft of two tokens; of its three rows any may be undecided.
#[test]
fn undecided_rows_take_the_tokens_of_the_head_one_after_the_other() {
    for (chosen, accepted) in [([2, 3, 4], 2), ([2, 5, 6], 1), ([5, 6, 1], 0)] {
        for undecided in 0..16_u32 {
            let requests = vec![request(vec![1], 9), request(vec![1], 9)];
            let mut step = Step::with(requests, None, &[2, 3]);
            let top = RequestedOutput::TopLogits(TopLogitsRequest { k: 1, ..<_>::default() });
            step.plan.batch.rows.iter_mut().for_each(|row| row.output = top.clone());
            let all = [&chosen[..], &[6]].concat();
            let is_undecided = |row: usize| undecided >> row & 1 == 1;
            let rows = all.iter().enumerate();
            let rows = rows.map(|(row, &token)| (!is_undecided(row)).then_some(token));
            let mut outputs = ranked(&rows.collect::<Vec<_>>());
            let mut applied = step.apply(&outputs).expect("four rows");
            let mut heads = vec![];
            while !applied.undecided.is_empty() {
                let rows: Vec<usize> = applied.undecided.iter().map(|one| one.row).collect();
                let tokens: Vec<u32> = rows.iter().map(|&row| all[row]).collect();
                heads.extend_from_slice(&rows);
                outputs.head = HeadOutputs { rows, logits: logits(&tokens).rows };
                apply_head(&mut step.running, &mut step.kv, &outputs, &mut applied);
            }
            heads.sort_unstable();
            let needed = |row: &usize| is_undecided(*row) && (*row == 3 || *row <= accepted);
            assert_eq!(heads, (0..4).filter(needed).collect::<Vec<_>>(), "those that count, once");
            assert_eq!(applied.drafts, [(2, accepted)]);
            assert_eq!(step.tokens(), [chosen[..=accepted].to_vec(), vec![6]]);
            assert_eq!(step.cached(), [accepted + 1, 1]);
        }
    }
}

#[test]
fn samples_share_the_undecided_row_of_their_prompt() {
    let mut requests = two();
    requests[0].samples = vec![request(vec![1; 2], 5), request(vec![1; 2], 5)];
    let queues: Vec<_> = requests[0].samples.iter().map(|one| Arc::clone(&one.queue)).collect();
    let mut step = Step::new(requests);
    step.queues.extend(queues);
    let mut outputs = ranked(&[None, Some(4)]);
    let mut applied = step.apply(&outputs).expect("two rows");
    assert_eq!(step.tokens(), [vec![], vec![4], vec![], vec![]]);
    assert_eq!(applied.undecided.iter().map(|one| one.row).collect::<Vec<_>>(), [0; 3]);
    outputs.head = HeadOutputs { rows: vec![0], logits: logits(&[3]).rows };
    apply_head(&mut step.running, &mut step.kv, &outputs, &mut applied);
    assert_eq!(step.tokens(), [vec![3], vec![], vec![3], vec![3]]);
    assert_eq!((step.cached(), applied.undecided.len()), (vec![2, 3, 2, 2], 0));
}

//! A draft whose cache follows what happens to its proposals.

use setun_text::SamplerOptions;

use super::*;
use crate::fake_model::FakeModel;

const VOCABULARY: usize = 30;

fn model() -> FakeModel {
    FakeModel::new(VOCABULARY, 5)
}

fn draft(model: FakeModel, temperature: f32) -> DraftModel {
    let options = SamplerOptions { temperature, ..SamplerOptions::default() };
    let room = DraftRoom { blocks: u32::MAX as usize, prefix_blocks: 0, rows: usize::MAX };
    DraftModel::within(Box::new(model), Sampler::new(options).expect("sound options"), room)
}

fn request(sequence: u64, history: &[u32], most: usize) -> DraftRequest<'_> {
    let step = Step { history, prompt_tokens: 1, draw: Draw::default(), allowed: None };
    DraftRequest { sequence: SequenceId(sequence), salt: None, step, most, sampler: None }
}

fn proposals(draft: &mut DraftModel, requests: &[DraftRequest<'_>]) -> Vec<Vec<u32>> {
    pollster::block_on(draft.propose(requests)).expect("no step fails")
}

/// A greedy continuation, by the model's definition.
fn expected(history: &[u32], count: usize) -> Vec<u32> {
    model().greedy(history, count)
}

#[test]
fn proposes_its_own_continuation_whatever_was_accepted() {
    let counting = model();
    let steps = std::sync::Arc::clone(&counting.steps);
    let mut draft = draft(counting, 0.0);
    let mut history: Vec<u32> = (1..20).collect();
    let found = proposals(&mut draft, &[request(0, &history, 4)]);
    assert_eq!(found, [expected(&history, 4)]);
    // All accepted and one more; two accepted and another; none and another; nothing has changed.
    for accepted in [4, 2, 0] {
        let proposed = expected(&history, 4);
        history.extend_from_slice(&proposed[..accepted]);
        history.push(29);
        steps.lock().expect("steps").clear();
        assert_eq!(proposals(&mut draft, &[request(0, &history, 4)]), [expected(&history, 4)]);
        let rows = steps.lock().expect("steps").clone();
        // The last proposed token was not run before; the replacement follows.
        assert_eq!(rows, [if accepted == 4 { 2 } else { 1 }, 1, 1, 1], "{accepted} accepted");
    }
    assert_eq!(proposals(&mut draft, &[request(0, &history, 2)]), [expected(&history, 2)]);
    // Another text, without a word.
    let other: Vec<u32> = (3..12).collect();
    assert_eq!(proposals(&mut draft, &[request(0, &other, 3)]), [expected(&other, 3)]);
}

#[test]
fn sequences_share_steps_and_are_forgotten() {
    let counting = model();
    let steps = std::sync::Arc::clone(&counting.steps);
    let mut draft = draft(counting, 0.0);
    let texts: [&[u32]; 3] = [&[1, 2, 3], &[4], &[5, 6]];
    let requests = [request(7, texts[0], 3), request(8, texts[1], 1), request(9, texts[2], 2)];
    let found = proposals(&mut draft, &requests);
    let texts = [expected(texts[0], 3), expected(texts[1], 1), expected(texts[2], 2)];
    assert_eq!(found, texts);
    assert_eq!(*steps.lock().expect("steps"), [3 + 1 + 2, 2, 1]);
    for sequence in [7, 8, 9, 10] {
        draft.forget(SequenceId(sequence));
    }
    assert_eq!((draft.sequences.len(), draft.pool.high_water_blocks()), (0, 0));
}

#[test]
fn a_full_context_gets_no_more_proposals() {
    let mut draft = draft(FakeModel { context: 10, ..model() }, 0.0);
    let text: Vec<u32> = (0..12).collect();
    for (len, count) in [(8, 3), (9, 2), (10, 1), (11, 0), (12, 0)] {
        let found = proposals(&mut draft, &[request(0, &text[..len], 4), request(1, &[], 4)]);
        assert_eq!(found, [expected(&text[..len], count), vec![]], "{len} of 10 positions");
    }
}

#[test]
fn a_text_that_is_new_comes_in_parts_and_short_ones_first() {
    let counting = model();
    let steps = std::sync::Arc::clone(&counting.steps);
    let room = DraftRoom { blocks: 100, prefix_blocks: 0, rows: 10 };
    let greedy = Sampler::new(SamplerOptions::default()).expect("sound options");
    let mut draft = DraftModel::within(Box::new(counting), greedy, room);
    let (long, short): (Vec<u32>, [u32; 3]) = ((0..24).collect(), [7, 8, 9]);
    let asked = [request(0, &long, 2), request(1, &short, 2)];
    let after_short = expected(&short, 2);
    assert_eq!(proposals(&mut draft, &asked), [vec![], after_short.clone()]);
    assert_eq!(*steps.lock().expect("steps"), [7, 3, 1], "of the long one what is left of ten");
    // The last proposed token of the short one is run again, as nothing of it has stayed.
    assert_eq!(proposals(&mut draft, &asked), [vec![], after_short.clone()]);
    assert_eq!(proposals(&mut draft, &asked), [expected(&long, 2), after_short]);
}

#[test]
fn a_full_cache_gets_no_proposals_and_knows_what_was_there() {
    let counting = model();
    let steps = std::sync::Arc::clone(&counting.steps);
    let room = DraftRoom { blocks: 6, prefix_blocks: 6, rows: usize::MAX };
    let greedy = Sampler::new(SamplerOptions::default()).expect("sound options");
    let mut draft = DraftModel::within(Box::new(counting), greedy, room);
    let text: Vec<u32> = (0..17).collect();
    let asked = [request(0, &text, 2), request(1, &text[1..], 2)];
    assert_eq!(proposals(&mut draft, &asked), [expected(&text, 2), vec![]]);
    // Another sequence of the same text computes what comes after the full blocks.
    draft.retain(|sequence| sequence != SequenceId(0));
    steps.lock().expect("steps").clear();
    assert_eq!(proposals(&mut draft, &[request(2, &text, 2)]), [expected(&text, 2)]);
    assert_eq!(*steps.lock().expect("steps"), [1, 1]);
}

#[test]
fn a_step_that_fails_is_an_error_and_the_next_goes_well() {
    let mut draft = draft(FakeModel { fails_at: Some(1), ..model() }, 0.0);
    let text: Vec<u32> = (0..9).collect();
    let failed = pollster::block_on(draft.propose(&[request(0, &text, 3)]));
    assert!(matches!(failed, Err(Error::Model(_))));
    assert_eq!(proposals(&mut draft, &[request(0, &text, 3)]), [expected(&text, 3)]);
}

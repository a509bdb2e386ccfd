use std::{cmp::Reverse, time::Duration};

use setun_model::PagedCache;

use super::{
    super::{step_cost::StepCost, test_support::request},
    *,
};
use crate::{
    pooling::Pooling,
    sequence::{Pool, Sequence, TaskRequest},
};

const VOCABULARY: usize = 2;

/// Sequences of these prompts, each with a place in a cache, as if they had just been admitted.
fn running(prompts: &[usize]) -> Vec<Running> {
    let mut cache = PagedCache::new(4, 1000);
    let sequence = |(arrival, &tokens): (u64, &usize)| {
        let sequence = Sequence::new(request(vec![1; tokens], 8), arrival);
        Running { demands: true, ..Running::new(sequence, cache.create()) }
    };
    (1..).zip(prompts).map(sequence).collect()
}

/// The rows of each that a step plans within this many rows, 10 ms a row.
fn planned(running: &mut [Running], max_rows: usize) -> Vec<usize> {
    let mut step_cost = StepCost::default();
    step_cost.record(1, Duration::from_millis(10));
    let is_pooling = &mut false;
    let budget = Budget { max_rows, max_multi_steps: 8, step_cost: &step_cost, is_pooling };
    share_rows(running, &budget);
    running.iter().map(|running| running.rows).collect()
}

#[test]
fn a_sequence_that_decodes_has_one_row() {
    assert_eq!(planned(&mut running(&[1]), 64), [1]);
    assert_eq!(planned(&mut running(&[1, 1, 1]), 64), [1, 1, 1]);
}

#[test]
fn a_step_has_no_more_rows_than_the_model_takes() {
    assert_eq!(planned(&mut running(&[1, 1, 1]), 2), [1, 1, 0]);
    assert_eq!(planned(&mut running(&[9, 9]), 6).iter().sum::<usize>(), 6);
}

#[test]
fn who_demands_nothing_has_no_rows() {
    let mut running = running(&[1, 5]);
    for running in &mut running {
        running.demands = false;
    }
    assert_eq!(planned(&mut running, 64), [0, 0]);
}

#[test]
fn a_prompt_alone_has_the_whole_step_and_beside_decoding_the_time_of_one() {
    assert_eq!(planned(&mut running(&[40]), 64), [40]);
    if !cfg!(target_arch = "wasm32") {
        // 50 ms are five rows.
        assert_eq!(planned(&mut running(&[1, 40]), 64), [1, 5]);
        // One row takes longer than a step should; 64 read the weights once.
        let step_cost = &mut StepCost::default();
        step_cost.record(64, Duration::from_mins(10));
        let is_pooling = &mut false;
        let budget = Budget { max_rows: 512, max_multi_steps: 8, step_cost, is_pooling };
        let mut prompt = running(&[100]);
        share_rows(&mut prompt, &budget);
        assert_eq!(prompt[0].rows, 50, "two steps of like size");
    }
}

#[test]
fn a_short_prompt_passes_a_long_one_that_came_first() {
    let rows = planned(&mut running(&[400, 3]), 64);
    assert_eq!((rows[1], rows[0] + rows[1] <= 64), (3, true), "{rows:?}");
}

#[test]
fn a_long_prompt_is_cut_into_steps_of_like_size() {
    // 70 rows in two steps of 35, not in one of 64 and one of 6.
    assert_eq!(planned(&mut running(&[70]), 64), [35]);
}

#[test]
fn the_batch_has_a_run_of_tokens_for_each_sequence() {
    let mut running = running(&[3, 1]);
    running[0].sequence.commit_rows(1);
    planned(&mut running, 64);
    running[0].rows = 1; // less than its prompt
    let StepPlan { batch, prompt_rows, .. } = StepPlan::new(&mut running, None, VOCABULARY);
    let rows: Vec<_> = batch.rows.iter().map(|row| (row.position, row.sequence)).collect();
    assert_eq!(rows, [(1, running[0].kv_slot), (0, running[1].kv_slot)]);
    assert_eq!(prompt_rows, 1, "decoding rows are none of a prompt");
    assert_eq!(batch.rows[0].output, RequestedOutput::Nothing, "its prompt goes on");
    assert_eq!((batch.rows[1].output.clone(), batch.wanted()), (RequestedOutput::Logits, 1));
}

#[test]
fn drafted_tokens_are_rows_behind_the_pending_one() {
    let mut running = running(&[1]);
    planned(&mut running, 64);
    running[0].draft = vec![(1, RequestedOutput::Logits), (0, RequestedOutput::Logits)];
    let StepPlan { batch, .. } = StepPlan::new(&mut running, None, VOCABULARY);
    let rows: Vec<_> = batch.rows.iter().map(|row| (row.token, row.position)).collect();
    assert_eq!((rows, batch.wanted()), (vec![(1, 0), (0, 1)], 2));
}

#[test]
fn lower_priorities_and_later_arrivals_are_preempted_first() {
    let running = running(&[1, 1]);
    assert_eq!(running[0].preemption_order(), (Reverse(0), 1));
    assert!(running[0].preemption_order() < running[1].preemption_order());
}

#[test]
fn the_model_chooses_alone_where_all_are_greedy_and_for_no_more_tokens_than_are_left() {
    let steps = |running: &mut [Running]| {
        let mut step_cost = StepCost::default();
        for _ in 0..9 {
            step_cost.record_multi_step(1, Duration::from_millis(1), 16);
        }
        let is_pooling = &mut false;
        plan_step(
            running,
            &mut Budget { max_rows: 64, max_multi_steps: 16, step_cost: &step_cost, is_pooling },
        )
    };
    assert_eq!(steps(&mut running(&[1, 1])), Some(8), "all that they may have");
    assert_eq!(steps(&mut running(&[1, 2])), Some(1), "a prompt is under way");
    let mut with_logprobs = request(vec![1], 8);
    with_logprobs.logprobs = true;
    let mut both = running(&[1]);
    let kv_slot = both[0].kv_slot;
    both.push(Running::new(Sequence::new(with_logprobs, 2), kv_slot));
    assert_eq!(steps(&mut both), None);
}

#[test]
fn hidden_states_and_logits_take_turns() {
    let (reply, _) = futures::channel::oneshot::channel();
    let mut pooled = request(vec![1; 3], 0);
    pooled.task = TaskRequest::Embed(Pool::new(Pooling::Last, reply));
    let mut both = running(&[1]);
    let kv_slot = both[0].kv_slot;
    both.push(Running::new(Sequence::new(pooled, 2), kv_slot));
    let (step_cost, is_pooling) = (StepCost::default(), &mut false);
    let mut budget = Budget { max_rows: 64, max_multi_steps: 0, step_cost: &step_cost, is_pooling };
    for expected in [[0, 3], [1, 0], [0, 3]] {
        plan_step(&mut both, &mut budget);
        assert_eq!([both[0].rows, both[1].rows], expected);
    }
    both.truncate(1);
    plan_step(&mut both, &mut budget);
    assert_eq!(both[0].rows, 1, "every step where there is one kind");
}

//! Batches and caches of one replica, by hand.

use super::*;
use crate::trace::{Request, prepare};

/// A millisecond a row.
fn costs() -> StepCosts {
    let line = vec![(1, 1.0), (1000, 1000.0)];
    StepCosts { name: String::new(), decode: line.clone(), prefill: line }
}

fn limits(cache: u32) -> Limits {
    Limits { cache, prefix: cache, ..Limits::default() }
}

fn trace(prompts: &[(&str, u32, u32)]) -> Vec<Prepared> {
    let request = |&(id, tokens, output): &(&str, u32, u32)| {
        let prompt = vec![(id.to_owned(), tokens)];
        Request { at_ms: 0, key: id.to_owned(), prompt, output }
    };
    let requests: Vec<_> = prompts.iter().map(request).collect();
    prepare(&requests, 1000, false).expect("room")
}

/// All steps until nothing is left: their times and their events.
fn run(replica: &mut Replica, trace: &[Prepared]) -> (Vec<f64>, Vec<ReplicaEvent>) {
    let (mut steps, mut events) = (vec![], vec![]);
    while let Some(step) = replica.begin(trace, &costs(), &mut events) {
        steps.push(step);
        replica.end(trace, &mut events);
    }
    (steps, events)
}

#[test]
fn a_prompt_and_its_tokens_take_their_steps() {
    let (trace, mut replica) = (trace(&[("a", 40, 3)]), Replica::new(limits(128)));
    replica.enqueue(0);
    let (steps, events) = run(&mut replica, &trace);
    assert_eq!(steps, [40.0, 1.0, 1.0]);
    let request = 0;
    let started = ReplicaEvent::Started { request, cached: 0 };
    assert_eq!(
        events,
        [started, ReplicaEvent::FirstToken { request }, ReplicaEvent::Ended { request }]
    );
    assert_eq!((replica.computed, replica.recomputed, replica.open()), (40, 0, 0));
}

#[test]
fn whole_blocks_are_reused_and_the_last_token_is_computed() {
    let trace = trace(&[("a", 64, 1), ("a", 64, 1), ("a", 65, 1), ("a", 31, 1)]);
    let mut replica = Replica::new(limits(128));
    let cached: Vec<_> = (0..4)
        .map(|request| {
            replica.enqueue(request);
            let (_, events) = run(&mut replica, &trace);
            let ReplicaEvent::Started { cached, .. } = events[0] else { panic!("{events:?}") };
            cached
        })
        .collect();
    assert_eq!(cached, [0, 32, 64, 0]);
    assert_eq!(replica.computed, 64 + 32 + 1 + 31);
}

#[test]
fn a_prompt_waits_for_the_one_that_it_shares_a_block_with() {
    let trace = trace(&[("a", 100, 2), ("a", 100, 2), ("b", 10, 2)]);
    let mut replica = Replica::new(limits(512));
    (0..3).for_each(|request| replica.enqueue(request));
    let (steps, events) = run(&mut replica, &trace);
    let started = events.iter().filter_map(|event| match event {
        ReplicaEvent::Started { request, cached } => Some((*request, *cached)),
        _ => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [(0, 0), (2, 0), (1, 96)], "the third passes");
    assert_eq!(steps, [110.0, 6.0, 1.0]);
}

#[test]
fn a_decoding_request_bounds_the_rows_of_a_prompt() {
    let trace = trace(&[("a", 32, 9), ("b", 200, 1)]);
    let mut replica = Replica::new(limits(512));
    replica.enqueue(0);
    let mut events = vec![];
    assert_eq!(replica.begin(&trace, &costs(), &mut events), Some(32.0));
    replica.end(&trace, &mut events);
    replica.enqueue(1);
    let (steps, _) = run(&mut replica, &trace);
    assert_eq!(steps[..4], [51.0, 51.0, 51.0, 51.0], "four parts of 50 rows");
}

#[test]
fn where_blocks_run_out_the_last_request_begins_again() {
    // Room for two blocks each. After 24 tokens the first takes a third.
    let trace = trace(&[("a", 40, 30), ("b", 34, 30)]);
    let mut replica = Replica::new(limits(128));
    (0..2).for_each(|request| replica.enqueue(request));
    let (steps, events) = run(&mut replica, &trace);
    assert_eq!(
        events[4..],
        [ReplicaEvent::Ended { request: 0 }, ReplicaEvent::Ended { request: 1 }]
    );
    assert_eq!((replica.preemptions, replica.computed), (1, 74));
    // Of its 58 tokens a whole block is found again, and the 59th follows.
    assert_eq!(replica.recomputed, 26);
    assert_eq!(steps[..25], [&[74.0][..], &[2.0; 24]].concat());
    assert_eq!(steps[25..], [&[1.0; 5][..], &[27.0], &[1.0; 4]].concat()[..]);
}

#[test]
fn only_so_many_requests_run_at_once() {
    let trace = trace(&[("a", 10, 2), ("b", 10, 2), ("c", 10, 2)]);
    let limits = Limits { max_concurrent: 2, ..limits(512) };
    let mut replica = Replica::new(limits);
    (0..3).for_each(|request| replica.enqueue(request));
    let (steps, _) = run(&mut replica, &trace);
    assert_eq!(steps, [20.0, 2.0, 10.0, 1.0]);
}

//! The scheduler over models that fail or wait.

use std::{panic::resume_unwind, sync::mpsc};

use futures::channel::{mpsc::UnboundedSender, oneshot};
use setun_model::{ModelError, PagedCache};
use setun_ops::OpsError;

use super::{
    test_support::{BLOCKS, failure, generate, info, limits, request, spawn, zeros},
    *,
};
use crate::ErrorCode;

/// A scheduler on a thread of its own, as an engine has it.
fn scheduler(
    before: impl FnMut(&PagedCache) -> Result<(), ModelError> + Send + 'static,
) -> UnboundedSender<Command> {
    spawn(Scheduler::new(Box::new(zeros(before)), info(), limits(BLOCKS)))
}

#[test]
fn a_panic_of_the_owner_ends_every_stream_with_an_error() {
    let mut steps = 0;
    let commands = scheduler(move |_| {
        steps += 1;
        // Without a word on standard error.
        if steps < 6 { Ok(()) } else { resume_unwind(Box::new("on purpose")) }
    });
    // The third waits until one of the others has ended.
    let streams = [8, 8, 20].map(|tokens| generate(&commands, (5, tokens)));
    for stream in streams {
        let (tokens, error) = failure(stream);
        assert!(tokens < 8, "{tokens}");
        assert_eq!(error.code(), ErrorCode::Disposed);
    }
    assert!(matches!(failure(generate(&commands, (5, 1))), (0, Error::Disposed)));
}

#[test]
fn refused_memory_ends_those_that_ran_and_no_later_ones() {
    // As a model whose cache cannot grow beyond four blocks.
    let commands = scheduler(|cache| match cache.high_water_blocks() {
        0..=4 => Ok(()),
        _ => Err(OpsError::OutOfMemory { what: "a cache", bytes: 1 }.into()),
    });
    for _ in 0..2 {
        // 5 + 12 positions are one more than four blocks hold; the last token is never cached.
        let (tokens, error) = failure(generate(&commands, (5, 13)));
        assert_eq!((tokens, error.code()), (12, ErrorCode::OutOfMemory));
        let done = generate(&commands, (5, 12)).wait().expect("it fits");
        assert_eq!(done.tokens, [0; 12]);
    }
}

#[test]
fn dropping_a_stream_while_its_token_is_computed_frees_its_cache() {
    let (entered, enters) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let commands = scheduler(move |cache| {
        let _ = entered.send(cache.free_blocks());
        let _ = goes.recv(); // an error lets every further step pass
        Ok(())
    });
    let stream = generate(&commands, (1, 20));
    assert_eq!(enters.recv(), Ok(BLOCKS - 1));
    drop(stream);
    let next = generate(&commands, (1, 2));
    go.send(()).expect("the owner waits");
    assert_eq!(enters.recv(), Ok(BLOCKS - 1), "the first one's blocks are free again");
    drop(go);
    assert_eq!(next.wait().expect("a text").tokens, [0; 2]);
}

#[test]
fn a_profile_separates_prefill_from_decode() {
    let commands = scheduler(|_| Ok(()));
    let profile = |profiled| {
        let (reply, profile) = oneshot::channel();
        commands
            .unbounded_send(Command::Profile { profiled, timeline: None, reply })
            .expect("an owner");
        pollster::block_on(profile).expect("a reply")
    };
    assert_eq!(profile(true), None);
    // The prompt, which gives the first token, then three.
    generate(&commands, (5, 4)).wait().expect("a text");
    let found = profile(true).expect("steps were timed");
    assert_eq!((found.prefill.steps.steps, found.prefill.steps.rows), (1, 5));
    assert_eq!((found.decode.steps.steps, found.decode.steps.rows), (3, 3));
    assert_eq!(profile(false), None, "begun anew, and nothing ran since");
    generate(&commands, (5, 4)).wait().expect("a text");
    assert_eq!(profile(false), None, "no longer");
}

#[test]
fn a_request_that_gathers_others_starts_or_has_an_alarm() {
    let wait = Duration::from_secs(9);
    let nearly = Duration::from_nanos(8_999_999_999);
    let found = [Duration::ZERO, nearly, wait].map(|passed| {
        let limits = Limits { wait, ..limits(BLOCKS) };
        let mut scheduler = Scheduler::new(Box::new(zeros(|_| Ok(()))), info(), limits);
        let request = request(vec![1], 1);
        let now = request.arrival_time + passed;
        scheduler.queue.enqueue(request, 64);
        scheduler.admit(now);
        (scheduler.running.len(), scheduler.alarm(now))
    });
    assert_eq!(found, [(0, Some(wait)), (0, Some(Duration::from_millis(1))), (1, None)]);
}

#[test]
fn a_request_that_may_wait_no_longer_computes_again_what_another_does() {
    let found = [None, Some(Duration::ZERO)].map(|queue_timeout| {
        let limits = Limits { prefix_blocks: BLOCKS, ..limits(BLOCKS) };
        let mut scheduler = Scheduler::new(Box::new(zeros(|_| Ok(()))), info(), limits);
        let mut later = request(vec![1; 6], 1);
        later.queue_timeout = queue_timeout;
        let now = later.arrival_time;
        for request in [request(vec![1; 6], 1), later] {
            scheduler.queue.enqueue(request, 64);
        }
        scheduler.admit(now);
        scheduler.running.len()
    });
    assert_eq!(found, [1, 2]);
}

#[test]
fn a_tenant_has_a_share_of_the_places_and_its_priority_displaces_nobody_elses() {
    let limits = Limits { max_concurrent: 4, ..limits(BLOCKS) };
    let mut scheduler = Scheduler::new(Box::new(zeros(|_| Ok(()))), info(), limits);
    let now = request(vec![1], 1).arrival_time;
    let enqueue = |scheduler: &mut Scheduler, tenant, priority| {
        let mut request = request(vec![1], 9);
        (request.tenant, request.priority) = (Some(tenant), priority);
        scheduler.queue.enqueue(request, 64);
        scheduler.admit(now);
    };
    let running = |scheduler: &Scheduler| {
        let tenants = scheduler.running.iter().map(|running| running.sequence.tenant());
        tenants.map(|tenant| tenant.expect("a tenant")).collect::<Vec<_>>()
    };
    for _ in 0..5 {
        enqueue(&mut scheduler, 1, 0);
    }
    assert_eq!(running(&scheduler), [1, 1, 1], "the fourth place is for others");
    enqueue(&mut scheduler, 2, 0);
    assert_eq!(running(&scheduler), [1, 1, 1, 2]);
    enqueue(&mut scheduler, 3, 1000);
    assert_eq!(running(&scheduler), [1, 1, 1, 2], "no open stream of another is paused");
    enqueue(&mut scheduler, 2, 1);
    assert_eq!(running(&scheduler), [1, 1, 1, 2], "it has its turn, and then its own order");
    assert_eq!(scheduler.queue.count(), 4);
}

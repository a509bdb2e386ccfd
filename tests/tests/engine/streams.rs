//! Many streams on a real model: one prompt computed once, memory given up and taken back, time
//! that is over, a queue that is full.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use futures::executor::block_on;
use setun::{
    Clock, Engine, EngineMetrics, ErrorCode, Event, FinishReason, GenerateOptions,
    GenerationStream, Model,
};
use setun_tests::{fixture, long_or};

use super::{BUFFER, MODEL, engine, engine_with_clock, greedy, sampled};

fn metrics(engine: &Engine) -> EngineMetrics {
    block_on(engine.metrics()).expect("an engine")
}

/// Waits until a stream that nobody reads has filled its buffer, and shows that it pauses then:
/// between two answers of an engine there is a step, if there is anything to do.
pub(crate) fn pause(engine: &Engine) {
    while metrics(engine).tokens < BUFFER as u64 {}
    for _ in 0..100 {
        let told = metrics(engine);
        assert_eq!((told.tokens, told.running), (BUFFER as u64, 1), "it waits");
    }
}

/// Tokens of a stream and how it ended, as far as it came.
fn read(stream: GenerationStream) -> (Vec<u32>, Result<FinishReason, ErrorCode>) {
    read_and(stream, || ())
}

/// The same; something is done at the third token.
fn read_and(
    stream: GenerationStream,
    at_third: impl Fn(),
) -> (Vec<u32>, Result<FinishReason, ErrorCode>) {
    let mut tokens = vec![];
    for event in stream.blocking() {
        match event {
            Ok(Event::Progress(_) | Event::Prompt(_)) => {}
            Ok(Event::Text(delta)) => {
                tokens.push(delta.token);
                if tokens.len() == 3 {
                    at_third();
                }
            }
            Ok(Event::Done(done)) => return (tokens, Ok(done.finish_reason)),
            Err(error) => return (tokens, Err(error.code())),
        }
    }
    panic!("a stream without an end");
}

#[test]
fn a_long_prompt_reports_how_much_of_it_is_computed() {
    let long: Vec<u32> = (0..200).map(|at| at * 7 % 500).collect();
    let engine = engine();
    let plain = engine.complete(long.clone(), greedy(3)).expect("a story");
    engine.reset_prefix_cache().expect("an engine");
    let stream = engine.generate(long.clone(), greedy(3).prompt_progress(true)).expect("a stream");
    let (mut steps, mut tokens) = (vec![], vec![]);
    for event in stream.blocking() {
        match event.expect("an event") {
            Event::Progress(progress) => {
                assert_eq!((progress.prompt_tokens, tokens.len()), (200, 0));
                steps.push(progress.computed_tokens);
            }
            Event::Text(delta) => tokens.push(delta.token),
            Event::Prompt(_) | Event::Done(_) => {}
        }
    }
    assert_eq!(tokens, plain.tokens);
    // A slow reader finds the latest of several.
    assert!(steps.is_sorted_by(|one, next| one < next), "{steps:?}");
    assert_eq!(steps.last(), Some(&200));
}

#[test]
fn a_prompt_that_begins_as_another_is_computed_from_where_they_differ() {
    let engine = engine();
    let long: Vec<u32> = (0..200).map(|at| at * 7 % 500).collect();
    let first = engine.complete(long.clone(), sampled(1)).expect("a story");
    let before = metrics(&engine);
    assert_eq!((before.cached_prompt_tokens, before.rows), (0, 200 + 39));
    assert_eq!(engine.complete(long.clone(), sampled(1)).expect("a story").tokens, first.tokens);
    let after = metrics(&engine);
    // Six blocks of 32 positions.
    assert_eq!((after.cached_prompt_tokens, after.rows - before.rows), (192, 8 + 39));

    // A conversation goes on from what was said: 238 positions are there, seven blocks full.
    let mut next = long;
    next.extend(&first.tokens);
    next.extend([5, 6, 7]);
    engine.complete(next.clone(), sampled(2)).expect("a story");
    assert_eq!(metrics(&engine).cached_prompt_tokens, 192 + 224);
    let fresh = super::engine().complete(next.clone(), sampled(2)).expect("a story");
    assert_eq!(engine.complete(next, sampled(2)).expect("a story").tokens, fresh.tokens);

    engine.reset_prefix_cache().expect("an engine");
    let forgotten = metrics(&engine);
    assert_eq!((forgotten.used_blocks, forgotten.cached_blocks), (0, 0));
}

#[test]
fn what_requests_of_the_same_moment_share_is_computed_once() {
    let engine = engine();
    let prompt =
        |tail: u32| (0..320).map(|at| at * 7 % 500).chain([tail, 3, tail]).collect::<Vec<u32>>();
    let alone = super::engine();
    let streams = (0..5).map(|tail| engine.generate(prompt(tail), greedy(9)).expect("a stream"));
    for (tail, stream) in (0..).zip(streams.collect::<Vec<_>>()) {
        let expected = alone.complete(prompt(tail), greedy(9)).expect("a story").tokens;
        assert_eq!(read(stream), (expected, Ok(FinishReason::Length)));
    }
    let metrics = metrics(&engine);
    assert_eq!((metrics.rows, metrics.cached_prompt_tokens), (320 + 5 * (3 + 8), 4 * 320));
}

#[test]
fn an_engine_that_keeps_no_prefixes_computes_them_again() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine = Engine::builder(model).prefix_positions(0).build().expect("an engine");
    for _ in 0..2 {
        engine.complete(vec![3; 100], greedy(5)).expect("a story");
    }
    let metrics = metrics(&engine);
    assert_eq!((metrics.cached_prompt_tokens, metrics.rows, metrics.cached_blocks), (0, 208, 0));
}

#[test]
fn samples_share_their_prompt_and_are_what_they_are_alone() {
    let engine = engine();
    let prompt: Vec<u32> = (0..90).map(|at| at * 11 % 500).collect();
    let options = || GenerateOptions::new().temperature(1.0).seed(7).max_tokens(20);
    let streams = engine.generate_many(prompt.clone(), options(), 5).expect("streams");
    let tokens: Vec<_> = streams.into_iter().map(|stream| read(stream).0).collect();
    let expected: usize = tokens.iter().map(|tokens| tokens.len() - 1).sum();
    assert_eq!(metrics(&engine).rows, 90 + expected as u64, "the prompt once");
    let alone = engine.complete(prompt.clone(), options()).expect("a story").tokens;
    assert_eq!(tokens[0], alone);
    assert!(tokens[1..].iter().all(|tokens| *tokens != alone), "each draws for itself");

    for count in [0, 65] {
        let refused =
            engine.generate_many(prompt.clone(), options(), count).expect_err("none, too many");
        assert_eq!(refused.code(), ErrorCode::BadOption);
    }
}

#[test]
fn time_that_is_over_ends_a_generation_with_what_it_has() {
    let (engine, clock) = engine_with_clock();
    let time = Duration::from_millis(80);
    let unread = engine.generate("Once", greedy(300).timeout(time)).expect("a stream");
    let over = greedy(300).timeout(Duration::ZERO);
    let (tokens, end) = read(engine.generate("Once", over).expect("a stream"));
    assert_eq!((tokens.len(), end), (0, Ok(FinishReason::Timeout)));
    // Nobody reads the other, so it pauses, and ends though nobody says so.
    pause(&engine);
    clock.advance(time / 2);
    assert_eq!(metrics(&engine).running, 1);
    clock.advance(time / 2);
    while metrics(&engine).running > 0 {}
    let (tokens, end) = read(unread);
    assert_eq!((tokens.len(), end), (BUFFER, Ok(FinishReason::Timeout)));
    let whole = engine.complete("Once", greedy(300)).expect("a story").tokens;
    assert!(whole.starts_with(&tokens));
}

#[test]
fn a_full_queue_refuses_and_takes_again() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine = Engine::builder(model).max_concurrent(1).queue(2).build().expect("an engine");
    // Nobody reads them, so each keeps its slot.
    let running = engine.generate("Once", greedy(400)).expect("a stream");
    while metrics(&engine).running == 0 {}
    let waiting: Vec<_> =
        (0..40).map(|_| engine.generate("The dog", greedy(400))).collect::<Vec<_>>();
    let refused = waiting.iter().filter_map(|stream| stream.as_ref().err());
    let refused: Vec<_> = refused.map(setun::EngineError::code).collect();
    assert_eq!(refused, [ErrorCode::Busy; 38], "two wait");
    drop(waiting);
    drop(running);
    assert_eq!(metrics(&engine).waiting, 0); // the engine has seen that they left
    assert_eq!(engine.complete("The dog", greedy(4)).expect("a story").tokens.len(), 4);
}

#[test]
fn an_idle_engine_waits_for_a_batch() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let wait = Duration::from_mins(10);
    let engine =
        Engine::builder(model).max_concurrent(3).batch_wait(wait).build().expect("an engine");
    let streams: Vec<_> =
        (0..3).map(|_| engine.generate(vec![1, 2, 3], greedy(5)).expect("a stream")).collect();
    for stream in streams {
        assert_eq!(read(stream).0.len(), 5);
    }
    // All prompts are in the first step: nobody began before the batch was full.
    assert_eq!(metrics(&engine).steps, 5);
}

/// Streams (64 in the long run) with 256 tokens and more over a cache for two contexts of 512: some are cancelled,
/// some dropped, some read late, some out of time. The others say what they say alone.
#[test]
fn many_streams_over_little_memory_end_as_they_should() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let clock = Clock::held();
    let engine = Engine::builder(model).contexts(2).clock(clock.clone());
    let engine = engine.build().expect("an engine");
    let prompt =
        |at: u32| -> Vec<u32> { (0..20 + at % 7 * 30).map(|i| i * (at % 3 + 3) % 500).collect() };
    let options = |at: u32| {
        let options = GenerateOptions::new()
            .temperature(0.9)
            .seed(at.into())
            .max_tokens(40 + at as usize % 5 * 30);
        if at % 16 == 5 { options.timeout(Duration::from_secs(at.into())) } else { options }
    };
    let count = long_or(64, 32);
    let others =
        Arc::new(Barrier::new((0..count).filter(|at| !matches!(at % 16, 1 | 2 | 4 | 5)).count()));
    let readers: Vec<_> = (0..count)
        .map(|at: u32| {
            let stream = engine.generate(prompt(at), options(at)).expect("a stream");
            let (others, clock) = (Arc::clone(&others), clock.clone());
            thread::spawn(move || {
                let cancel = stream.cancel_handle();
                match at % 16 {
                    1 => cancel.cancel(),
                    2 => return (vec![], Ok(FinishReason::Aborted)), // dropped
                    3 => drop(others.wait()),                        // until the others have ended
                    4 => return read_and(stream, || cancel.cancel()),
                    5 => return read_and(stream, || clock.advance(Duration::from_secs(at.into()))),
                    _ => {}
                }
                let found = read(stream);
                if !matches!(at % 16, 1 | 3) {
                    others.wait();
                }
                found
            })
        })
        .collect();
    let found: Vec<_> =
        readers.into_iter().map(|reader| reader.join().expect("no panic")).collect();
    let after = metrics(&engine);
    assert_eq!((after.waiting, after.running, after.used_blocks), (0, 0, 0));
    assert!(after.preemptions > 0, "memory was short: {after:?}");

    let alone = super::engine();
    for (at, (tokens, end)) in (0..count).zip(found) {
        let whole = alone.complete(prompt(at), options(at).timeout(Duration::from_hours(1)));
        let whole = whole.expect("a story");
        assert!(whole.tokens.starts_with(&tokens), "stream {at}");
        match (at % 16, end.expect("no error")) {
            (1 | 2, reason) => assert_eq!(reason, FinishReason::Aborted),
            (4, FinishReason::Aborted) | (5, FinishReason::Timeout) => {}
            (_, reason) => {
                assert_eq!((reason, tokens.len()), (whole.done.finish_reason, whole.tokens.len()));
            }
        }
    }
    engine.reset_prefix_cache().expect("an engine");
    assert_eq!(metrics(&engine).cached_blocks, 0);
}

#[test]
fn a_session_is_forked_saved_and_restored_to_the_same_bits() {
    let one = engine();
    let mut session = one.session();
    session.push("Once upon a time").expect("text");
    session
        .push(" there was a little dog who lived in a big red house by the sea and")
        .expect("text");
    let said = session.generate(sampled(1)).expect("a stream").wait().expect("a story");
    session.push(said.tokens).expect("tokens");
    let fork = session.clone();
    session.push(" Tom").expect("text");
    let blocks = session.tokens().len() / 32;
    assert!(blocks >= 2, "{} tokens", session.tokens().len());
    // The end of it was not computed yet.
    let bytes = block_on(session.save()).expect("bytes");
    let ends = [&session, &fork].map(|session| {
        session.generate(sampled(2)).expect("a stream").wait().expect("a story").tokens
    });

    // On other threads and levels the bits are the same, so are the blocks.
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let other = Engine::builder(model).threads(3).build().expect("an engine");
    let restored = block_on(other.restore(bytes.clone())).expect("a session");
    assert_eq!(restored.tokens(), session.tokens());
    let tokens = restored.generate(sampled(2)).expect("a stream").wait().expect("a story").tokens;
    assert_eq!(tokens, ends[0]);
    let found = metrics(&other);
    assert!(found.cached_prompt_tokens >= 32, "{found:?}");
    assert_eq!(block_on(restored.save()).expect("bytes")[..16], bytes[..16]);

    // Of damaged bytes nothing is in the cache.
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let third = Engine::builder(model).build().expect("an engine");
    let mut damaged = bytes.clone();
    damaged[bytes.len() - 33] ^= 1;
    let error = block_on(third.restore(damaged)).expect_err("another last byte of the blocks");
    assert_eq!(error.code(), ErrorCode::BadCheckpoint);
    third
        .generate(session.tokens().to_vec(), sampled(2))
        .expect("a stream")
        .wait()
        .expect("a story");
    assert_eq!(metrics(&third).cached_prompt_tokens, 0);

    // Of another type of cache they would be other bits.
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let wide = Engine::builder(model).cache_type(setun::CacheType::F32).build().expect("an engine");
    let restored = block_on(wide.restore(bytes.as_slice())).expect("a session");
    restored.generate(sampled(2)).expect("a stream").wait().expect("a story");
    assert_eq!(metrics(&wide).cached_prompt_tokens, 0);

    let error = block_on(one.restore(&bytes[..bytes.len() - 1])).expect_err("cut");
    assert_eq!(error.code(), ErrorCode::BadCheckpoint);
    assert!(engine().session().generate(greedy(1)).is_err(), "no tokens yet");
    let mut cut = fork.clone();
    cut.truncate(3);
    assert_eq!(cut.tokens(), &fork.tokens()[..3]);
}

/// Texts that repeat their prompts, and others; greedy, sampled, with penalties and with a stop.
#[test]
fn guessed_tokens_change_no_text() {
    let engine = engine();
    let story = "Lily had a big red ball. She liked to play with the ball. ".repeat(4);
    let prompts = [story.as_str(), "Once upon a time", "The dog", "A big cat sat. A big cat sat."];
    let options = [
        greedy(60),
        greedy(60).repetition_penalty(1.2).logprobs(true),
        greedy(60).no_repeat_ngram(3),
        sampled(3).max_tokens(60),
        GenerateOptions::new().temperature(0.4).mirostat_tau(3.0).seed(5).max_tokens(60),
        greedy(60).stop(["play"]),
    ];
    let before = metrics(&engine);
    for prompt in prompts {
        let plain = options.iter().map(|options| engine.complete(prompt, options.clone()));
        let plain: Vec<_> = plain.map(|text| text.expect("a story")).collect();
        for lookahead in [1, 5, 12] {
            let streams = options.iter().map(|options| {
                engine.generate(prompt, options.clone().lookahead(lookahead)).expect("a stream")
            });
            let streams: Vec<_> = streams.collect();
            for (stream, plain) in streams.into_iter().zip(&plain) {
                let found = stream.wait().expect("a story");
                assert_eq!((&found.text, &found.tokens), (&plain.text, &plain.tokens));
                assert_eq!(found.done.stop, plain.done.stop);
            }
        }
    }
    let after = metrics(&engine);
    assert_eq!(before.draft_tokens, 0);
    assert!(after.accepted_tokens > 50, "many are right: {after:?}");
    assert!(after.accepted_tokens < after.draft_tokens, "some are wrong: {after:?}");
}

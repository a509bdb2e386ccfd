//! The engine on a real trained model: text against an independent implementation, several
//! streams at once, stopping in every way, and errors that leave the engine usable.

mod activation_groups;
mod beams;
mod constraints;
mod contexts;
mod drafts;
mod embeddings;
mod filters;
mod hybrid;
mod pressure;
mod resumed;
mod salts;
mod schemas;
mod scoring;
mod screened_head;
mod simulated_cache;
mod streams;
mod tools;
mod xml_tools;

use std::{collections::BTreeMap, fs};

use futures::{StreamExt, executor::block_on};
use serde::Deserialize;
use setun::{
    CacheType, Clock, Completion, Engine, ErrorCode, Event, FinishReason, GenerateOptions, Message,
    Model, Prompt, Usage,
};
use setun_tests::{fixture, run::devices};

const MODEL: &str = "golden/real-tinystories-1m";

/// Events of a stream that wait for its reader, after which it waits itself.
const BUFFER: usize = 64;

#[derive(Deserialize)]
struct Story {
    prompt: String,
    prompt_ids: Vec<u32>,
    greedy_ids: Vec<u32>,
    text: String,
}

fn stories() -> BTreeMap<String, Story> {
    let json = fs::read(fixture(MODEL).join("golden.json")).expect("golden.json");
    serde_json::from_slice(&json).expect("golden.json")
}

fn engine() -> Engine {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    Engine::builder(model).build().expect("an engine")
}

/// One whose time stands still until its clock is moved.
fn engine_with_clock() -> (Engine, Clock) {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let clock = Clock::held();
    let engine = Engine::builder(model).clock(clock.clone()).build().expect("an engine");
    (engine, clock)
}

fn greedy(tokens: usize) -> GenerateOptions {
    GenerateOptions::new().temperature(0.0).max_tokens(tokens)
}

fn sampled(seed: u64) -> GenerateOptions {
    GenerateOptions::new().temperature(0.9).top_k(50).seed(seed).max_tokens(40)
}

#[test]
fn greedy_stories_are_those_of_the_reference() {
    for device in devices() {
        let model = Model::open(fixture(MODEL)).expect("the story model");
        let builder = Engine::builder(model).device(device.clone()).cache_type(CacheType::F32);
        let engine = builder.build().expect("an engine");
        for (name, story) in stories() {
            let prompt = Prompt::Text(story.prompt.clone());
            assert_eq!(engine.tokenize(&story.prompt).expect("tokens"), story.prompt_ids);
            let found = engine.complete(prompt, greedy(story.greedy_ids.len())).expect("a story");
            assert_eq!(found.tokens, story.greedy_ids, "{name} on {device}");
            // The reference decodes the answer alone, which drops its leading space.
            assert_eq!(found.text.trim_start(), story.text.trim_start(), "{name} on {device}");
        }
    }
}

#[test]
fn deltas_joined_are_what_the_answer_adds() {
    let engine = engine();
    for seed in 0..20 {
        let prompt = "Tom had a red";
        let found = engine.complete(prompt, sampled(seed)).expect("a story");
        let mut tokens = engine.tokenize(prompt).expect("tokens");
        let before = engine.detokenize(&tokens).expect("text");
        tokens.extend(&found.tokens);
        let after = engine.detokenize(&tokens).expect("text");
        assert_eq!(format!("{before}{}", found.text), after);
    }
}

#[test]
fn streams_at_once_say_what_they_say_alone() {
    let engine = engine();
    let prompts = ["Once upon a time", "The dog", "Lily and Tom were", "A big"];
    let alone: Vec<Completion> = prompts
        .iter()
        .zip(0..)
        .map(|(prompt, seed)| engine.complete(*prompt, sampled(seed)).expect("a story"))
        .collect();
    let streams = prompts
        .iter()
        .zip(0..)
        .map(|(prompt, seed)| engine.generate(*prompt, sampled(seed)).expect("a stream"));
    let streams: Vec<_> = streams.collect();
    for (stream, alone) in streams.into_iter().zip(alone) {
        let together = stream.wait().expect("a story");
        assert_eq!(together.text, alone.text);
        assert_eq!(together.tokens, alone.tokens);
        let tokens = |usage: Usage| (usage.prompt_tokens, usage.completion_tokens);
        assert_eq!(tokens(together.done.usage), tokens(alone.done.usage));
    }
}

#[test]
fn more_requests_than_fit_wait_their_turn() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine = Engine::builder(model).contexts(1).build().expect("an engine");
    let full = || GenerateOptions::new().temperature(0.0);
    let streams: Vec<_> =
        (0..3).map(|_| engine.generate("The dog", full()).expect("a stream")).collect();
    let texts: Vec<_> =
        streams.into_iter().map(|stream| stream.wait().expect("a story").text).collect();
    assert!(!texts[0].is_empty() && texts.iter().all(|text| *text == texts[0]));
}

#[test]
fn a_seed_gives_its_text_again_and_is_reported() {
    let engine = engine();
    let options = || GenerateOptions::new().temperature(1.0).max_tokens(30);
    let first = engine.complete("Once", options()).expect("a story");
    let again = engine.complete("Once", options().seed(first.done.seed)).expect("a story");
    assert_eq!(first.text, again.text);
    let others = (0..5).map(|seed| engine.complete("Once", options().seed(seed)).expect("ok").text);
    assert!(others.into_iter().any(|text| text != first.text), "seeds matter");
}

#[test]
fn a_stop_string_ends_the_text_and_is_not_part_of_it() {
    let engine = engine();
    let whole = engine.complete("Once upon a time", greedy(40)).expect("a story");
    let stop = &whole.text[10..14];
    let at = whole.text.find(stop).expect("it is there");
    let found = engine.complete("Once upon a time", greedy(40).stop([stop])).expect("a story");
    assert_eq!(found.text, whole.text[..at]);
    assert_eq!(found.done.finish_reason, FinishReason::Stop);
    assert_eq!(found.done.stop.as_deref(), Some(stop));
    let never = engine.complete("Once upon a time", greedy(40).stop(["never said"])).expect("ok");
    assert_eq!((never.text, never.done.finish_reason), (whole.text, FinishReason::Length));
}

#[test]
fn a_stop_token_ends_the_text_and_has_no_text() {
    let engine = engine();
    let whole = engine.complete("Once upon a time", greedy(40)).expect("a story");
    let stop = whole.tokens[9];
    let first = whole.tokens.iter().position(|&token| token == stop).expect("it is there");
    let options = || greedy(40).stop_token_ids([stop]);
    let found = engine.complete("Once upon a time", options()).expect("a story");
    assert_eq!(found.tokens, whole.tokens[..=first]);
    let before = engine.complete("Once upon a time", greedy(first)).expect("a story");
    assert_eq!(found.text, before.text);
    assert_eq!((found.done.finish_reason, found.done.stop), (FinishReason::Stop, None));
    let later = engine.complete("Once upon a time", options().min_tokens(first + 2));
    assert!(later.expect("a story").tokens.len() > first + 1, "it may not come before");
    let error =
        engine.generate("Once", greedy(4).stop_token_ids([1_u32 << 20])).expect_err("unknown");
    assert!(error.to_string().contains("stop_token_ids"), "{error}");
}

#[test]
fn usage_has_the_tokens_of_the_prompt_that_were_cached() {
    let engine = engine();
    let prompt = "Once upon a time there was a little dog who liked to play in the park.".repeat(3);
    let usage = || engine.complete(prompt.as_str(), greedy(4)).expect("a story").done.usage;
    let (first, again) = (usage(), usage());
    assert_eq!((first.cached_tokens, first.completion_tokens), (0, 4));
    assert!(again.cached_tokens > 0 && again.cached_tokens < again.prompt_tokens, "{again:?}");
    let samples = engine.generate_many(prompt.as_str(), greedy(4), 2).expect("streams");
    for sample in samples {
        assert_eq!(sample.wait().expect("a story").done.usage, again);
    }
}

#[test]
fn events_are_one_a_token_and_then_done() {
    let engine = engine();
    let stream = engine.generate("The dog", greedy(12).logprobs(true)).expect("a stream");
    let events: Vec<Event> = block_on(stream.map(|event| event.expect("an event")).collect());
    let (done, deltas) = events.split_last().expect("events");
    let Event::Done(done) = done else { panic!("the last event is {done:?}") };
    assert_eq!((deltas.len(), done.usage.completion_tokens), (12, 12));
    for delta in deltas {
        let Event::Text(delta) = delta else { panic!("{delta:?} before the end") };
        assert!(delta.logprob.is_some_and(|logprob| logprob <= 0.0));
    }
    let json = serde_json::to_value(&events[0]).expect("JSON");
    assert_eq!(json["type"], "text");
    let json = serde_json::to_value(Event::Done(done.clone())).expect("JSON");
    assert_eq!(json["finish_reason"], "length");
    assert_eq!(json["backend"], "cpu");
    assert_eq!(json["model"], "real-tinystories-1m");
}

#[test]
fn cancelling_and_dropping_end_a_generation() {
    let engine = engine();
    let mut stream = engine.generate("Once upon a time", greedy(400)).expect("a stream");
    let first = block_on(stream.next()).expect("an event").expect("no error");
    assert!(matches!(first, Event::Text(_)));
    stream.cancel_handle().cancel();
    let last = block_on(stream.map(|event| event.expect("no error")).collect::<Vec<_>>()).pop();
    let Some(Event::Done(done)) = last else { panic!("{last:?}") };
    assert_eq!(done.finish_reason, FinishReason::Aborted);
    drop(engine.generate("Once upon a time", greedy(400)).expect("a stream"));
    assert_eq!(engine.complete("The dog", greedy(5)).expect("still here").tokens.len(), 5);
}

#[test]
fn a_stream_that_nobody_reads_waits_and_does_not_stop_others() {
    let engine = engine();
    let unread = engine.generate("Once upon a time", greedy(300)).expect("a stream");
    streams::pause(&engine);
    assert_eq!(engine.complete("The dog", greedy(20)).expect("a story").tokens.len(), 20);
    let told = block_on(engine.metrics()).expect("an engine");
    assert_eq!((told.tokens, told.running), (BUFFER as u64 + 20, 1), "it waits still");
    assert!(unread.wait().expect("a story").tokens.len() > BUFFER, "it went on when read");
}

#[test]
fn an_engine_ends_with_its_last_handle_and_stream() {
    let engine = engine();
    let stream = engine.generate("Once upon a time", greedy(30)).expect("a stream");
    drop(engine);
    assert!(!stream.wait().expect("the stream keeps the model").text.is_empty());
}

#[test]
fn wrong_requests_are_refused_and_leave_the_engine_usable() {
    let engine = engine();
    let code =
        |prompt: Prompt, options| engine.generate(prompt, options).expect_err("refused").code();
    let text = || Prompt::from("Once");
    let options = GenerateOptions::new;
    assert_eq!(code(text(), options().max_tokens(0)), ErrorCode::BadOption);
    assert_eq!(code(text(), options().temperature(-1.0)), ErrorCode::BadOption);
    assert_eq!(code(text(), options().temperature(f32::NAN)), ErrorCode::BadOption);
    assert_eq!(code(text(), options().top_p(1.5)), ErrorCode::BadOption);
    assert_eq!(code(text(), options().stop([""])), ErrorCode::BadOption);
    assert_eq!(code(Prompt::Tokens(vec![]), options()), ErrorCode::BadOption);
    assert_eq!(code(Prompt::Tokens(vec![1, 512]), options()), ErrorCode::BadOption);
    assert_eq!(code(Prompt::Tokens(vec![1; 512]), options()), ErrorCode::ContextFull);
    assert_eq!(code(vec![Message::user("hi")].into(), options()), ErrorCode::UnsupportedModel);
    assert_eq!(engine.complete(text(), greedy(3)).expect("still here").tokens.len(), 3);
}

/// By its length alone: of 10 MB the tokens would take a gigabyte.
#[test]
fn a_prompt_far_beyond_the_context_is_not_tokenized() {
    let engine = engine();
    let long = "a frog ".repeat(1_500_000);
    let expected = "the prompt has 1166667 tokens at least, the context holds 512 with the answer";
    let error = engine.generate(long, greedy(1)).expect_err("too long");
    assert_eq!((error.to_string().as_str(), error.code()), (expected, ErrorCode::ContextFull));
    let near = engine.generate("a frog ".repeat(400), greedy(1)).expect_err("too long");
    assert_eq!(near.code(), ErrorCode::ContextFull);
    assert!(!near.to_string().contains("at least"), "it was tokenized: {near}");
    assert!(engine.complete("a frog ".repeat(20), greedy(1)).is_ok());
}

#[test]
fn the_context_is_filled_to_its_last_position() {
    let engine = engine();
    let prompt = vec![1; 500];
    let found = engine.complete(prompt, greedy(100)).expect("a story");
    assert!(found.tokens.len() <= 12, "{}", found.tokens.len());
    assert_eq!(found.done.usage.prompt_tokens, 500);
}

#[test]
fn handles_and_streams_cross_threads() {
    fn is<T: Send + Sync + 'static>() {}
    fn is_send<T: Send + 'static>() {}
    is::<Engine>();
    is::<setun::Error>();
    is_send::<setun::GenerationStream>();
    let engine = engine();
    let threads: Vec<_> = (0..3)
        .map(|seed| {
            let engine = engine.clone();
            std::thread::spawn(move || engine.complete("A cat", sampled(seed)).expect("ok").text)
        })
        .collect();
    for (seed, thread) in (0..).zip(threads) {
        let text = thread.join().expect("no panic");
        assert_eq!(text, engine.complete("A cat", sampled(seed)).expect("a story").text);
    }
}

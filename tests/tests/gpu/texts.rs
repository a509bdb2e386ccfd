//! The engine on the system's Vulkan device: where greedy tokens are chosen there, several steps at
//! a time, texts end as they do where each token comes from logits.

use futures::{StreamExt, executor::block_on};
use setun::{
    Completion, Device, Engine, Event, FinishReason, GenerateOptions, GenerationStream, GpuApi,
    Model,
};
use setun_tests::fixture;

const MODEL: &str = "golden/real-tinystories-1m";
const PROMPTS: [&str; 3] = ["Once upon a time", "The dog", "Lily and Tom were"];

/// An engine for this many whole contexts.
fn engine(contexts: usize) -> Engine {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let builder = Engine::builder(model).device(Device::Gpu(GpuApi::Vulkan)).contexts(contexts);
    builder.build().expect("an engine on Vulkan")
}

fn greedy() -> GenerateOptions {
    GenerateOptions::new().temperature(0.0)
}

/// Log-probabilities take all logits, so that each token is a step of its own.
fn singly(engine: &Engine, prompt: &str, options: &GenerateOptions) -> Completion {
    engine.complete(prompt, options.clone().logprobs(true)).expect("a story")
}

fn assert_same(found: &Completion, expected: &Completion, what: &str) {
    assert_eq!(found.text, expected.text, "{what}");
    assert_eq!(found.tokens, expected.tokens, "{what}");
    assert_eq!(found.done.finish_reason, expected.done.finish_reason, "{what}");
    assert_eq!(found.done.stop, expected.done.stop, "{what}");
    assert_eq!(found.done.usage, expected.done.usage, "{what}");
}

#[test]
fn texts_are_those_of_single_steps() {
    let engine = engine(4);
    for (tokens, penalty) in [(1, 1.0), (2, 1.0), (7, 1.2), (45, 1.2), (150, 1.0)] {
        let options = greedy().repetition_penalty(penalty).max_tokens(tokens);
        let expected = PROMPTS.map(|prompt| singly(&engine, prompt, &options));
        for (prompt, expected) in PROMPTS.iter().zip(&expected) {
            let found = engine.complete(*prompt, options.clone()).expect("a story");
            assert_same(&found, expected, &format!("{prompt}, {tokens}, {penalty}"));
        }
        let streams = PROMPTS.map(|prompt| engine.generate(prompt, options.clone()));
        for (stream, expected) in streams.into_iter().zip(&expected) {
            let found = stream.expect("a stream").wait().expect("a story");
            assert_same(&found, expected, &format!("at once, {tokens}, {penalty}"));
        }
    }
    let whole = engine.complete(PROMPTS[0], greedy()).expect("a story");
    assert_eq!(whole.done.finish_reason, FinishReason::Stop, "the model ends it by itself");
    assert_same(&whole, &singly(&engine, PROMPTS[0], &greedy()), "to its end");
}

#[test]
fn stop_strings_end_texts_amid_steps() {
    let engine = engine(1);
    let whole = engine.complete(PROMPTS[0], greedy().max_tokens(60)).expect("a story");
    for at in (5..100).step_by(19) {
        let stop: String = whole.text.chars().skip(at).take(5).collect();
        let options = greedy().max_tokens(60).stop([stop.as_str()]);
        let expected = singly(&engine, PROMPTS[0], &options);
        assert_eq!(expected.done.stop.as_deref(), Some(stop.as_str()));
        let found = engine.complete(PROMPTS[0], options).expect("a story");
        assert_same(&found, &expected, &stop);
    }
}

#[test]
fn who_leaves_frees_the_cache_and_others_go_on() {
    let engine = engine(2);
    let (options, context) = (greedy().max_tokens(300), engine.context_length());
    let expected = singly(&engine, PROMPTS[1], &options);
    let begun = |stream: &mut GenerationStream| {
        for _ in 0..20 {
            block_on(stream.next()).expect("an event").expect("no error");
        }
    };
    for _ in 0..3 {
        let lasting = engine.generate(PROMPTS[1], options.clone()).expect("a stream");
        let mut cancelled = engine.generate(PROMPTS[0], greedy()).expect("a stream");
        begun(&mut cancelled);
        cancelled.cancel_handle().cancel();
        let last = block_on(cancelled.map(|event| event.expect("no error")).collect::<Vec<_>>());
        let Some(Event::Done(done)) = last.last() else { panic!("{last:?}") };
        assert_eq!(done.finish_reason, FinishReason::Aborted);
        let mut dropped = engine.generate(PROMPTS[2], greedy()).expect("a stream");
        begun(&mut dropped);
        drop(dropped);
        assert_same(&lasting.wait().expect("a story"), &expected, "beside those who left");
    }
    // All that the cache can hold is free again.
    let most = greedy().max_tokens(context);
    let streams = [(); 2].map(|()| engine.generate(vec![1; 5], most.clone()).expect("a stream"));
    for stream in streams {
        assert!(!stream.wait().expect("a story").tokens.is_empty());
    }
}

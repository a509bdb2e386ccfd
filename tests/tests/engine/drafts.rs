//! A draft beside the model: the same texts from fewer steps, and what cannot be one.

use futures::executor::block_on;
use setun::{Device, Engine, EngineBuilder, ErrorCode, GenerateOptions, Model};
use setun_tests::fixture;

use super::{MODEL, engine, greedy, sampled};

const PROMPTS: [&str; 3] = ["Once upon a time", "The dog", "Lily and Tom went to the park. They"];

fn open(name: &str) -> Model {
    Model::open(fixture(name)).expect("a model")
}

fn with_draft() -> EngineBuilder {
    Engine::builder(open(MODEL)).draft(open(MODEL))
}

/// Options whose choices follow from tokens and random numbers alone.
fn stateless() -> [GenerateOptions; 6] {
    [
        greedy(60),
        greedy(60).repetition_penalty(1.2).logprobs(true),
        greedy(60).no_repeat_ngram(3),
        sampled(3).max_tokens(60),
        sampled(4).max_tokens(30).min_p(0.1).logit_bias([(5, 2.0)]),
        greedy(60).stop(["play"]),
    ]
}

#[test]
fn what_a_model_guesses_of_itself_is_always_right() {
    let (plain, drafted) = (engine(), with_draft().build().expect("an engine"));
    let asked = || PROMPTS.into_iter().flat_map(|prompt| stateless().map(|how| (prompt, how)));
    let streams = asked().map(|(prompt, how)| drafted.generate(prompt, how.lookahead(7)));
    let streams: Vec<_> = streams.map(|stream| stream.expect("a stream")).collect();
    for ((prompt, how), stream) in asked().zip(streams) {
        let (expected, found) = (plain.complete(prompt, how).expect("a story"), stream.wait());
        let found = found.expect("a story");
        assert_eq!((&found.text, &found.tokens), (&expected.text, &expected.tokens));
        assert_eq!(found.done.stop, expected.done.stop);
    }
    let found = block_on(drafted.metrics()).expect("an engine");
    assert!(found.draft_tokens > 300, "{found:?}");
    // But for those beyond the end of a text.
    assert!(found.accepted_tokens * 100 > found.draft_tokens * 95, "{found:?}");
    let alone = block_on(plain.metrics()).expect("an engine");
    assert_eq!(found.memory.weights(), 2 * alone.memory.weights());
}

#[test]
fn choices_with_a_state_are_guessed_greedily() {
    let (plain, drafted) = (engine(), with_draft().build().expect("an engine"));
    let how = || GenerateOptions::new().temperature(0.4).mirostat_tau(3.0).seed(5).max_tokens(60);
    let expected = plain.complete(PROMPTS[0], how()).expect("a story");
    let found = drafted.complete(PROMPTS[0], how().lookahead(7)).expect("a story");
    assert_eq!(found.tokens, expected.tokens);
    let metrics = block_on(drafted.metrics()).expect("an engine");
    assert!(
        metrics.accepted_tokens > 0 && metrics.accepted_tokens < metrics.draft_tokens,
        "{metrics:?}"
    );
}

#[test]
fn each_device_has_a_draft_of_its_own() {
    let each = Device::Each(vec![Device::Cpu, Device::Cpu]);
    let engine = with_draft().device(each).build().expect("an engine");
    let plain = super::engine();
    let streams: Vec<_> = (0..4)
        .map(|seed| engine.generate("The dog", sampled(seed).lookahead(7)).expect("a stream"))
        .collect();
    for (seed, stream) in (0..).zip(streams) {
        let expected = plain.complete("The dog", sampled(seed)).expect("a story");
        assert_eq!(stream.wait().expect("a story").tokens, expected.tokens);
    }
    let found = block_on(engine.metrics()).expect("an engine");
    assert_eq!(found.draft_tokens > 50, found.accepted_tokens > 50, "{found:?}");
}

#[test]
fn a_draft_of_another_vocabulary_is_refused() {
    let built = Engine::builder(open(MODEL)).draft(open("golden/bitnet-h64/packed")).build();
    assert_eq!(built.err().map(|error| error.code()), Some(ErrorCode::BadOption));
}

//! Beam searches of an engine, on a real model.

use std::{thread, time::Duration};

use futures::executor::block_on;
use setun::{BeamOptions, BeamTexts, Engine, ErrorCode, FinishReason, GenerateOptions, Model};
use setun_tests::fixture;

use super::{MODEL, engine, greedy, sampled};

const PROMPT: &str = "Once upon a time, there was a";

fn four() -> BeamOptions {
    BeamOptions { num_return_sequences: 4, ..BeamOptions::new(4) }
}

fn diverse() -> BeamOptions {
    BeamOptions { num_beam_groups: 2, diversity_penalty: 1.0, ..four() }
}

fn search(engine: &Engine, beams: BeamOptions, options: GenerateOptions) -> BeamTexts {
    engine.beams(PROMPT, beams, options).expect("a search").wait().expect("texts")
}

/// Tokens with all bits of their scores.
fn bits(found: &BeamTexts) -> Vec<(&[u32], u64)> {
    found.texts.iter().map(|text| (&text.tokens[..], text.score.to_bits())).collect()
}

#[test]
fn texts_are_those_of_their_tokens() {
    let engine = engine();
    let prompt = engine.tokenize(PROMPT).expect("tokens");
    for beams in [four(), diverse()] {
        for text in search(&engine, beams, greedy(30).no_repeat_ngram(3)).texts {
            let whole = engine.detokenize(&[&prompt[..], &text.tokens].concat()).expect("a text");
            assert_eq!(text.text, whole[PROMPT.len()..]);
        }
    }
}

#[test]
fn texts_are_the_same_alone_and_beside_streams_that_take_their_memory() {
    let alone = search(&engine(), four(), greedy(60));
    let groups = search(&engine(), diverse(), greedy(60));
    let story = engine().complete(PROMPT, sampled(3)).expect("a story");
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine = Engine::builder(model).contexts(1).prefix_positions(0).build().expect("an engine");
    for _ in 0..2 {
        let streams: Vec<_> = (0..12)
            .map(|_| engine.generate(PROMPT, sampled(3).priority(1)).expect("a stream"))
            .collect();
        let searches = [four(), diverse(), four()]
            .map(|beams| engine.beams(PROMPT, beams, greedy(60)).expect("a search"));
        let [first, second, third] = searches.map(|search| search.wait().expect("texts"));
        assert_eq!(bits(&first), bits(&alone));
        assert_eq!(bits(&second), bits(&groups));
        assert_eq!(first.texts, third.texts);
        for stream in streams {
            assert_eq!(stream.wait().expect("a story").tokens, story.tokens);
        }
    }
    let metrics = block_on(engine.metrics()).expect("an engine");
    assert_eq!((metrics.running, metrics.used_blocks), (0, 0), "{metrics:?}");
    assert!(metrics.preemptions > 0, "{metrics:?}");
}

#[test]
fn a_prompt_is_computed_once_for_all_beams() {
    let engine = engine();
    let prompt: Vec<u32> = (0..90).map(|at| at * 11 % 500).collect();
    let found = engine.beams(prompt, four(), greedy(5)).expect("a search").wait().expect("texts");
    assert_eq!(found.done.usage.prompt_tokens, 90);
    assert_eq!(found.done.finish_reason, FinishReason::Length);
    let metrics = block_on(engine.metrics()).expect("an engine");
    assert_eq!(metrics.rows, 90 + 4 * 4, "four beams, but for the first and the last token");
    assert_eq!(metrics.steps, 5 + 1, "the prompt in two steps, and all beams in one");
}

#[test]
fn a_search_that_is_dropped_frees_its_memory_before_the_next_step() {
    let engine = engine();
    drop(engine.beams(PROMPT, four(), greedy(400)).expect("a search"));
    let next = engine.beams(PROMPT, four(), greedy(400)).expect("a search");
    let cancel = next.cancel_handle();
    while block_on(engine.metrics()).expect("an engine").running == 0 {
        thread::yield_now();
    }
    cancel.cancel();
    let found = next.wait().expect("what there is");
    assert_eq!(found.done.finish_reason, FinishReason::Aborted);
    let over = greedy(400).timeout(Duration::ZERO);
    let over = search(&engine, four(), over);
    assert_eq!((over.texts.len(), over.done.finish_reason), (0, FinishReason::Timeout));
    let metrics = block_on(engine.metrics()).expect("an engine");
    assert_eq!((metrics.running, metrics.used_blocks), (0, 0));
}

#[test]
fn texts_end_before_a_stop_string() {
    let engine = engine();
    let found = search(&engine, four(), greedy(60).stop(["."]));
    assert!(found.texts.iter().all(|text| !text.text.contains('.')), "{found:?}");
    let stopped = found.texts.iter().filter(|text| text.stop.as_deref() == Some("."));
    let stopped: Vec<_> = stopped.collect();
    assert!(!stopped.is_empty(), "{found:?}");
    for text in stopped {
        assert_eq!(text.finish_reason, FinishReason::Stop);
        let whole = engine.detokenize(&text.tokens).expect("a text");
        assert_eq!(whole.matches('.').count(), 1, "the token that completes it is the last");
    }
}

#[test]
fn what_a_search_cannot_do_is_refused() {
    let engine = engine();
    let refused = |beams, options| {
        let error = engine.beams(PROMPT, beams, options).expect_err("refused");
        assert_eq!(error.code(), ErrorCode::BadOption);
        error.to_string()
    };
    assert!(refused(BeamOptions::new(65), greedy(3)).contains("num_beams"));
    assert!(
        refused(BeamOptions { num_return_sequences: 9, ..four() }, greedy(3))
            .contains("num_return_sequences")
    );
    for (options, option) in [
        (greedy(3).logprobs(true), "logprobs"),
        (greedy(3).temperature(0.7), "temperature"),
        (greedy(3).seed(1), "seed"),
        (greedy(3).top_k(5), "top_k"),
        (greedy(3).lookahead(4), "lookahead"),
    ] {
        let expected = format!("option `{option}` is given, expected not with beams");
        assert_eq!(refused(four(), options), expected);
    }
    let none = engine.beams(PROMPT, four(), greedy(3).allowed_tokens(vec![])).err();
    assert!(none.is_some_and(|error| error.code() == ErrorCode::BadOption));
}

//! Texts that outgrow the context, against the same done by hand: a text up to the end of the
//! context, then one from what is kept of it, and so on.

use futures::executor::block_on;
use setun::{
    ContextStrategy, Engine, EngineError, ErrorCode, FinishReason, FullContext, GenerateOptions,
    SharedContextStrategy, SinksAndWindow, TruncateMiddle,
};

use super::{engine, greedy};

/// The context is full twice, however much of it is kept.
const TOKENS: usize = 920;

fn shared(strategy: impl ContextStrategy + 'static) -> SharedContextStrategy {
    SharedContextStrategy::new(strategy)
}

/// No end token, so that the text goes on.
fn endless(tokens: usize) -> GenerateOptions {
    let mut options = greedy(tokens);
    options.min_tokens = Some(tokens);
    options.repetition_penalty = Some(1.0);
    options
}

/// What the strategy gives where every text is a generation of its own.
fn by_hand(prompt: &[u32], keep: impl Fn(&[u32]) -> Vec<u32>) -> Vec<u32> {
    let engine = engine();
    let positions = engine.context_length();
    let mut seen = if prompt.len() >= positions { keep(prompt) } else { prompt.to_vec() };
    let mut text = vec![];
    while text.len() < TOKENS {
        let room = (positions - seen.len()).min(TOKENS - text.len());
        let more = engine.complete(seen.clone(), endless(room)).expect("a text").tokens;
        text.extend(&more);
        seen.extend(&more);
        if seen.len() == positions {
            seen = keep(&seen);
        }
    }
    text
}

fn with(engine: &Engine, prompt: &[u32], strategy: &SharedContextStrategy) -> Vec<u32> {
    let options = endless(TOKENS).context_overflow(strategy.clone());
    let found = engine.complete(prompt.to_vec(), options).expect("a text");
    assert_eq!(found.done.finish_reason, FinishReason::Length);
    assert_eq!(found.done.usage.prompt_tokens, prompt.len());
    found.tokens
}

fn prompt(count: u32) -> Vec<u32> {
    (0..count).map(|at| at * 7 % 500).collect()
}

#[test]
fn texts_go_on_from_what_is_kept() {
    let engine = engine();
    let middle = shared(TruncateMiddle { first: 60, room: 200 });
    let sinks = shared(SinksAndWindow { sinks: 4, window: 100 });
    let positions = engine.context_length();
    for length in [30, 700] {
        let prompt = prompt(length);
        let kept = |first: usize, last: usize| {
            move |seen: &[u32]| [&seen[..first], &seen[seen.len() - last..]].concat()
        };
        let expected = by_hand(&prompt, kept(60, positions - 260));
        assert_eq!(with(&engine, &prompt, &middle), expected, "middle of {length}");
        let expected = by_hand(&prompt, kept(4, 100));
        assert_eq!(with(&engine, &prompt, &sinks), expected, "sinks of {length}");
    }
    // What is kept of the beginning need not be computed again.
    let reused = block_on(engine.metrics()).expect("an engine").cached_prompt_tokens;
    assert!(reused >= 32, "{reused}");
}

#[test]
fn a_summary_may_be_anything_and_others_do_not_matter() {
    let summary = |full: &FullContext<'_>| -> Result<Vec<u32>, EngineError> {
        Ok(full.tokens.iter().step_by(3).copied().collect())
    };
    let expected = by_hand(&prompt(40), |seen| seen.iter().step_by(3).copied().collect());
    let model = setun::Model::open(setun_tests::fixture(super::MODEL)).expect("the story model");
    let engine = Engine::builder(model).contexts(2).build().expect("an engine");
    let options = || endless(TOKENS).context_overflow(shared(summary));
    let others = (0..5).map(|seed| {
        let options = super::sampled(seed).max_tokens(300);
        engine.generate(prompt(20 + u32::try_from(seed).expect("few")), options).expect("a stream")
    });
    let others: Vec<_> = others.collect();
    let streams = engine.generate_many(prompt(40), options(), 3).expect("streams");
    for stream in streams {
        assert_eq!(stream.wait().expect("a text").tokens, expected);
    }
    for other in others {
        other.wait().expect("a text");
    }
    let guessing = engine.complete(prompt(40), options().lookahead(8)).expect("a text");
    assert_eq!(guessing.tokens, expected);
}

#[test]
fn without_a_strategy_the_text_ends_and_long_prompts_are_refused() {
    let engine = engine();
    let positions = engine.context_length();
    let refused = engine.complete(prompt(700), greedy(5)).expect_err("too long");
    assert_eq!(refused.code(), ErrorCode::ContextFull);
    let full = engine.complete(prompt(30), endless(TOKENS)).expect("a text");
    assert_eq!(full.tokens.len(), positions - 30);
    assert_eq!(full.done.finish_reason, FinishReason::Length);
}

#[test]
fn a_strategy_that_fails_ends_its_text_alone() {
    let engine = engine();
    let all =
        |full: &FullContext<'_>| -> Result<Vec<u32>, EngineError> { Ok(full.tokens.to_vec()) };
    let options = || endless(TOKENS).context_overflow(shared(all));
    let refused = engine.complete(prompt(700), options()).expect_err("it keeps too much");
    assert_eq!(refused.code(), ErrorCode::BadOption);
    let ended = engine.complete(prompt(30), options()).expect_err("it keeps too much");
    assert!(ended.to_string().contains("context"), "{ended}");
    assert!(engine.complete(prompt(30), greedy(3)).is_ok());
}

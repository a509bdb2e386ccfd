//! Filters of what generations show.

use std::time::Duration;

use futures::{StreamExt, executor::block_on};
use setun::{
    Completion, ContentFilter, Engine, ErrorCode, Event, FinishReason, GenerateOptions,
    GenerationStream, Model, SharedFilter,
    text::{
        FilterAction, FilterPattern, FilterRule, FilterState, FilterStep, PatternFilter, TextError,
    },
};

use super::{MODEL, engine, engine_with_clock, greedy, streams::pause};
use setun_tests::fixture;

fn words(texts: &[&str], action: &FilterAction) -> SharedFilter {
    let rule = |text: &&str| {
        let pattern =
            FilterPattern::Word { text: (*text).to_owned(), whole: false, ignore_case: false };
        FilterRule { pattern, action: action.clone() }
    };
    SharedFilter::new(PatternFilter::new(texts.iter().map(rule)).expect("good words"))
}

fn replaced(text: &str, by: &str) -> SharedFilter {
    words(&[text], &FilterAction::Replace(by.to_owned()))
}

fn texts(stream: GenerationStream) -> Vec<String> {
    let text = |event| match event {
        Ok(Event::Text(delta)) => Some(delta.text),
        _ => None,
    };
    block_on(stream.map(text).collect::<Vec<_>>()).into_iter().flatten().collect()
}

#[test]
fn words_are_replaced_and_tokens_stay() {
    let engine = engine();
    let plain = engine.complete("Once upon a time", greedy(80)).expect("a story");
    assert!(plain.text.contains("the"), "{}", plain.text);
    let expected = plain.text.replace("the", "[the]");
    for lookahead in [0, 8] {
        let options = greedy(80).lookahead(lookahead).filter(replaced("the", "[the]"));
        let found = engine.complete("Once upon a time", options.clone()).expect("a story");
        assert_eq!((&found.text, &found.tokens), (&expected, &plain.tokens));
        assert_eq!(found.done.finish_reason, plain.done.finish_reason);
        let stream = engine.generate("Once upon a time", options).expect("a stream");
        assert_eq!(texts(stream).len(), plain.tokens.len(), "an event a token");
    }
}

#[test]
fn each_of_many_texts_has_a_state_of_its_own() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine = Engine::builder(model).contexts(1).build().expect("an engine");
    let options = || GenerateOptions::new().temperature(1.0).seed(3).max_tokens(300);
    let all = |options: GenerateOptions| {
        let streams = engine.generate_many("Once upon", options, 6).expect("streams");
        streams.into_iter().map(|stream| stream.wait().expect("a story")).collect::<Vec<_>>()
    };
    let plain = all(options());
    let filtered = all(options().filter(replaced("a", "<a>")));
    let metrics = block_on(engine.metrics()).expect("metrics");
    assert!(metrics.preemptions > 0, "{metrics:?}");
    for (plain, filtered) in plain.iter().zip(&filtered) {
        assert_eq!(filtered.text, plain.text.replace('a', "<a>"));
        assert_eq!(filtered.tokens, plain.tokens);
    }
}

#[test]
fn a_word_ends_the_text_before_it() {
    let engine = engine();
    let plain = engine.complete("Once upon a time", greedy(60)).expect("a story");
    let word = &plain.text[20..27];
    let at = plain.text.find(word).expect("it is there");
    let filter = words(&["never said", word], &FilterAction::Stop);
    let stopped = |options: GenerateOptions| {
        engine.complete("Once upon a time", options.filter(filter.clone())).expect("a story")
    };
    let found = stopped(greedy(60));
    assert_eq!(found.text, plain.text[..at]);
    assert_eq!((found.done.finish_reason, &found.done.stop), (FinishReason::ContentFilter, &None));
    assert!(found.tokens.len() < 60 && plain.tokens.starts_with(&found.tokens));
    let json = serde_json::to_value(Event::Done(found.done)).expect("JSON");
    assert_eq!(json["finish_reason"], "content_filter");
    // What a stop string takes away the filter never sees.
    let Completion { text, done, .. } = stopped(greedy(60).stop([&plain.text[at - 2..=at]]));
    assert_eq!(text, plain.text[..at - 2]);
    assert_eq!(done.finish_reason, FinishReason::Stop);
}

#[test]
fn what_is_held_is_shown_at_the_end_of_a_text_only() {
    let engine = engine();
    let plain = engine.complete("Once upon a time", greedy(12)).expect("a story");
    // It begins as the text does, and never ends.
    let filter = words(&[&format!("{}#", plain.text)], &FilterAction::Stop);
    let options = |most| greedy(most).filter(filter.clone());
    let stream = engine.generate("Once upon a time", options(12)).expect("a stream");
    let mut events = texts(stream);
    assert_eq!(events.pop(), Some(plain.text.clone()), "all of it at its length");
    assert!(events.iter().all(String::is_empty));
    let stop = &plain.text[plain.text.len() - 3..];
    let stopped = engine.complete("Once upon a time", options(12).stop([stop])).expect("a story");
    assert_eq!(stopped.text, plain.text[..plain.text.find(stop).expect("it is there")]);

    let mut stream =
        engine.generate("Once upon a time", greedy(400).filter(Holds.shared())).expect("a stream");
    assert!(matches!(block_on(stream.next()), Some(Ok(Event::Text(_)))));
    stream.cancel_handle().cancel();
    assert!(texts(stream).iter().all(String::is_empty));
    let (engine, clock) = engine_with_clock();
    let time = Duration::from_millis(80);
    let late = greedy(400).timeout(time).filter(Holds.shared());
    let stream = engine.generate("Once upon a time", late).expect("a stream");
    pause(&engine);
    clock.advance(time);
    let found = stream.wait().expect("what there is");
    assert_eq!((found.text.as_str(), found.done.finish_reason), ("", FinishReason::Timeout));
}

/// Holds all text back, and fails at its end.
#[derive(Clone, Copy)]
struct Holds;

impl Holds {
    fn shared(self) -> SharedFilter {
        SharedFilter::new(self)
    }
}

impl ContentFilter for Holds {
    fn begin(&self) -> Box<dyn FilterState> {
        Box::new(*self)
    }
}

impl FilterState for Holds {
    fn push(&mut self, _: &str) -> Result<FilterStep, TextError> {
        Ok(FilterStep::default())
    }

    fn finish(&mut self) -> Result<FilterStep, TextError> {
        Err(TextError::Filter { reason: "the line is dead".to_owned() })
    }
}

#[test]
fn a_filter_that_fails_ends_its_generation_alone() {
    let engine = engine();
    let error = engine.complete("Once", greedy(5).filter(Holds.shared())).expect_err("it fails");
    assert_eq!(error.code(), ErrorCode::BadOption);
    assert!(error.to_string().contains("the line is dead"), "{error}");
    assert_eq!(engine.complete("Once", greedy(5)).expect("still here").tokens.len(), 5);
}

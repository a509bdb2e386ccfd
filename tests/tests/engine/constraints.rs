//! Texts of a given form, on a model that would not give them by itself.

use std::time::Duration;

use serde_json::{Value, json};
use setun::{
    Constraint, ConstraintState, ErrorCode, FinishReason, GenerateOptions, GrammarSpec,
    SharedConstraint, grammar::Interrupt, text::TokenMask,
};

use super::{engine, greedy};

fn schema() -> GrammarSpec {
    GrammarSpec::JsonSchema(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 12 },
            "age": { "type": "integer", "minimum": 1, "maximum": 99 },
            "pets": { "type": "array", "items": { "enum": ["cat", "dog"] }, "maxItems": 3 },
        },
        "required": ["name", "age", "pets"],
        "additionalProperties": false,
    }))
}

fn check(value: &Value) {
    let object = value.as_object().expect("an object");
    assert_eq!(object.len(), 3, "{value}");
    assert!(object["name"].as_str().expect("a name").chars().count() <= 12, "{value}");
    assert!((1..=99).contains(&object["age"].as_u64().expect("an age")), "{value}");
    let pets = object["pets"].as_array().expect("pets");
    assert!(pets.len() <= 3 && pets.iter().all(|pet| pet == "cat" || pet == "dog"), "{value}");
}

#[test]
fn every_text_is_valid_however_it_is_made() {
    let engine = engine();
    let form = engine.grammar(&schema()).expect("a schema");
    let options = |seed| {
        let options = GenerateOptions::new().seed(seed).constraint(form.clone()).max_tokens(300);
        // Where `top_k` cuts, few logits are requested; where nothing does, all.
        let options = if seed % 2 == 0 { options.top_k(20) } else { options };
        if seed == 0 { options.temperature(0.0) } else { options.temperature(1.0) }
    };
    let streams = |lookahead| {
        let stream = |seed| engine.generate("Once upon a time", options(seed).lookahead(lookahead));
        let streams: Vec<_> = (0..12).map(|seed| stream(seed).expect("a stream")).collect();
        streams.into_iter().map(|stream| stream.wait().expect("a text")).collect::<Vec<_>>()
    };
    let plain = streams(0);
    for found in &plain {
        assert_eq!(found.done.finish_reason, FinishReason::Stop, "{}", found.text);
        check(&serde_json::from_str(&found.text).expect("JSON"));
    }
    let guessed: Vec<_> = streams(6).into_iter().map(|found| found.tokens).collect();
    assert_eq!(guessed, plain.into_iter().map(|found| found.tokens).collect::<Vec<_>>());
    // Beside the others one without a form is what it is alone.
    let free = engine.complete("The dog", greedy(20)).expect("a story").tokens;
    let (with, without) =
        (engine.generate("Once", options(3)), engine.generate("The dog", greedy(20)));
    assert_eq!(without.expect("a stream").wait().expect("a story").tokens, free);
    with.expect("a stream").wait().expect("a text");
}

/// A text whose log-probabilities are reported has a step for each token.
#[test]
fn tokens_without_a_choice_need_no_step_and_change_no_text() {
    let engine = engine();
    let form = engine.grammar(&schema()).expect("a schema");
    let steps = || pollster::block_on(engine.metrics()).expect("metrics").steps;
    let mut saved = 0;
    for seed in 0..8 {
        let mut options = GenerateOptions::new().seed(seed).constraint(form.clone());
        options = options.max_tokens(300).temperature(if seed == 0 { 0.0 } else { 1.0 });
        options = if seed % 2 == 0 { options } else { options.stop(["cat"]).top_k(9) };
        let before = steps();
        let found = engine.complete("Once", options.clone()).expect("a text");
        let between = steps();
        let stepped = engine.complete("Once", options.logprobs(true)).expect("the same text");
        assert_eq!((&found.tokens, &found.text), (&stepped.tokens, &stepped.text), "{seed}");
        assert_eq!(found.done.finish_reason, stepped.done.finish_reason, "{seed}");
        let [usage, expected] = [&found, &stepped].map(|text| text.done.usage.completion_tokens);
        assert_eq!(usage, expected, "{seed}");
        saved += (steps() - between).saturating_sub(between - before);
    }
    assert!(saved > 0, "no token was without a choice");
}

#[test]
fn choices_and_expressions_are_followed() {
    let engine = engine();
    let complete = |spec| {
        let form = engine.grammar(&spec).expect("a form");
        engine.complete("The", greedy(60).constraint(form)).expect("a text").text
    };
    let choices = ["a very large elephant", "the moon"].map(str::to_owned);
    let chosen = complete(GrammarSpec::Choice(choices.to_vec()));
    assert!(choices.contains(&chosen), "{chosen}");
    let date = complete(GrammarSpec::Regex("[0-9]{4}-[01][0-9]".into()));
    assert!(date.len() == 7 && date.as_bytes()[4] == b'-', "{date}");
}

#[test]
fn what_cannot_be_followed_is_refused_before_the_first_token() {
    let engine = engine();
    for spec in [
        GrammarSpec::JsonSchema(json!({ "type": "object", "unevaluatedProperties": false })),
        GrammarSpec::Regex("(".into()),
        GrammarSpec::Choice(vec![]),
        GrammarSpec::Lark("start: start".into()),
        GrammarSpec::Regex("a?".repeat(20_000)),
    ] {
        let error = engine.grammar(&spec).expect_err("refused");
        assert_eq!(error.code(), ErrorCode::BadOption, "{error}");
    }
}

#[test]
fn a_form_is_compiled_in_its_time_unless_it_is_cancelled() {
    let engine = engine();
    let interrupt = Interrupt::new();
    engine.compile_grammar(&schema(), &interrupt).expect("nothing interrupts it");
    interrupt.cancel();
    let error = engine.compile_grammar(&schema(), &interrupt).expect_err("cancelled");
    assert_eq!(error.code(), ErrorCode::Cancelled, "{error}");
    let late = Interrupt::new().within(Duration::ZERO);
    let error = engine.compile_grammar(&schema(), &late).expect_err("too late");
    assert_eq!(error.code(), ErrorCode::BadOption, "{error}");
}

/// Only even tokens, and no more than some.
#[derive(Clone)]
struct Even {
    mask: TokenMask,
    left: usize,
}

impl Constraint for Even {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(self.clone())
    }
}

impl ConstraintState for Even {
    fn mask(&mut self) -> Result<&TokenMask, setun::EngineError> {
        if self.left == 0 { Err(setun::EngineError::Disposed) } else { Ok(&self.mask) }
    }

    fn accept(&mut self, token: u32) -> Result<(), setun::EngineError> {
        assert_eq!(token % 2, 0);
        self.left -= 1;
        Ok(())
    }
}

#[test]
fn a_form_of_ones_own_is_followed_and_its_error_ends_the_text() {
    let engine = engine();
    let mut mask = TokenMask::none(engine.vocab_size());
    (0..500).step_by(2).for_each(|token| mask.insert(token));
    let form = SharedConstraint::new(Even { mask, left: 15 });
    let found = engine.complete("Once", greedy(15).constraint(form.clone())).expect("a text");
    assert!(found.tokens.len() == 15 && found.tokens.iter().all(|token| token % 2 == 0));
    let error = engine.complete("Once", greedy(16).constraint(form)).expect_err("one too many");
    assert_eq!(error.code(), ErrorCode::Disposed);
    assert_eq!(engine.complete("Once", greedy(3)).expect("still here").tokens.len(), 3);
}

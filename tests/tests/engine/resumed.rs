//! Generations that go on after tokens of an earlier one: each event is that of the undisturbed run.

use setun::{
    Done, Engine, ErrorCode, Event, GenerateOptions, GenerationStream, GrammarSpec, Model,
    SharedContextStrategy, SharedFilter, TextDelta, TruncateMiddle,
    text::{FilterAction, FilterPattern, FilterRule, PatternFilter},
};
use setun_tests::fixture;

use super::{MODEL, engine, greedy, sampled};

const PROMPT: &str = "Once upon a time";

fn read(stream: GenerationStream) -> (Vec<TextDelta>, Done) {
    let mut deltas = vec![];
    for event in stream.blocking() {
        match event.expect("an event") {
            Event::Text(delta) => deltas.push(delta),
            Event::Done(done) => return (deltas, done),
            Event::Progress(_) | Event::Prompt(_) => {}
        }
    }
    panic!("a stream without an end");
}

/// Runs it once without a break, and from some of its tokens, from all and from none.
fn check(engine: &Engine, options: &GenerateOptions, step: usize) -> Vec<TextDelta> {
    let run = |tokens: Vec<u32>| {
        let options = options.clone().generated_tokens(tokens);
        read(engine.generate(PROMPT, options).expect("a stream"))
    };
    let (all, done) = run(vec![]);
    for cut in (0..=all.len()).filter(|cut| cut % step == 0 || *cut == all.len()) {
        // The cache of another engine knows nothing of the text.
        engine.reset_prefix_cache().expect("an engine");
        let (rest, end) = run(all[..cut].iter().map(|delta| delta.token).collect());
        assert_eq!(rest, all[cut..], "after {cut} tokens");
        assert_eq!(
            (end.finish_reason, end.stop, end.usage, end.seed),
            (done.finish_reason, done.stop.clone(), done.usage, done.seed),
            "after {cut} tokens"
        );
    }
    all
}

fn text(deltas: &[TextDelta]) -> String {
    deltas.iter().map(|delta| delta.text.as_str()).collect()
}

#[test]
fn sampled_texts_go_on_as_without_a_break() {
    let engine = engine();
    check(&engine, &greedy(24).seed(1), 1);
    check(&engine, &sampled(5).top_logprobs(3), 3);
    let penalties = sampled(6)
        .repetition_penalty(1.3)
        .frequency_penalty(0.7)
        .presence_penalty(0.4)
        .no_repeat_ngram(3)
        .dry_multiplier(0.8)
        .min_tokens(12)
        .xtc_probability(0.5);
    check(&engine, &penalties, 3);
    check(&engine, &sampled(7).lookahead(6), 5);
}

#[test]
fn text_that_was_held_back_comes_later() {
    let engine = engine();
    let whole = text(&check(&engine, &sampled(8), 40));
    let stop = whole[40..60].to_owned();
    let almost = format!("{}#", &whole[12..30]);
    let stopped = text(&check(&engine, &sampled(8).stop([stop, almost]), 1));
    assert_eq!(stopped, whole[..40]);
    let pattern =
        FilterPattern::Word { text: whole[20..28].into(), whole: false, ignore_case: false };
    let rule = FilterRule { pattern, action: FilterAction::Replace("…".into()) };
    let filter = SharedFilter::new(PatternFilter::new([rule]).expect("a good word"));
    let filtered = text(&check(&engine, &sampled(8).filter(filter), 1));
    assert_eq!(filtered, whole.replace(&whole[20..28], "…"));
}

#[test]
fn constraints_are_followed_from_where_they_were() {
    let engine = engine();
    let spec = GrammarSpec::Regex("[a-z]{3}-[0-9]{5}( and [a-z]+){2}\\.".into());
    let form = engine.grammar(&spec).expect("a form");
    let options = sampled(9).constraint(form);
    let all = check(&engine, &options, 1);
    // Tokens that do not follow the form; the last one ends the text.
    let wrong = options
        .generated_tokens(all.iter().rev().skip(1).map(|delta| delta.token).collect::<Vec<_>>());
    let error = engine.complete(PROMPT, wrong).expect_err("refused");
    assert_eq!(error.code(), ErrorCode::BadOption, "{error}");
}

#[test]
fn a_context_that_was_full_is_shortened_at_the_same_tokens() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine = Engine::builder(model).context_length(32).build().expect("an engine");
    let strategy = SharedContextStrategy::new(TruncateMiddle { first: 4, room: 9 });
    let options = sampled(10).max_tokens(70).min_tokens(70).context_overflow(strategy);
    assert_eq!(check(&engine, &options, 1).len(), 70);
}

#[test]
fn each_of_several_samples_goes_on_alone() {
    let engine = engine();
    let streams = engine.generate_many(PROMPT, sampled(11), 3).expect("streams");
    for (index, stream) in streams.into_iter().enumerate() {
        let (whole, _) = read(stream);
        let alone = check(&engine, &sampled(11).sample_index(index), 20);
        assert_eq!(alone, whole);
    }
    // Several that begin at an end have it, too.
    let (all, done) = read(engine.generate(PROMPT, sampled(11)).expect("a stream"));
    let tokens: Vec<u32> = all.iter().map(|delta| delta.token).collect();
    let ended =
        engine.generate_many(PROMPT, sampled(11).generated_tokens(tokens), 3).expect("streams");
    for stream in ended {
        let (rest, end) = read(stream);
        assert_eq!((rest.len(), end.finish_reason), (0, done.finish_reason));
    }
}

#[test]
fn what_cannot_go_on_is_refused() {
    let engine = engine();
    for (options, expected) in [
        (greedy(2).generated_tokens([1_u32, 2, 3]), "2 tokens or fewer"),
        (greedy(9).generated_tokens([1_u32, 600]), "tokens below 512"),
        (sampled(1).mirostat_tau(3.0).generated_tokens([1_u32]), "no mirostat_tau"),
        (sampled(1).prompt_logprobs(true).generated_tokens([1_u32]), "no prompt_logprobs"),
    ] {
        let error = engine.generate(PROMPT, options).expect_err("refused");
        assert_eq!(error.code(), ErrorCode::BadOption);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

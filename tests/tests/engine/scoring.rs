//! Log-probabilities and scores of generated texts, prompts and given texts.

use futures::executor::block_on;
use setun::{
    DeviceOptions, Engine, ErrorCode, Event, GenerateOptions, Model, Prompt, Ragged, TextDelta,
    TokenLogprob, text::Logprobs,
};
use setun_tests::fixture;

use super::{MODEL, engine, greedy, sampled};

const TEXT: &str = "Once upon a time there was a little dog who liked to play in the park.";

/// The log-probability of each token after the first, by an inferencer that gives all logits.
fn expected(tokens: &[u32], top: usize) -> Vec<TextDelta> {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let mut inferencer = model.into_inferencer(DeviceOptions::default()).expect("a processor");
    let mut cache = inferencer.cache(1).expect("a cache");
    let mut strategy = setun::text::Sampler::new(setun::SamplerOptions::default()).expect("greedy");
    let query = Ragged::from_rows([tokens]);
    let inferred = inferencer.prefill_blocking(&query, &mut cache, &mut strategy).expect("logits");
    let vocabulary = inferencer.model().vocab_size();
    let rows = inferred.token_logits.values().chunks(vocabulary);
    let judged = rows.zip(&tokens[1..]).map(|(logits, &token)| {
        let logprobs = Logprobs::new(logits);
        let named = |(token, logprob)| TokenLogprob { token, text: String::new(), logprob };
        let top_logprobs = logprobs.top(top).into_iter().map(named).collect();
        let logprob = Some(logprobs.of(token));
        TextDelta { token, logprob, top_logprobs, ..TextDelta::default() }
    });
    let first = TextDelta { token: tokens[0], ..TextDelta::default() };
    std::iter::once(first).chain(judged).collect()
}

fn without_text(deltas: &[TextDelta]) -> Vec<TextDelta> {
    let bare = |delta: &TextDelta| {
        let mut delta = TextDelta { text: String::new(), ..delta.clone() };
        delta.top_logprobs.iter_mut().for_each(|named| named.text.clear());
        delta
    };
    deltas.iter().map(bare).collect()
}

fn text(deltas: &[TextDelta]) -> String {
    deltas.iter().map(|delta| delta.text.as_str()).collect()
}

#[test]
fn likely_tokens_have_the_text_that_they_have_in_the_answer() {
    let found = engine().complete(TEXT, greedy(30).top_logprobs(2)).expect("a story");
    let chosen = found.deltas.iter().map(|delta| {
        let is_chosen = |named: &&TokenLogprob| named.token == delta.token;
        delta.top_logprobs.iter().find(is_chosen).expect("the likeliest").text.as_str()
    });
    assert_eq!(chosen.collect::<String>(), found.text);
}

#[test]
fn prompt_logprobs_follow_from_the_logits_of_the_rows() {
    let engine = engine();
    let options = || greedy(12).prompt_logprobs(true).top_logprobs(3);
    let plain = engine.complete(TEXT, greedy(12)).expect("a story");
    let tokens = engine.tokenize(TEXT).expect("tokens");
    let wanted = expected(&[&tokens[..], &plain.tokens].concat(), 3);
    // The second time all but its end is in the cache, which must not matter.
    for _ in 0..2 {
        let reported = engine.complete(TEXT, options()).expect("a story");
        assert_eq!(text(&reported.prompt).trim_start(), TEXT);
        assert_eq!((&reported.tokens, &reported.text), (&plain.tokens, &plain.text));
        let all = [reported.prompt, reported.deltas].concat();
        assert_eq!(without_text(&all), wanted);
    }
    for one in engine
        .generate_many(TEXT, sampled(3).prompt_logprobs(true).top_logprobs(3), 3)
        .expect("streams")
    {
        let prompt = one.wait().expect("a story").prompt;
        assert_eq!(without_text(&prompt), wanted[..tokens.len()]);
    }
}

#[test]
fn prompt_logprobs_are_the_same_beside_others_and_with_little_memory() {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine = Engine::builder(model).contexts(1).build().expect("an engine");
    let prompt = |seed: u32| (0..150).map(|at| (at * 7 + seed * 13) % 500).collect::<Vec<u32>>();
    let options = || sampled(5).prompt_logprobs(true).logprobs(true).max_tokens(60);
    let streams = (0..6).map(|seed| engine.generate(prompt(seed), options()).expect("a stream"));
    let streams: Vec<_> = streams.collect();
    for (seed, stream) in (0..).zip(streams) {
        let reported = stream.wait().expect("a story");
        assert_eq!(without_text(&reported.prompt), expected(&prompt(seed), 0), "{seed}");
    }
    let preempted = block_on(engine.metrics()).expect("an engine").preemptions;
    assert!(preempted > 0, "six of 210 positions do not fit 512");
}

#[test]
fn the_first_of_samples_may_leave_before_prompt_logprobs() {
    let engine = engine();
    let prompt: Vec<u32> = (0..300).map(|at| at * 11 % 500).collect();
    let mut streams =
        engine.generate_many(prompt.clone(), sampled(1).prompt_logprobs(true), 2).expect("streams");
    drop(streams.remove(0));
    let left = streams.remove(0).wait().expect("a story");
    let reported: Vec<u32> = left.prompt.iter().map(|delta| delta.token).collect();
    assert!(
        reported.is_empty() || reported == prompt,
        "all of it or, if the first had it, nothing"
    );
    let alone = engine.generate_many(prompt, sampled(1), 2).expect("streams").remove(1);
    assert_eq!(left.tokens, alone.wait().expect("a story").tokens);
}

#[test]
fn scores_are_sums_of_log_probabilities_and_cost_their_prompt_once() {
    let engine = engine();
    let ends = [" park.", " park with his friends.", " house."];
    let prompt = "Once upon a time there was a little dog. He was very happy, as it was a sunny day. \
                  He ran and ran, and then he sat down under a tree. He liked to play in the";
    let before = block_on(engine.metrics()).expect("an engine").rows;
    let scores = block_on(engine.score(prompt, &ends)).expect("scores");
    let rows = block_on(engine.metrics()).expect("an engine").rows - before;
    let tokens = engine.tokenize(prompt).expect("tokens");
    let mut wanted_rows = tokens.len();
    for (score, end) in scores.iter().zip(ends) {
        let joined = engine.tokenize(&format!("{prompt}{end}")).expect("tokens");
        let wanted = expected(&joined, 0);
        let from = joined.len() - score.tokens.len();
        assert_eq!(joined[..from], tokens[..from]);
        assert_eq!(without_text(&score.tokens), wanted[from..]);
        let sum: f64 = wanted[from..].iter().filter_map(|token| token.logprob).sum();
        assert_eq!(score.logprob.to_bits(), sum.to_bits());
        let count = u32::try_from(joined.len() - from).expect("few");
        assert_eq!(score.mean_logprob(), sum / f64::from(count));
        assert!(text(&score.tokens).ends_with(end.trim_start()), "{score:?}");
        wanted_rows += joined.len() - tokens.len() + 32; // less than a block is run again
    }
    assert!(rows <= wanted_rows as u64, "{rows} of {wanted_rows}");

    let classes = block_on(engine.classify(prompt, &ends)).expect("classes");
    assert_eq!(classes.scores, scores);
    let best = scores.iter().map(|score| score.logprob).fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(scores[classes.best].logprob, best);
    assert!((classes.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let ratio = (scores[0].logprob - scores[2].logprob).exp();
    assert!((classes.probabilities[0] / classes.probabilities[2] - ratio).abs() < 1e-9 * ratio);
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let engine = engine();
    let refused = |prompt: Prompt, ends: &[&str]| {
        block_on(engine.score(prompt, ends)).expect_err("refused").code()
    };
    assert_eq!(refused("Once".into(), &["a", ""]), ErrorCode::BadOption);
    assert_eq!(refused(Prompt::Tokens(vec![]), &["a"]), ErrorCode::BadOption);
    assert_eq!(refused("Once".into(), &[&"a dog ".repeat(600)]), ErrorCode::ContextFull);
    let none: [&str; 0] = [];
    assert!(block_on(engine.score("Once", &none)).expect("no scores").is_empty());
    assert!(block_on(engine.classify("Once", &none)).is_err());
    // A text as long as the context has scores, though no token has room after it.
    let whole = vec![7; engine.context_length() - 1];
    let scores = block_on(engine.score(whole, &["a"]));
    assert!(scores.is_ok() || scores.is_err_and(|error| error.code() == ErrorCode::ContextFull));
}

#[test]
fn lists_give_what_each_gives_alone() {
    let engine = engine();
    let options = || sampled(9).max_tokens(8);
    let prompts: Vec<Prompt> = (0..70)
        .map(|at| match at {
            30 => Prompt::Tokens(vec![u32::MAX]),
            _ => Prompt::Tokens((0..=at).map(|token| token * 17 % 500).collect()),
        })
        .collect();
    let found = block_on(engine.text_completion(prompts.clone(), options()));
    for (at, (found, prompt)) in found.into_iter().zip(prompts).enumerate() {
        match engine.complete(prompt, options()) {
            Ok(alone) => {
                let found = found.expect("a story");
                assert_eq!(found.tokens, alone.tokens, "{at}");
                assert_eq!((found.finish_reason, found.usage), (alone.finish_reason, alone.usage));
                assert_eq!(found.finish_reason, found.done.finish_reason);
                assert_eq!(found.usage.completion_tokens, found.tokens.len());
            }
            Err(error) => assert_eq!(found.expect_err("refused").code(), error.code(), "{at}"),
        }
    }
    let dialogs = [vec![setun::Message::user("Hi")]];
    let answers = block_on(engine.chat_completion(dialogs, GenerateOptions::new()));
    assert_eq!(answers.len(), 1, "a story model has no template");
    assert!(answers.iter().all(Result::is_err));
}

#[test]
fn events_of_a_prompt_are_json() {
    let stream = engine().generate(vec![3, 5], greedy(1).prompt_logprobs(true).top_logprobs(1));
    let events: Vec<_> = stream.expect("a stream").blocking().map(Result::unwrap).collect();
    assert!(matches!(events[..], [Event::Prompt(_), Event::Text(_), Event::Done(_)]));
    let prompt = serde_json::to_value(&events[0]).expect("JSON");
    assert_eq!(prompt["type"], "prompt");
    assert_eq!(prompt["tokens"][0]["token"], 3);
    assert!(prompt["tokens"][0].get("logprob").is_none());
    let top = &prompt["tokens"][1]["top_logprobs"][0];
    assert!(top["token"].is_u64() && top["logprob"].as_f64().is_some_and(|logprob| logprob <= 0.0));
}

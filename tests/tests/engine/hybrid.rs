//! Texts of a model whose layers have recurrent states: each is the same however it came about.

use futures::executor::block_on;
use half::f16;
use setun::{BeamOptions, Engine, EngineBuilder, GenerateOptions, Model, forward::BLOCK_POSITIONS};
use setun_tests::fixture;

use super::{greedy, sampled};

/// Two delta nets' layers and one that attends, of random weights: tokens without sense.
const HYBRID: &str = "families/qwen35-r1/hf";

fn open() -> Model {
    Model::open(fixture(HYBRID)).expect("a model")
}

fn builder() -> EngineBuilder {
    Engine::builder(open())
}

fn prompts() -> [String; 3] {
    ["ab cd".repeat(30), "the".to_owned(), "a story of a dog ".repeat(9)]
}

fn asked() -> Vec<(String, GenerateOptions)> {
    // Random models soon choose an end token, which would leave little to compare.
    let how = [
        greedy(70).min_tokens(70),
        sampled(3).max_tokens(70).min_tokens(70),
        greedy(70).min_tokens(70).repetition_penalty(1.3),
    ];
    prompts().into_iter().flat_map(|prompt| how.clone().map(|how| (prompt.clone(), how))).collect()
}

/// The tokens of each text alone, without anything that was there before.
fn alone() -> Vec<Vec<u32>> {
    let engine = builder().prefix_positions(0).build().expect("an engine");
    asked().into_iter().map(|(prompt, how)| tokens(&engine, &prompt, how)).collect()
}

fn tokens(engine: &Engine, prompt: &str, how: GenerateOptions) -> Vec<u32> {
    engine.complete(prompt, how).expect("a text").tokens
}

#[test]
fn texts_do_not_depend_on_what_runs_beside_them_or_ran_before() {
    let expected = alone();
    let (mut preemptions, mut hits) = (0, 0);
    for (contexts, prefix) in [(1, 0), (2, 0), (2, 4096), (9, 4096)] {
        let builder = builder().context_length(256).contexts(contexts).prefix_positions(prefix);
        let engine = builder.build().expect("an engine");
        for round in 0..2 {
            let streams = asked()
                .into_iter()
                .map(|(prompt, how)| engine.generate(prompt.as_str(), how).expect("a stream"));
            let streams: Vec<_> = streams.collect();
            let found: Vec<_> = streams
                .into_iter()
                .map(|stream| {
                    assert_within_budget(&engine);
                    stream.wait().expect("a text").tokens
                })
                .collect();
            assert_eq!(found, expected, "{contexts} contexts, {prefix} kept, round {round}");
        }
        let metrics = block_on(engine.metrics()).expect("an engine");
        assert!(metrics.prefix_hits == 0 || prefix > 0, "{metrics:?}");
        hits += metrics.prefix_hits;
        preemptions += metrics.preemptions;
        assert_eq!(metrics.used_blocks, 0, "{metrics:?}");
    }
    assert!(preemptions > 0, "sequences displace each other");
    assert!(hits > 0, "snapshots are found");
}

/// Blocks and states together have no more memory than the cache may have.
fn assert_within_budget(engine: &Engine) {
    let model = open();
    let config = model.config();
    let attending = config.layers.iter().filter(|layer| layer.delta_net().is_none()).count();
    let position = attending * 2 * config.kv_heads * config.head_dim * size_of::<f16>();
    let metrics = block_on(engine.metrics()).expect("an engine");
    let most = metrics.blocks * BLOCK_POSITIONS * position;
    assert!(metrics.memory.cache <= most, "{} of {most} bytes", metrics.memory.cache);
}

#[test]
fn drafts_right_and_wrong_change_no_text() {
    let expected = alone();
    let by_text = builder().build().expect("an engine");
    let by_model = builder().draft(open()).build().expect("an engine");
    let mut accepted = vec![];
    for engine in [by_text, by_model] {
        for ((prompt, how), expected) in asked().into_iter().zip(&expected) {
            assert_eq!(&tokens(&engine, &prompt, how.lookahead(7)), expected);
        }
        let metrics = block_on(engine.metrics()).expect("an engine");
        assert!(metrics.accepted_tokens > 0, "{metrics:?}");
        accepted.push((metrics.accepted_tokens, metrics.draft_tokens));
    }
    let (right, all) = accepted[1];
    assert!(right * 10 > all * 8, "its own guesses: {right} of {all}");
}

#[test]
fn a_session_is_saved_with_its_state() {
    let engine = builder().build().expect("an engine");
    let (prompt, how) = asked().swap_remove(0);
    let expected = tokens(&engine, &prompt, how.clone());
    let mut session = engine.session();
    session.push(prompt.as_str()).expect("tokens");
    let bytes = block_on(session.save()).expect("a session");
    {
        let other = builder().build().expect("an engine");
        let restored = block_on(other.restore(bytes.clone())).expect("a session");
        let stream = restored.generate(how.clone()).expect("a stream");
        assert_eq!(stream.wait().expect("a text").tokens, expected);
        let metrics = block_on(other.metrics()).expect("an engine");
        assert!(metrics.cached_prompt_tokens > 0, "{metrics:?}");
    }
}

#[test]
fn beams_fork_states() {
    let (prompt, _) = asked().swap_remove(6);
    let searched = |engine: &Engine| {
        let beams = BeamOptions { num_return_sequences: 3, ..BeamOptions::new(3) };
        let found = engine.beams(prompt.as_str(), beams, greedy(12)).expect("a search").wait();
        let texts = found.expect("texts").texts;
        texts.into_iter().map(|text| (text.tokens, text.score.to_bits())).collect::<Vec<_>>()
    };
    let roomy = searched(&builder().contexts(4).build().expect("an engine"));
    let tight = builder().context_length(256).contexts(3).prefix_positions(0);
    let tight = tight.build().expect("an engine");
    for _ in 0..2 {
        assert_eq!(searched(&tight), roomy);
    }
}

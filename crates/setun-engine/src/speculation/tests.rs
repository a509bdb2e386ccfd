//! Decoding with drafts of every kind against decoding without.

mod distribution;
mod drafts;

use proptest::prelude::*;
use setun_text::SamplerOptions;

use self::drafts::{Kind, Watched};
use super::*;
use crate::{
    ErrorCode, InferencerOptions, TokenLogits,
    fake_model::{Asked, BLOCK_POSITIONS, FakeModel},
};

const VOCABULARY: usize = 12;

/// Of texts that repeat themselves: two tokens tell the next.
fn model() -> FakeModel {
    FakeModel { order: 2, ..FakeModel::new(VOCABULARY, 2) }
}

fn inferencer(model: FakeModel, eos_tokens: Vec<u32>) -> Inferencer {
    let options = InferencerOptions { eos_tokens, ..InferencerOptions::default() };
    Inferencer::new(Box::new(model), options)
}

fn speculative(
    model: FakeModel,
    draft: impl Draft + 'static,
    eos_tokens: Vec<u32>,
) -> SpeculativeInferencer {
    let inferencer = inferencer(model, eos_tokens);
    let draft = Box::new(Watched::new(draft));
    SpeculativeInferencer::new(inferencer, draft, SpeculationOptions::default()).expect("a draft")
}

/// Drafts good, bad and adversarial.
fn draft(kind: usize) -> Box<dyn Draft> {
    let kinds = [Kind::Right, Kind::Wrong, Kind::WrongInTheEnd, Kind::Wild, Kind::Silent];
    let sampler = |options| setun_text::Sampler::new(options).expect("sound options");
    match kind {
        0..5 => Box::new(drafts::Fixed { target: model(), kind: kinds[kind] }),
        5 => Box::new(PromptLookup::new(1, 3)),
        6 => Box::new(DraftModel::new(Box::new(model()), Asked::random().sampler)),
        7 => {
            let other = FakeModel { order: 1, ..FakeModel::new(VOCABULARY, 2) };
            Box::new(DraftModel::new(Box::new(other), sampler(SamplerOptions::default())))
        }
        _ => {
            let other = FakeModel::new(VOCABULARY, 3);
            let short = FakeModel { context: 20, max_rows: 5, ..other };
            Box::new(DraftModel::new(Box::new(short), Asked::random().sampler))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Tokens, logits and cache are those of decoding without a draft, to the bit.
    #[test]
    fn equal_tokens_are_those_without_a_draft(
        prompts in prop::collection::vec(prop::collection::vec(0..12u32, 1..20), 1..4),
        (count, max_rows, kind) in (1..40usize, 1..30usize, 0..9usize),
        (is_greedy, eos, wanted) in (any::<bool>(), prop::option::of(0..12u32), 0..3usize),
    ) {
        let eos: Vec<u32> = eos.into_iter().collect();
        let wanted = [TokenLogits::All, TokenLogits::Last, TokenLogits::None][wanted];
        let new = || if is_greedy { Asked::greedy() } else { Asked::random() };
        let (mut alone, mut with) = (new(), new());

        let mut plain = inferencer(FakeModel { max_rows, ..model() }, eos.clone());
        plain.set_logits(wanted);
        let query = Ragged::from_rows(&prompts);
        let mut cache = plain.cache(prompts.len()).expect("a cache");
        let first = plain.prefill_blocking(&query, &mut cache, &mut alone).expect("a step").next();
        let expected = plain.decode_blocking(&first, &mut cache, count, &mut alone).expect("a text");

        let mut fast = speculative(FakeModel { max_rows, ..model() }, draft(kind), eos);
        fast.inferencer().set_logits(wanted);
        let mut quick = fast.inferencer().cache(prompts.len()).expect("a cache");
        fast.inferencer().prefill_blocking(&query, &mut quick, &mut with).expect("a step");
        let verify = Verify::Equal(&mut with);
        let found = fast.decode_blocking(&first, &mut quick, count, verify).expect("a text");
        prop_assert_eq!(&found.inferred, &expected);
        prop_assert_eq!(found.counts.tokens, expected.token_ids.values().len());
        for row in 0..prompts.len() {
            prop_assert_eq!(quick.tokens(row), cache.tokens(row));
        }
        // The strategy was asked the same.
        alone.steps.sort();
        with.steps.sort();
        prop_assert_eq!(alone.steps, with.steps);
        if is_greedy {
            for (row, length) in quick.lengths().into_iter().enumerate() {
                let new = found.inferred.token_ids.row(row).len();
                quick.truncate_row(row, length - new).expect("a row");
            }
            let sampler = Asked::greedy().sampler;
            let verify = Verify::Distribution(&sampler);
            let again = fast.decode_blocking(&first, &mut quick, count, verify).expect("a text");
            prop_assert_eq!(again.inferred, expected);
        }
    }
}

#[test]
fn a_good_draft_saves_steps_and_a_bad_one_costs_few() {
    let decoded = |draft: Box<dyn Draft>| {
        let counting = FakeModel { context: 400, ..model() };
        let steps = std::sync::Arc::clone(&counting.steps);
        let mut fast = speculative(counting, draft, vec![]);
        let mut cache = fast.inferencer().cache(1).expect("a cache");
        let query = Ragged::from_rows([[3_u32]]);
        let mut greedy = Asked::greedy();
        let found = fast.decode_blocking(&query, &mut cache, 300, Verify::Equal(&mut greedy));
        let counts = found.expect("a text").counts;
        assert_eq!((counts.tokens, cache.lengths()), (300, vec![300]));
        let steps = steps.lock().expect("steps").clone();
        assert_eq!(steps.len(), counts.verifications);
        assert_eq!(steps.iter().sum::<usize>(), counts.proposed + counts.verifications);
        counts
    };
    let right = decoded(draft(0));
    assert_eq!(right.accepted, right.proposed);
    assert!(right.verifications < 40, "{right:?}");
    let wrong = decoded(draft(1));
    assert_eq!((wrong.accepted, wrong.verifications), (0, 300));
    assert!(wrong.proposed < 30, "it was given up: {wrong:?}");
    let lookup = decoded(draft(5));
    assert!(lookup.verifications < 150, "the text comes round: {lookup:?}");
}

/// Rows that are cut, forked, continued otherwise, and calls that fail: what the draft is told
/// stays true ([`Watched`]), and texts are those of the model.
#[test]
fn a_draft_hears_of_every_change() {
    for kind in 0..9 {
        let failing = FakeModel { fails_at: Some(6), ..model() };
        let mut fast = speculative(failing, draft(kind), vec![]);
        let mut plain = inferencer(model(), vec![]);
        let mut greedy = Asked::greedy();
        let mut cache = fast.inferencer().cache(2).expect("a cache");
        let mut same = plain.cache(2).expect("a cache");
        let mut forks = vec![];
        let mut failures = 0; // of the one step that fails
        for round in 0..12_u32 {
            let query = Ragged::from_rows([[round % 5], [round % 3]]);
            let expected = plain.decode_blocking(&query, &mut same, 5, &mut greedy);
            let expected = expected.expect("a text");
            let found = loop {
                let verify = Verify::Equal(&mut greedy);
                match fast.decode_blocking(&query, &mut cache, 5, verify) {
                    Ok(found) => break found,
                    Err(error) => assert_eq!(error.code(), ErrorCode::OutOfMemory),
                }
                failures += 1;
            };
            assert_eq!(found.inferred, expected, "{kind}, round {round}");
            match round % 4 {
                0 => [&mut cache, &mut same].into_iter().for_each(|cache| {
                    cache.truncate(3 + round as usize);
                }),
                1 => {
                    let fork = fast.inferencer().fork(&cache).expect("a fork");
                    forks.push(std::mem::replace(&mut cache, fork));
                }
                2 => {
                    let more = Ragged::from_rows([&[1_u32, 2][..], &[]]);
                    for (inferencer, cache) in
                        [(fast.inferencer(), &mut cache), (&mut plain, &mut same)]
                    {
                        while inferencer.prefill_blocking(&more, cache, &mut greedy).is_err() {
                            failures += 1;
                        }
                    }
                }
                _ => forks.clear(),
            }
        }
        assert_eq!(failures, 1);
        drop((cache, forks));
        let mut last = fast.inferencer().cache(1).expect("a cache");
        let query = Ragged::from_rows([[1]]);
        fast.decode_blocking(&query, &mut last, 5, Verify::Equal(&mut greedy)).expect("a text");
        assert_eq!(fast.known.len(), 1, "rows that are gone are forgotten");
    }
}

#[test]
fn a_cache_that_holds_the_text_holds_it_with_a_draft() {
    let query = Ragged::from_rows([[3], [4]]);
    for count in 1..30_usize {
        let cache_positions = 2 * count.next_multiple_of(BLOCK_POSITIONS);
        let options = InferencerOptions { cache_positions, ..InferencerOptions::default() };
        let inferencer = Inferencer::new(Box::new(model()), options);
        let (draft, options) = (draft(0), SpeculationOptions::default());
        let mut fast = SpeculativeInferencer::new(inferencer, draft, options).expect("a draft");
        let mut cache = fast.inferencer().cache(2).expect("a cache");
        let mut greedy = Asked::greedy();
        let verify = Verify::Equal(&mut greedy);
        let found = fast.decode_blocking(&query, &mut cache, count, verify).expect("it fits");
        assert_eq!(found.counts.tokens, 2 * count);
        assert!(count < 12 || found.counts.accepted > 0, "{:?}", found.counts);
    }
}

#[test]
fn the_cost_of_a_row_is_measured() {
    let takes = [20, 4].map(std::time::Duration::from_millis);
    let mut fast = speculative(FakeModel { takes, ..model() }, draft(4), vec![]);
    let cost = fast.calibrate_blocking().expect("no step fails");
    // 4 ms beside 24 ms, if nothing delays a step.
    assert!((0.08..0.3).contains(&cost), "{cost}");
    assert_eq!((fast.options.row_cost, fast.inferencer.pool.high_water_blocks()), (cost, 0));
}

#[test]
fn a_draft_that_cannot_serve_is_refused() {
    let other = DraftModel::new(Box::new(FakeModel::new(7, 1)), Asked::greedy().sampler);
    let target = inferencer(model(), vec![]);
    let options = SpeculationOptions::default();
    let Err(error) = SpeculativeInferencer::new(target, Box::new(other), options) else {
        panic!("another vocabulary");
    };
    assert_eq!(error.to_string(), "the vocabulary of a draft: expected 12, found 7");

    let broken = FakeModel { fails_at: Some(0), ..model() };
    let broken = DraftModel::new(Box::new(broken), Asked::greedy().sampler);
    let mut fast = speculative(model(), broken, vec![]);
    let mut cache = fast.inferencer().cache(1).expect("a cache");
    let (query, mut greedy) = (Ragged::from_rows([[3]]), Asked::greedy());
    let mut decode = || fast.decode_blocking(&query, &mut cache, 9, Verify::Equal(&mut greedy));
    assert_eq!(decode().expect_err("the draft fails").code(), ErrorCode::OutOfMemory);
    let counts = decode().expect("it fails once").counts;
    assert_eq!((counts.tokens, counts.accepted), (9, counts.proposed));
}

//! Searches of an inferencer over a model that remembers what its cache holds.

use setun_text::{Sampler, SamplerOptions};

use crate::{
    Beam, BeamOptions, ErrorCode, Inferencer, InferencerOptions, Ragged,
    fake_model::{Asked, FakeModel},
};

const VOCABULARY: usize = 24;
const EOS: u32 = 3;

fn inferencer(model: FakeModel) -> Inferencer {
    let options = InferencerOptions { eos_tokens: vec![EOS], ..InferencerOptions::default() };
    Inferencer::new(Box::new(model), options)
}

fn sampler() -> Sampler {
    Sampler::new(SamplerOptions::default()).expect("sound options")
}

fn rows(rows: &[&[u32]]) -> Ragged<u32> {
    Ragged::from_rows(rows)
}

/// Blocks that are in use once the caches that are gone have been collected.
fn used(inferencer: &mut Inferencer) -> usize {
    drop(inferencer.cache(1));
    inferencer.pool.max_blocks() - inferencer.pool.free_blocks()
}

#[test]
fn searches_in_one_batch_find_what_each_finds_alone() {
    let mut inferencer = inferencer(FakeModel::new(VOCABULARY, 7));
    let options = BeamOptions { best: 4, ..BeamOptions::new(4) };
    let mut found = |prompts: &[&[u32]]| {
        let cache = inferencer.cache(prompts.len()).expect("a cache");
        let query = rows(prompts);
        inferencer.beams_blocking(&query, &cache, 9, &options, &sampler()).expect("texts")
    };
    let prompts: [&[u32]; 3] = [&[5, 6, 7, 8, 9], &[], &[1]];
    let together = found(&prompts);
    assert_eq!(together.iter().map(Vec::len).collect::<Vec<_>>(), [4, 0, 4]);
    for row in [0, 2] {
        assert_eq!(found(&prompts[row..=row])[0], together[row]);
    }
    let scores: Vec<_> = together[0].iter().map(|beam| beam.score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert_eq!(used(&mut inferencer), 0, "nothing is left");
}

#[test]
fn a_search_goes_on_from_a_cache_and_leaves_it_as_it_is() {
    let mut inferencer = inferencer(FakeModel::new(VOCABULARY, 7));
    let options = BeamOptions::new(3);
    let prompt: &[u32] = &[5, 6, 7, 8, 9, 10];
    let search = |inferencer: &mut Inferencer, known: usize| -> Vec<Beam> {
        let mut cache = inferencer.cache(1).expect("a cache");
        if known > 0 {
            let query = rows(&[&prompt[..known]]);
            inferencer.prefill_blocking(&query, &mut cache, &mut Asked::greedy()).expect("a step");
        }
        let query = rows(&[&prompt[known..]]);
        let found = inferencer.beams_blocking(&query, &cache, 6, &options, &sampler());
        assert_eq!(cache.tokens(0), &prompt[..known]);
        let next = inferencer.decode_blocking(&rows(&[&[2]]), &mut cache, 2, &mut Asked::greedy());
        next.expect("the cache serves as before");
        found.expect("texts").remove(0)
    };
    let whole = search(&mut inferencer, 0);
    for known in 1..prompt.len() {
        assert_eq!(search(&mut inferencer, known), whole, "{known} in the cache");
    }
}

#[test]
fn one_beam_is_the_greedy_text() {
    let mut inferencer = inferencer(FakeModel::new(VOCABULARY, 9));
    for first in 4..12 {
        let query = rows(&[&[first, 4]]);
        let (cache, mut other) =
            (inferencer.cache(1).expect("a cache"), inferencer.cache(1).expect("a cache"));
        let options = BeamOptions::new(1);
        let beams = inferencer.beams_blocking(&query, &cache, 8, &options, &sampler());
        let mut greedy = Asked::greedy();
        let start = inferencer.prefill_blocking(&query, &mut other, &mut greedy).expect("a step");
        let rest = inferencer.decode_blocking(&start.next(), &mut other, 7, &mut greedy);
        let text = [start.token_ids.row(0), rest.expect("a text").token_ids.row(0)].concat();
        assert_eq!(beams.expect("texts")[0][0].tokens, text);
    }
}

#[test]
fn a_search_that_fails_frees_its_memory() {
    let model = FakeModel { fails_at: Some(3), ..FakeModel::new(VOCABULARY, 7) };
    let mut inferencer = inferencer(model);
    let cache = inferencer.cache(1).expect("a cache");
    let (query, options) = (rows(&[&[5, 6, 7]]), BeamOptions::new(4));
    let failed = inferencer.beams_blocking(&query, &cache, 20, &options, &sampler());
    assert_eq!(failed.expect_err("the fourth step").code(), ErrorCode::OutOfMemory);
    assert_eq!(used(&mut inferencer), 0);
    let again = inferencer.beams_blocking(&query, &cache, 20, &options, &sampler());
    assert_eq!(again.expect("texts")[0].len(), 1);
    let mut refused = |query: &[u32], most, options: &BeamOptions| {
        let found = inferencer.beams_blocking(&rows(&[query]), &cache, most, options, &sampler());
        found.expect_err("a bad call").to_string()
    };
    assert!(refused(&[5], 0, &options).contains("max_new_tokens"));
    assert!(refused(&[5], 1, &BeamOptions::new(0)).contains("beams"));
    assert!(refused(&[99], 1, &options).contains("token 99"));
    assert!(refused(&[5], 97, &options).contains("97 positions"));
}

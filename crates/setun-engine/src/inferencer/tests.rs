//! An inferencer over a model that remembers what its cache holds.

use proptest::prelude::*;
use setun_text::{SamplerOptions, Step, TextError};

use super::*;
use crate::{
    ErrorCode,
    fake_model::{Asked, BLOCK_POSITIONS, FakeModel},
};

const VOCABULARY: usize = 40;

fn inferencer(model: FakeModel) -> Inferencer {
    Inferencer::new(Box::new(model), InferencerOptions::default())
}

fn model() -> FakeModel {
    FakeModel::new(VOCABULARY, 1)
}

/// What the model says after each token of a text.
fn expected_logits(text: &[u32]) -> Vec<f32> {
    (1..=text.len()).flat_map(|len| model().logits(&text[..len])).collect()
}

/// A greedy continuation, by the model's definition.
fn expected_greedy(text: &[u32], count: usize) -> Vec<u32> {
    model().greedy(text, count)
}

fn rows(rows: &[&[u32]]) -> Ragged<u32> {
    Ragged::from_rows(rows)
}

#[test]
fn a_prompt_and_its_continuation_have_their_shapes() {
    let mut inferencer = inferencer(model());
    let mut cache = inferencer.cache(2).expect("a cache");
    let prompts: [&[u32]; 2] = [&[3, 1, 4, 1, 5, 9], &[2, 7]];
    let mut greedy = Asked::greedy();
    let first =
        inferencer.prefill_blocking(&rows(&prompts), &mut cache, &mut greedy).expect("a step");
    assert_eq!((first.token_ids.lengths(), first.token_logits.lengths()), (vec![1, 1], vec![6, 2]));
    assert_eq!((first.token_logits.width(), cache.lengths()), (VOCABULARY, vec![6, 2]));
    let rest =
        inferencer.decode_blocking(&first.next(), &mut cache, 5, &mut greedy).expect("a text");
    assert_eq!((rest.token_ids.lengths(), rest.token_logits.lengths()), (vec![5; 2], vec![5; 2]));
    assert_eq!(cache.lengths(), [6 + 5, 2 + 5], "grown by the new tokens");
    for (row, prompt) in prompts.into_iter().enumerate() {
        assert_eq!(first.token_logits.row(row), expected_logits(prompt));
        let new = [first.token_ids.row(row), rest.token_ids.row(row)].concat();
        assert_eq!(new, expected_greedy(prompt, 6));
        let text = [prompt, &new].concat();
        assert_eq!(cache.tokens(row), &text[..text.len() - 1], "all but the last have been run");
        let expected = expected_logits(&text[..text.len() - 1]);
        assert_eq!(rest.token_logits.row(row), &expected[prompt.len() * VOCABULARY..]);
    }
    // What was asked of the strategy: prompts that stay what they are, histories with all.
    let (history, prompt_tokens) = greedy.steps.last().expect("choices");
    assert_eq!((history.as_slice(), *prompt_tokens), (cache.tokens(1), 2));
}

#[test]
fn rows_end_with_their_end_token_each_by_itself() {
    let prompts: [&[u32]; 3] = [&[8], &[1, 2, 3], &[30, 31]];
    let texts = prompts.map(|prompt| expected_greedy(prompt, 12));
    let eos = texts[1][4]; // the second row ends with its fifth token, if not before
    let ends = texts.clone().map(|text| text.iter().position(|&token| token == eos));
    let options = InferencerOptions { eos_tokens: vec![eos], ..InferencerOptions::default() };
    let mut inferencer = Inferencer::new(Box::new(model()), options);
    let mut cache = inferencer.cache(3).expect("a cache");
    let mut greedy = Asked::greedy();
    let first =
        inferencer.prefill_blocking(&rows(&prompts), &mut cache, &mut greedy).expect("a step");
    assert_eq!(first.ended, [false; 3], "the example is of texts that begin");
    let rest =
        inferencer.decode_blocking(&first.next(), &mut cache, 11, &mut greedy).expect("a text");
    for row in 0..3 {
        let until = ends[row].map_or(12, |end| end + 1);
        assert_eq!(rest.token_ids.row(row), &texts[row][1..until], "row {row}");
        assert_eq!(rest.ended[row], ends[row].is_some());
        assert_eq!(cache.lengths()[row], prompts[row].len() + until - 1);
        assert_eq!(rest.next().row(row).is_empty(), rest.ended[row]);
    }
    assert!(rest.ended[1] && rest.ended.contains(&false), "the example tells them apart");
    // Rows that have ended are not run any more.
    let before = cache.lengths();
    let ended = rows(&[&[], &[], &[]]);
    let none = inferencer.decode_blocking(&ended, &mut cache, 1, &mut greedy).expect("nothing");
    assert_eq!((none.token_ids.lengths(), none.ended), (vec![0; 3], vec![false; 3]));
    let more =
        inferencer.decode_blocking(&rest.next(), &mut cache, 1, &mut greedy).expect("a text");
    assert!(more.token_ids.row(1).is_empty() && more.token_logits.row(1).is_empty());
    assert_eq!(cache.lengths()[1], before[1]);
}

#[test]
fn logits_are_given_of_the_positions_that_are_wanted() {
    let prompt: &[u32] = &[5, 6, 7];
    for (logits, of_prompt, of_text) in
        [(TokenLogits::All, 3, 4), (TokenLogits::Last, 1, 1), (TokenLogits::None, 0, 0)]
    {
        let options = InferencerOptions { logits, ..InferencerOptions::default() };
        let mut inferencer = Inferencer::new(Box::new(model()), options);
        let (mut cache, mut greedy) = (inferencer.cache(1).expect("a cache"), Asked::greedy());
        let first = inferencer.prefill_blocking(&rows(&[prompt]), &mut cache, &mut greedy);
        let first = first.expect("a step");
        let rest = inferencer.decode_blocking(&first.next(), &mut cache, 4, &mut greedy);
        let rest = rest.expect("a text");
        let all = expected_logits(cache.tokens(0));
        let (prompt, text) = all.split_at(3 * VOCABULARY);
        assert_eq!(first.token_logits.row(0), &prompt[(3 - of_prompt) * VOCABULARY..]);
        assert_eq!(rest.token_logits.row(0), &text[(4 - of_text) * VOCABULARY..]);
    }
}

/// Always the same token.
struct First;

impl setun_text::Strategy for First {
    fn choose(&mut self, _: &[f32], _: &Step<'_>) -> Result<u32, TextError> {
        Ok(0)
    }
}

#[test]
fn a_step_has_no_more_logits_than_memory_is_meant_for() {
    let wide = FakeModel::new(1 << 22, 1); // 16 MiB a row
    let steps = std::sync::Arc::clone(&wide.steps);
    for (logits, expected) in [(TokenLogits::All, &[4, 1][..]), (TokenLogits::Last, &[5])] {
        let options = InferencerOptions { logits, ..InferencerOptions::default() };
        let mut inferencer = Inferencer::new(Box::new(wide.clone()), options);
        let mut cache = inferencer.cache(1).expect("a cache");
        let query = rows(&[&[1, 2, 3, 4, 5]]);
        inferencer.prefill_blocking(&query, &mut cache, &mut First).expect("a step");
        assert_eq!(std::mem::take(&mut *steps.lock().expect("steps")), expected);
    }
}

#[test]
fn caches_that_are_cut_or_dropped_give_their_memory_back() {
    let options = InferencerOptions {
        cache_positions: 64,
        logits: TokenLogits::None,
        ..InferencerOptions::default()
    };
    let mut inferencer = Inferencer::new(Box::new(model()), options);
    let used = |inferencer: &mut Inferencer| {
        inferencer.collect();
        64 / BLOCK_POSITIONS - inferencer.pool.free_blocks()
    };
    let mut greedy = Asked::greedy();
    let prompt: Vec<u32> = (0..10).collect();
    let mut caches = [0; 2].map(|_| inferencer.cache(1).expect("a cache"));
    for cache in &mut caches {
        inferencer.prefill_blocking(&rows(&[&prompt]), cache, &mut greedy).expect("a step");
    }
    assert_eq!(used(&mut inferencer), 2 * 3);
    let [mut cut, dropped] = caches;
    drop(dropped);
    assert_eq!(used(&mut inferencer), 3);
    cut.truncate(0);
    let all: Vec<u32> = (0..64).map(|place| place % 40).collect();
    inferencer.prefill_blocking(&rows(&[&all]), &mut cut, &mut greedy).expect("all is free");
}

#[test]
fn a_call_that_fails_leaves_the_cache_as_it_was() {
    let prompt: Vec<u32> = (0..30).collect();
    for fails_at in 0..6 {
        let failing = FakeModel { fails_at: Some(fails_at), max_rows: 12, ..model() };
        let mut inferencer = inferencer(failing);
        let (mut cache, mut greedy) = (inferencer.cache(1).expect("a cache"), Asked::greedy());
        // Three steps of the prompt, three of decoding: one of the two fails, and goes well again.
        let mut first = inferencer.prefill_blocking(&rows(&[&prompt]), &mut cache, &mut greedy);
        if fails_at < 3 {
            assert_eq!(first.expect_err("a step fails").code(), ErrorCode::OutOfMemory);
            assert_eq!(cache.lengths(), [0]);
            first = inferencer.prefill_blocking(&rows(&[&prompt]), &mut cache, &mut greedy);
        }
        let query = first.expect("a step").next();
        let mut rest = inferencer.decode_blocking(&query, &mut cache, 3, &mut greedy);
        if fails_at >= 3 {
            assert_eq!(rest.expect_err("a step fails").code(), ErrorCode::OutOfMemory);
            assert_eq!(cache.lengths(), [30]);
            rest = inferencer.decode_blocking(&query, &mut cache, 3, &mut greedy);
        }
        let tokens = [query.row(0), rest.expect("a text").token_ids.row(0)].concat();
        assert_eq!(tokens, expected_greedy(&prompt, 4), "failed at {fails_at}");
    }
}

#[test]
fn calls_that_do_not_fit_are_refused_before_anything_runs() {
    let steps = model();
    let counter = std::sync::Arc::clone(&steps.steps);
    let options = InferencerOptions { cache_positions: 160, ..InferencerOptions::default() };
    let mut inferencer = Inferencer::new(Box::new(steps), options.clone());
    let mut other = Inferencer::new(Box::new(model()), options);
    let mut greedy = Asked::greedy();
    let mut cache = inferencer.cache(2).expect("a cache");
    let mut prefill = |query: &[&[u32]], cache: &mut InferencerCache| {
        let error = inferencer.prefill_blocking(&rows(query), cache, &mut greedy);
        error.expect_err("a wrong call")
    };
    let shape = |error: Error| match error {
        Error::BatchShape { expected, found, .. } => (expected, found),
        error => panic!("{error}"),
    };
    assert_eq!(shape(prefill(&[&[1]], &mut cache)), (2, 1));
    assert_eq!(shape(prefill(&[&[1], &[2], &[3]], &mut cache)), (2, 3));
    assert_eq!(shape(prefill(&[&[], &[]], &mut cache)), (1, 0));
    let error = prefill(&[&[1, 2], &[3, 4, 40]], &mut cache);
    let found = "row 1, place 2: token 40, expected one below 40";
    assert_eq!((error.to_string().as_str(), error.code()), (found, ErrorCode::BadOption));
    let error = prefill(&[&[1], &[0; 97]], &mut cache);
    let found = "row 1 would come to 97 positions, the context holds 96";
    assert_eq!((error.to_string().as_str(), error.code()), (found, ErrorCode::ContextFull));
    let error = prefill(&[&[1; 90], &[0; 90]], &mut cache);
    assert_eq!(error.code(), ErrorCode::OutOfMemory, "46 blocks of 40: {error}");
    let error = prefill(&[&[1], &[1]], &mut other.cache(2).expect("a cache"));
    assert!(matches!(error, Error::OtherCache));
    assert_eq!(error.code(), ErrorCode::BadOption);

    let mut decode = |query: &[&[u32]], most, cache: &mut InferencerCache| {
        let error = inferencer.decode_blocking(&rows(query), cache, most, &mut greedy);
        error.expect_err("a wrong call")
    };
    assert_eq!(shape(decode(&[&[1], &[1, 2]], 1, &mut cache)), (1, 2));
    let error = decode(&[&[1], &[2]], 0, &mut cache);
    assert!(matches!(error, Error::BadOption { option: "max_new_tokens", .. }), "{error}");
    let error = decode(&[&[1], &[]], 97, &mut cache);
    assert!(matches!(error, Error::RowFull { row: 0, positions: 97, context: 96 }), "{error}");
    let error = inferencer.cache(0).expect_err("no rows");
    assert!(matches!(error, Error::BadOption { option: "rows", .. }), "{error}");
    let error = cache.set_draws(2, 0, 0).expect_err("no such row");
    assert_eq!(shape(error), (2, 2));
    assert_eq!((cache.lengths(), counter.lock().expect("steps").len()), (vec![0, 0], 0));

    // All that fits, to the last position.
    let full = inferencer.prefill_blocking(&rows(&[&[1; 60], &[2; 96]]), &mut cache, &mut greedy);
    assert_eq!(full.expect("it fits").token_ids.lengths(), [1, 1]);
}

#[test]
fn each_row_draws_the_numbers_that_it_is_told() {
    let mut inferencer = inferencer(model());
    let mut random = Asked::new(SamplerOptions { temperature: 2.0, ..SamplerOptions::default() });
    let prompt: &[u32] = &[4, 5, 6];
    let mut texts = |draws: &[(u64, u64)]| -> Vec<Vec<u32>> {
        let mut cache = inferencer.cache(draws.len()).expect("a cache");
        for (row, &(seed, sequence)) in draws.iter().enumerate() {
            cache.set_draws(row, seed, sequence).expect("a row");
        }
        let query = Ragged::from_rows(draws.iter().map(|_| prompt));
        let first = inferencer.prefill_blocking(&query, &mut cache, &mut random).expect("a step");
        let rest = inferencer.decode_blocking(&first.next(), &mut cache, 8, &mut random);
        let rest = rest.expect("a text");
        let text = |row| [first.token_ids.row(row), rest.token_ids.row(row)].concat();
        (0..draws.len()).map(text).collect()
    };
    let together = texts(&[(7, 0), (7, 1), (8, 0), (7, 0)]);
    assert!(together[0] == together[3], "the same numbers");
    assert!(together[0] != together[1] && together[0] != together[2]);
    assert_eq!(texts(&[(7, 1)]), together[1..2], "alone as in a batch");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Rows with any cuts of their prompts, next to others, truncated and decoded again.
    #[test]
    fn a_row_is_what_it_is_alone(
        prompts in prop::collection::vec(prop::collection::vec(0..40u32, 1..40), 1..6),
        cuts in prop::collection::vec(1..20usize, 1..5),
        (count, max_rows) in (1..12usize, 1..30usize),
    ) {
        let mut inferencer = inferencer(FakeModel { max_rows, ..model() });
        let mut cache = inferencer.cache(prompts.len()).expect("a cache");
        let mut random = Asked::random();
        let mut logits = vec![vec![]; prompts.len()];
        let (mut query, mut done, mut cuts) = (None, 0, cuts.into_iter().cycle());
        while done < prompts.iter().map(Vec::len).max().unwrap_or(0) {
            let cut = cuts.next().expect("a cycle");
            let part = |prompt: &Vec<u32>| {
                prompt[done.min(prompt.len())..(done + cut).min(prompt.len())].to_vec()
            };
            let parts = Ragged::from_rows(prompts.iter().map(part));
            done += cut;
            let found = inferencer.prefill_blocking(&parts, &mut cache, &mut random).expect("a step");
            let next = query.get_or_insert_with(|| vec![0; prompts.len()]);
            for row in 0..prompts.len() {
                logits[row].extend_from_slice(found.token_logits.row(row));
                if let [token] = *found.token_ids.row(row) {
                    next[row] = token;
                }
            }
        }
        let query = Ragged::from_rows(query.unwrap_or_default().chunks(1));
        let texts = inferencer.decode_blocking(&query, &mut cache, count, &mut random).expect("a text");
        for row in 0..prompts.len() {
            prop_assert_eq!(&logits[row], &expected_logits(&prompts[row]));
        }
        let shortest = prompts.iter().map(Vec::len).min().unwrap_or(0);
        cache.truncate(shortest);
        let rest = Ragged::from_rows(prompts.iter().map(|prompt| &prompt[shortest..]));
        if !rest.values().is_empty() {
            inferencer.prefill_blocking(&rest, &mut cache, &mut random).expect("a step");
        }
        let again = inferencer.decode_blocking(&query, &mut cache, count, &mut random).expect("a text");
        prop_assert_eq!(&again, &texts);
        for (row, prompt) in prompts.iter().enumerate() {
            let mut cache = inferencer.cache(1).expect("a cache");
            cache.set_draws(0, 0, row as u64).expect("a row");
            let whole = Ragged::from_rows([prompt]);
            let first = inferencer.prefill_blocking(&whole, &mut cache, &mut random).expect("a step");
            prop_assert_eq!(first.token_ids.row(0), query.row(row));
            let alone = inferencer.decode_blocking(&first.next(), &mut cache, count, &mut random);
            let alone = alone.expect("a text");
            prop_assert_eq!(alone.token_ids.row(0), texts.token_ids.row(row));
            prop_assert_eq!(alone.token_logits.row(0), texts.token_logits.row(row));
        }
    }
}

//! Searches against what the definitions say, and against every text there is.

use proptest::prelude::*;
use setun_text::{Logprobs, OptionValue, Sampler, SamplerOptions, TextError};

use super::*;
use crate::error::Error;

const EOS: u32 = 0;

/// Logits that follow from the last token.
type Bigrams = Vec<Vec<f32>>;

fn sampler(options: SamplerOptions) -> Sampler {
    Sampler::new(options).expect("sound options")
}

/// Plays a search over a table; the texts found and the steps taken.
fn play(table: &Bigrams, mut search: BeamSearch) -> Result<(Vec<Beam>, usize), Error> {
    let mut steps = 0;
    while !search.rows().is_empty() {
        let rows = search.rows();
        let last = |row: &&[u32]| table[*row.last().expect("a prompt") as usize].clone();
        let logits: Vec<_> = rows.iter().map(last).collect();
        search.advance(&logits, &mut |_, _| Ok(false))?;
        steps += 1;
    }
    Ok((search.finish(FinishReason::Aborted), steps))
}

fn search(options: BeamOptions, max_tokens: usize) -> BeamSearch {
    options.check().expect("sound options");
    BeamSearch::new(&[1], max_tokens, options, sampler(SamplerOptions::default()), vec![EOS])
}

fn found(table: &Bigrams, options: BeamOptions, max_tokens: usize) -> Vec<Beam> {
    play(table, search(options, max_tokens)).expect("texts").0
}

/// All texts with their scores, the best first: each ends with its first end token, or is as long
/// as may be.
fn all_texts(table: &Bigrams, max_tokens: usize, length_penalty: f64) -> Vec<(f64, Vec<u32>)> {
    let mut open = vec![(0.0, vec![1_u32])];
    let mut ended = vec![];
    for length in 1..=max_tokens {
        for (sum, text) in std::mem::take(&mut open) {
            let row = &table[text[text.len() - 1] as usize];
            for token in 0..u32::try_from(row.len()).expect("few") {
                let sum = sum + Logprobs::new(row).of(token);
                let text = [&text[..], &[token]].concat();
                if token == EOS || length == max_tokens {
                    let length = f64::from(u16::try_from(length).expect("short"));
                    ended.push((sum / length.powf(length_penalty), text[1..].to_vec()));
                } else {
                    open.push((sum, text));
                }
            }
        }
    }
    ended.sort_by(|a, b| b.0.total_cmp(&a.0));
    ended
}

fn tables(tokens: usize) -> impl Strategy<Value = Bigrams> {
    let row = proptest::collection::vec(-4.0_f32..4.0, tokens);
    proptest::collection::vec(row, tokens)
}

proptest! {
    /// With beams for all texts nothing is lost, whatever the length penalty says of them.
    #[test]
    fn enough_beams_find_the_best_of_all_texts(
        table in tables(3),
        max_tokens in 1..5_usize,
        length_penalty in -1.0_f64..2.0,
        never in any::<bool>(),
    ) {
        let early_stopping = if never { EarlyStopping::Never } else { EarlyStopping::Unlikely };
        let options = BeamOptions {
            length_penalty, early_stopping, num_return_sequences: 5, ..BeamOptions::new(100)
        };
        let expected = all_texts(&table, max_tokens, length_penalty);
        let texts = found(&table, options, max_tokens);
        prop_assert_eq!(texts.len(), expected.len().min(5));
        for (beam, (score, tokens)) in texts.iter().zip(&expected) {
            prop_assert!((beam.score - score).abs() < 1e-5, "{beam:?}, expected {tokens:?}: {score}");
            let there = expected.iter().find(|(_, tokens)| *tokens == beam.tokens);
            prop_assert!((beam.score - there.expect("a text").0).abs() < 1e-5);
            let reason = if beam.tokens.ends_with(&[EOS]) {
                FinishReason::Stop
            } else {
                FinishReason::Length
            };
            prop_assert_eq!(beam.finish_reason, reason);
        }
        for (index, beam) in texts.iter().enumerate() {
            prop_assert!(texts[..index].iter().all(|other| other.tokens != beam.tokens));
        }
    }

    /// No text that is found with few beams is better than the best there is.
    #[test]
    fn few_beams_give_texts_and_their_scores(
        table in tables(4),
        beams in 1..5_usize,
        max_tokens in 1..6_usize,
        stopping in 0..3_usize,
    ) {
        let early_stopping = [EarlyStopping::Full, EarlyStopping::Unlikely, EarlyStopping::Never][stopping];
        let options = BeamOptions { early_stopping, num_return_sequences: beams, ..BeamOptions::new(beams) };
        let all = all_texts(&table, max_tokens, 1.0);
        let texts = found(&table, options, max_tokens);
        prop_assert_eq!(texts.len(), beams);
        prop_assert!(texts.is_sorted_by(|a, b| a.score >= b.score));
        for beam in &texts {
            let there = all.iter().find(|(_, tokens)| *tokens == beam.tokens);
            prop_assert!((beam.score - there.expect("a text").0).abs() < 1e-5);
        }
    }

    /// One beam is the greedy text, which nothing is better than when it ends.
    #[test]
    fn one_beam_is_greedy(table in tables(5), max_tokens in 1..8_usize) {
        let options =
            BeamOptions { early_stopping: EarlyStopping::Full, ..BeamOptions::new(1) };
        let texts = found(&table, options, max_tokens);
        let mut text = vec![1_u32];
        while text.len() <= max_tokens && (text.len() == 1 || !text.ends_with(&[EOS])) {
            let row = &table[text[text.len() - 1] as usize];
            text.push(Logprobs::new(row).top(1)[0].0);
        }
        prop_assert_eq!(&texts[0].tokens, &text[1..]);
    }
}

/// Logits whose softmax has these probabilities.
fn logits(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln()).collect()
}

#[test]
fn equal_candidates_go_to_the_lower_beam_and_token() {
    let table = vec![logits(&[0.25; 4]); 4];
    let options = BeamOptions { num_return_sequences: 3, ..BeamOptions::new(3) };
    let texts = found(&table, options, 2);
    // At first the candidates are 0 (the end), 1, 2 and 3; then those after 1, of which 0 ends.
    let tokens: Vec<_> = texts.iter().map(|beam| beam.tokens.clone()).collect();
    assert_eq!(tokens, [vec![0], vec![1, 0], vec![1, 1]]);
    assert_eq!(texts[0].score, texts[1].score, "the mean of equal numbers");
}

#[test]
fn a_search_ends_when_it_is_cancelled() {
    // Token 2 comes first with 0.6, the end with 0.3; after a 2 another one with 0.87, or the end.
    let table = vec![vec![0.0; 3], logits(&[0.3, 0.1, 0.6]), logits(&[0.12, 0.01, 0.87])];
    let steps = |early_stopping, length_penalty| {
        let options = BeamOptions { length_penalty, early_stopping, ..BeamOptions::new(2) };
        let (texts, steps) = play(&table, search(options, 30)).expect("texts");
        (steps, texts[0].tokens.len())
    };
    // Two texts are found in as many steps: 0 with 0.3, and 2 0 with 0.072.
    assert_eq!(steps(EarlyStopping::Full, 0.0), (2, 1));
    // The beam of twos has 0.6, 0.522 and so on: more than 0.072 for some time.
    let beam = |n: i32| 0.6 * 0.87_f64.powi(n - 1);
    let expected = (1..99).find(|&n| beam(n) <= 0.072).expect("some time");
    assert_eq!(steps(EarlyStopping::Unlikely, 0.0), (usize::try_from(expected).expect("few"), 1));
    assert_eq!(steps(EarlyStopping::Unlikely, 1.0), (30, 30), "the longest has the best mean");
}

#[test]
fn a_search_that_cannot_gain_ends_before_the_most_tokens() {
    // Ends are likely everywhere, so sums fall fast.
    let table = vec![logits(&[0.6, 0.3, 0.1]); 3];
    let steps = |early_stopping, length_penalty, max_tokens| {
        let options = BeamOptions { length_penalty, early_stopping, ..BeamOptions::new(2) };
        play(&table, search(options, max_tokens)).expect("texts").1
    };
    // Found: 0 with ln 0.6, then 1 0 with ln 0.18. The best beam has ln 0.3 and then ln 0.09.
    assert_eq!(steps(EarlyStopping::Full, 1.0, 100), 2);
    // Means: ln 0.6 = −0.51 and ln 0.18 / 2 = −0.86; the beam's is ln 0.09 / 2 = −1.20.
    assert_eq!(steps(EarlyStopping::Unlikely, 1.0, 100), 2);
    // Over 100 tokens the beam's would be −0.024: it goes on until ln 0.3^n / 100 is below the
    // worse of the two means.
    let expected = (1..99_u8).find(|&n| f64::from(n) * 0.3_f64.ln() / 100.0 <= 0.18_f64.ln() / 2.0);
    assert_eq!(steps(EarlyStopping::Never, 1.0, 100), usize::from(expected.expect("some time")));
    assert_eq!(steps(EarlyStopping::Never, 0.0, 100), 2, "no length helps");
}

#[test]
fn a_penalty_acts_on_log_probabilities() {
    let table = vec![vec![0.0; 3], logits(&[0.01, 0.5, 0.49]), logits(&[0.01, 0.5, 0.49])];
    let options = SamplerOptions {
        repetition_penalty: 2.0,
        temperature: 0.7,
        top_k: 1,
        ..Default::default()
    };
    let beam = BeamOptions::new(1);
    let search = BeamSearch::new(&[1], 1, beam, sampler(options), vec![EOS]);
    let (texts, _) = play(&table, search).expect("texts");
    // ln 0.5 is doubled, where a positive logit would be halved; no temperature, no filter.
    assert_eq!(texts[0].tokens, [2]);
    assert!((texts[0].score - 0.49_f64.ln()).abs() < 1e-6);
    let options = SamplerOptions { allowed_tokens: Some(vec![9]), ..Default::default() };
    let search = BeamSearch::new(&[1], 1, beam, sampler(options), vec![EOS]);
    let none = play(&table, search);
    assert!(matches!(none, Err(Error::Text(TextError::NoTokenLeft))), "{none:?}");
}

#[test]
fn groups_shun_what_earlier_groups_have_taken() {
    let table = vec![logits(&[0.001, 0.5, 0.3, 0.199]); 4];
    let texts = |diversity_penalty| {
        let options = BeamOptions {
            num_beam_groups: 2,
            num_return_sequences: 2,
            diversity_penalty,
            length_penalty: 0.0,
            ..BeamOptions::new(2)
        };
        found(&table, options, 2)
    };
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-5, "{found}");
    // The first group takes 1 twice. The second pays 0.4 for a 1, less than ln 0.5 − ln 0.3 is.
    let alike = texts(0.4);
    assert_eq!((&alike[0].tokens[..], &alike[1].tokens[..]), (&[1, 1][..], &[1, 1][..]));
    close(alike[1].score, 2.0 * (0.5_f64.ln() - 0.4));
    let different = texts(0.6);
    assert_eq!((&different[0].tokens[..], &different[1].tokens[..]), (&[1, 1][..], &[2, 2][..]));
    close(different[1].score, 2.0 * 0.3_f64.ln());
}

#[test]
fn a_text_may_end_otherwise_than_by_a_token() {
    let table = vec![logits(&[0.1, 0.6, 0.3]); 3];
    let mut search = search(BeamOptions { num_return_sequences: 2, ..BeamOptions::new(2) }, 9);
    let mut asked = vec![];
    while !search.rows().is_empty() {
        let rows: Vec<Vec<u32>> = search.rows().iter().map(|row| row.to_vec()).collect();
        let logits = vec![table[1].clone(); rows.len()];
        let parents = search.advance(&logits, &mut |row, token| {
            asked.push((rows[row].clone(), token));
            Ok(rows[row].len() > 1 && token == 2)
        });
        let parents = parents.expect("a step");
        for (row, parent) in search.rows().iter().zip(&parents) {
            assert_eq!(row[..row.len() - 1], rows[*parent]);
        }
        assert_eq!(parents.len(), search.rows().len());
    }
    assert!(asked.iter().all(|&(_, token)| token != EOS), "that one ends by itself");
    let texts = search.finish(FinishReason::Aborted);
    assert_eq!(texts[0].finish_reason, FinishReason::Length, "{texts:?}");
    assert!(texts.iter().all(|beam| !beam.tokens[1..beam.tokens.len() - 1].contains(&2)));
}

#[test]
fn a_search_that_is_broken_off_gives_what_it_has() {
    let table = vec![logits(&[0.1, 0.6, 0.3]); 3];
    let fresh = search(BeamOptions { num_return_sequences: 3, ..BeamOptions::new(3) }, 9);
    assert_eq!(fresh.clone().finish(FinishReason::Timeout), []);
    let mut search = fresh;
    search.advance(&table[1..2], &mut |_, _| Ok(false)).expect("a step");
    let texts = search.finish(FinishReason::Timeout);
    let found: Vec<_> = texts.iter().map(|beam| (beam.tokens[0], beam.finish_reason)).collect();
    let expected =
        [(1, FinishReason::Timeout), (2, FinishReason::Timeout), (0, FinishReason::Stop)];
    assert_eq!(found, expected);
}

#[test]
fn options_out_of_range_are_named() {
    let four = BeamOptions::new(4);
    let groups = BeamOptions { num_beam_groups: 2, ..four };
    let cases = [
        (BeamOptions::new(0), "num_beams"),
        (BeamOptions::new(usize::MAX), "num_beams"),
        (BeamOptions { length_penalty: f64::NAN, ..four }, "length_penalty"),
        (BeamOptions { num_return_sequences: 0, ..four }, "num_return_sequences"),
        (BeamOptions { num_return_sequences: 5, ..four }, "num_return_sequences"),
        (BeamOptions { num_beam_groups: 0, ..four }, "num_beam_groups"),
        (BeamOptions { num_beam_groups: 3, ..four }, "num_beam_groups"),
        (groups, "diversity_penalty"),
        (BeamOptions { diversity_penalty: f32::INFINITY, ..groups }, "diversity_penalty"),
        (BeamOptions { diversity_penalty: -1.0, ..groups }, "diversity_penalty"),
        (BeamOptions { diversity_penalty: 0.5, ..four }, "diversity_penalty"),
    ];
    for (options, expected) in cases {
        let error = options.check().expect_err(expected);
        assert!(error.to_string().starts_with(&format!("option `{expected}` is ")), "{error}");
    }
    let mut options = BeamOptions::default();
    for name in EarlyStopping::NAMES {
        let value = OptionValue::Text((*name).to_owned());
        options.set("early_stopping", &value).expect("a name");
        assert_eq!(options.get("early_stopping"), Some(value));
    }
    assert!(options.set("early_stopping", &OptionValue::Text("maybe".into())).is_err());
    options.set("early_stopping", &OptionValue::Flag(true)).expect("as in JavaScript");
    assert_eq!(options.early_stopping, EarlyStopping::Full);
}

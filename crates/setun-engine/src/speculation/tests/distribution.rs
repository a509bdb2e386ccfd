//! Frequencies of whole texts of random strategies, with a draft and without.

use setun_text::{Draw, Sampler, SamplerOptions, Step};

use super::{drafts::Watched, *};

const TOKENS: usize = 4;
const LENGTH: usize = 4;
const TEXTS: usize = TOKENS.pow(4);
const DRAWS: u32 = 20_000;
const PROMPT: [u32; 2] = [2, 0];

fn sampler(temperature: f32) -> Sampler {
    let options = SamplerOptions {
        temperature,
        top_p: 0.97,
        repetition_penalty: 1.1,
        ..SamplerOptions::default()
    };
    Sampler::new(options).expect("sound options")
}

fn target() -> FakeModel {
    FakeModel { spread: 2.5, ..FakeModel::new(TOKENS, 11) }
}

/// The probability of each text of [`LENGTH`] tokens: the product of its tokens' own.
fn expected(target: &FakeModel, sampler: &Sampler) -> Vec<f64> {
    let probability = |number: usize| {
        let (mut text, mut product) = (PROMPT.to_vec(), 1.0);
        for place in 0..LENGTH {
            let token = u32::try_from(number / TOKENS.pow(place.try_into().expect("few")) % TOKENS);
            let token = token.expect("few");
            let step =
                Step { history: &text, prompt_tokens: 1, draw: Draw::default(), allowed: None };
            let found = sampled::probabilities(sampler, &target.logits(&text), &step);
            let found = found.expect("finite logits");
            product *= found.iter().find(|(found, _)| *found == token).map_or(0.0, |(_, p)| *p);
            text.push(token);
        }
        product
    };
    (0..TEXTS).map(probability).collect()
}

/// How often each text came, and what became of the proposals.
fn drawn(draft: Box<dyn Draft>, sampler: &Sampler) -> (Vec<u32>, SpeculationCounts) {
    let inferencer = inferencer(target(), vec![]);
    let options = SpeculationOptions { max_proposed: 3, row_cost: 0.0 }; // always all of them
    let draft = Box::new(Watched::new(draft));
    let mut fast = SpeculativeInferencer::new(inferencer, draft, options).expect("a draft");
    fast.inferencer().set_logits(TokenLogits::None);
    let mut counts = vec![0; TEXTS];
    let mut sum = SpeculationCounts::default();
    let mut cache = fast.inferencer().cache(1).expect("a cache");
    for seed in 0..u64::from(DRAWS) {
        cache.truncate(0);
        cache.set_draws(0, seed, 0).expect("a row");
        let [begin, query] = PROMPT.map(|token| Ragged::from_rows([[token]]));
        let mut any = Asked::greedy();
        fast.inferencer().prefill_blocking(&begin, &mut cache, &mut any).expect("a step");
        let verify = Verify::Distribution(sampler);
        let found = fast.decode_blocking(&query, &mut cache, LENGTH, verify).expect("a text");
        let tokens = found.inferred.token_ids.values().iter().rev();
        counts[tokens.fold(0, |number, &token| number * TOKENS + token as usize)] += 1;
        sum.proposed += found.counts.proposed;
        sum.accepted += found.counts.accepted;
    }
    (counts, sum)
}

/// The sum of squared distances over their variances, and how many of them: texts that are
/// seldom are counted as one.
fn chi_square(counts: &[u32], expected: &[f64]) -> (f64, usize) {
    let (mut sum, mut classes, mut rest) = (0.0, 0, (0.0, 0.0));
    for (&count, p) in counts.iter().zip(expected) {
        let (count, expected) = (f64::from(count), p * f64::from(DRAWS));
        if expected < 8.0 {
            rest = (rest.0 + count, rest.1 + expected);
        } else {
            sum += (count - expected).powi(2) / expected;
            classes += 1;
        }
    }
    if rest.1 > 0.0 {
        sum += (rest.0 - rest.1).powi(2) / rest.1;
        classes += 1;
    }
    (sum, classes - 1)
}

#[test]
fn texts_are_as_often_as_they_should_be_whatever_the_draft() {
    let sampler = sampler(1.0);
    let expected = expected(&target(), &sampler);
    assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let like = |spread, seed, temperature| -> Box<dyn Draft> {
        let model = FakeModel { spread, ..FakeModel::new(TOKENS, seed) };
        Box::new(DraftModel::new(Box::new(model), super::distribution::sampler(temperature)))
    };
    let drafts: [(&str, Box<dyn Draft>, std::ops::Range<f64>); 5] = [
        ("the target itself", like(2.5, 11, 1.0), 0.999..1.1),
        ("flatter", like(2.5, 11, 3.0), 0.6..0.95),
        ("of another mind, and sure of it", like(9.0, 12, 0.7), 0.05..0.5),
        ("greedy", like(2.5, 11, 0.0), 0.2..0.8),
        ("what was said before", Box::new(PromptLookup::new(1, 2)), 0.05..0.6),
    ];
    for (name, draft, rates) in drafts {
        let (counts, sum) = drawn(draft, &sampler);
        let (distance, freedom) = chi_square(&counts, &expected);
        // The mean of chi-square is its degrees of freedom, the variance twice that: four
        // deviations above are exceeded less than once in 10,000 times.
        let freedom = f64::from(u32::try_from(freedom).expect("few"));
        assert!(
            distance < freedom + 4.0 * (2.0 * freedom).sqrt(),
            "{name}: {distance} of {freedom}"
        );
        let [accepted, proposed] =
            [sum.accepted, sum.proposed].map(|count| f64::from(u32::try_from(count).expect("few")));
        assert!(proposed > 10_000.0 && rates.contains(&(accepted / proposed)), "{name}: {sum:?}");
    }
}

#[test]
fn a_wrong_rule_would_be_found() {
    // Texts of the draft itself, as if all its tokens were accepted.
    let sampler = sampler(1.0);
    let (counts, _) = drawn(Box::new(PromptLookup::default()), &self::sampler(1.4));
    let (distance, freedom) = chi_square(&counts, &expected(&target(), &sampler));
    let freedom = f64::from(u32::try_from(freedom).expect("few"));
    assert!(distance > 2.0 * freedom + 4.0 * (2.0 * freedom).sqrt(), "{distance} of {freedom}");
}

//! The row of a model that gives what a sampler needs.

use setun_ops::top_logits::{NoisyScores, Ranked as Entry};

/// What a model gives for [`Needs::TopLogits`](crate::Needs::TopLogits).
pub(super) fn ranked(
    logits: &[f32],
    [k, top]: [usize; 2],
    (within, noise): (Option<f32>, Option<NoisyScores>),
    touched: &[u32],
) -> Vec<(u32, f32)> {
    let all: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
    let (mut found, mut others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(token, _)| touched.contains(token));
    let mut best_by = |score: &dyn Fn(&(u32, f32)) -> f64, count: usize| {
        others.sort_by(|a, b| (score(b) + 0.0).total_cmp(&(score(a) + 0.0)).then(a.0.cmp(&b.0)));
        others[..count].to_vec()
    };
    let by_logit = best_by(&|&(_, logit)| f64::from(logit), k.max(top));
    let least = within.map_or(f32::NEG_INFINITY, |within| by_logit[0].1 - within);
    let best = match noise {
        Some(scores) => best_by(&|&(token, logit)| scores.score(token, logit), k),
        None => by_logit[..k].to_vec(),
    };
    found.extend(best.iter().filter(|&&(_, logit)| logit >= least));
    found.extend(&by_logit[..top]);
    found
}

/// The entry that bounds the weights of all that are not touched: exactly, loosely or not at all.
pub(super) fn bound(
    logits: &[f32],
    noise: Option<NoisyScores>,
    touched: &[u32],
    index: u64,
) -> (u32, f32) {
    let NoisyScores { temperature, .. } = noise.expect("a sum comes with noise");
    let is_other = |&(token, _): &(u32, f32)| !touched.contains(&token);
    let others = (0..).zip(logits.iter().copied()).filter(is_other);
    let others: Vec<f64> = others.map(|(_, logit)| f64::from(logit / temperature)).collect();
    let best = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = others.iter().map(|logit| (logit - best).exp()).sum();
    #[expect(clippy::cast_possible_truncation, reason = "rounded up afterwards")]
    let sum = (sum * [1.0, 1.3, f64::INFINITY][usize::try_from(index % 3).expect("small")]) as f32;
    (Entry::SUM, sum.next_up())
}

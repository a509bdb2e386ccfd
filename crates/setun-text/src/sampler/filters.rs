//! Steps that look at all tokens that are left.

use std::f64::consts::LN_2;

use crate::{MIN_TEMPERATURE, ranked_candidates::RankedCandidates};

/// The sum of the weights, and the entropy in nats of the probabilities that they stand for.
fn entropy(list: &mut RankedCandidates) -> (f64, f64) {
    let (tokens, weights) = list.weighted();
    let total: f64 = weights.iter().sum();
    let best = tokens.first().map_or(0.0, |best| f64::from(best.logit()));
    let mean: f64 =
        tokens.iter().zip(weights).map(|(token, w)| w * (f64::from(token.logit()) - best)).sum();
    (total, libm::log(total) - mean / total)
}

/// The temperature between `least` and `most` that the entropy calls for. None where it is too
/// low to divide by.
#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
#[expect(clippy::cast_possible_truncation, reason = "between two numbers of f32")]
pub(super) fn dynamic_temperature(
    list: &mut RankedCandidates,
    (temperature, range): (f32, f32),
    exponent: f32,
) -> Option<f32> {
    let count = list.tokens().len();
    if count < 2 {
        return Some(1.0);
    }
    let (_, entropy) = entropy(list);
    let share = (entropy / libm::log(count as f64)).clamp(0.0, 1.0);
    let (middle, range) = (f64::from(temperature), f64::from(range));
    let least = (middle - range).max(0.0);
    let found = least + (middle + range - least) * libm::pow(share, f64::from(exponent));
    let found = found as f32;
    (found >= MIN_TEMPERATURE).then_some(found.min(f32::MAX))
}

/// Keeps logits within `n` standard deviations of the best.
#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
pub(super) fn top_n_sigma(list: &mut RankedCandidates, n: f32) {
    let logits = list.logits();
    let count = logits.clone().count() as f64;
    let mean = logits.clone().sum::<f64>() / count;
    let variance = logits.map(|logit| (logit - mean) * (logit - mean)).sum::<f64>() / count;
    if let Some(best) = list.best() {
        let least = f64::from(best.logit()) - f64::from(n) * variance.sqrt();
        list.retain(|token| f64::from(token.logit()) >= least);
    }
}

/// Keeps the tokens of the most typical information, up to a share of the probability.
pub(super) fn typical_p(list: &mut RankedCandidates, share: f32) {
    let (total, entropy) = entropy(list);
    let (tokens, weights) = list.weighted();
    let best = tokens.first().map_or(0.0, |best| f64::from(best.logit()));
    let log_total = libm::log(total);
    // The information is log_total − (logit − best).
    let excess = |logit: f32| log_total - (f64::from(logit) - best) - entropy;
    // It rises from token to token, so the most typical ones lie about one place.
    let place = tokens.partition_point(|token| excess(token.logit()) < 0.0);
    let (mut before, mut behind) = (place, place);
    let (mut sum, mut most) = (0.0, 0.0);
    while before > 0 || behind < tokens.len() {
        let distance = |index: Option<usize>| {
            let token = index.and_then(|index| tokens.get(index));
            token.map_or(f64::INFINITY, |token| excess(token.logit()).abs())
        };
        let [above, below] = [before.checked_sub(1), Some(behind)].map(distance);
        let next = if above <= below { before - 1 } else { behind };
        (before, behind) = (before.min(next), behind.max(next + 1));
        (sum, most) = (sum + weights[next] / total, above.min(below));
        if sum >= f64::from(share) {
            break;
        }
    }
    list.retain(|token| excess(token.logit()).abs() <= most);
}

/// Keeps tokens of this probability, and the best.
pub(super) fn epsilon_cutoff(list: &mut RankedCandidates, epsilon: f64) {
    let (tokens, weights) = list.weighted();
    let least = epsilon * weights.iter().sum::<f64>();
    let above = weights.partition_point(|&weight| weight >= least);
    let best = tokens.first().map(|best| best.logit());
    let ties = tokens.partition_point(|token| Some(token.logit()) == best);
    list.keep_first(above.max(ties));
}

/// Keeps tokens of a probability that is lower where the entropy is high, and the best.
pub(super) fn eta_cutoff(list: &mut RankedCandidates, eta: f64) {
    let (_, entropy) = entropy(list);
    epsilon_cutoff(list, eta.min(eta.sqrt() * libm::exp(-entropy)));
}

/// Drops the tokens of this probability but for the last of them.
pub(super) fn xtc(list: &mut RankedCandidates, threshold: f64) {
    let (tokens, weights) = list.weighted();
    let least = threshold * weights.iter().sum::<f64>();
    let above = weights.partition_point(|&weight| weight >= least);
    if let Some(&last) = above.checked_sub(1).and_then(|last| tokens.get(last)) {
        list.retain(|&token| token >= last);
    }
}

/// Keeps tokens of at most this surprise in bits, and the best.
pub(super) fn mirostat(list: &mut RankedCandidates, max_surprise: f64) {
    let (_, weights) = list.weighted();
    let total: f64 = weights.iter().sum();
    let count = weights.partition_point(|&weight| surprise(weight, total) <= max_surprise);
    list.keep_first(count.max(1));
}

/// The surprise of a token in bits.
pub(super) fn surprise(weight: f64, total: f64) -> f64 {
    (libm::log(total) - libm::log(weight)) / LN_2
}

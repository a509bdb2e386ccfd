//! Which proposed tokens stay, so that the distribution of a text is the target's own.
//!
//! A token that was drawn from `q` stays with probability `min(1, p / q)`. If it does not, another
//! is drawn from what `p` has beyond `q`: `max(0, p − q)`, normalised. So a token comes with
//! probability `min(p, q) + (1 − Σ min(p, q)) · max(0, p − q) / Σ max(0, p − q) = p`, whatever `q`
//! is, as both sums over all tokens are the same (Leviathan, Kalman and Matias, "Fast inference
//! from transformers via speculative decoding", 2023; Chen et al., "Accelerating large language
//! model decoding with speculative sampling", 2023). A token that was not drawn has a `q` of 1.

use setun_text::Draw;

use crate::error::Error;

/// Pairs of token and probability; all other tokens have 0.
pub type Distribution = [(u32, f64)];

/// Numbers of the draws of a token, beyond those that choosing one takes.
const ACCEPTANCE: u64 = 1 << 32;
const RESIDUAL: u64 = ACCEPTANCE + 1;
const PROPOSAL: u64 = ACCEPTANCE + 2;

/// What became of a proposed token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The token that comes.
    pub token: u32,
    /// Whether it is the proposed one. If not, all that was proposed after it is void.
    pub is_accepted: bool,
}

/// Lets a token that was drawn from `q` come, or another, so that what comes is distributed as `p`.
/// Without a `q` the token was certain.
///
/// # Errors
///
/// If `q` does not give the token a probability above 0 and at most 1.
pub fn verify(
    p: &Distribution,
    token: u32,
    q: Option<&Distribution>,
    draw: Draw,
) -> Result<Verdict, Error> {
    let certain = [(token, 1.0)];
    let q = q.unwrap_or(&certain);
    let drawn = probability(q, token);
    if !(drawn > 0.0 && drawn <= 1.0 + ROUNDING) {
        let expected = "one above 0 and at most 1";
        return Err(Error::DraftProbability { token, expected, found: drawn });
    }
    if draw.uniform(ACCEPTANCE) < acceptance(probability(p, token), drawn) {
        return Ok(Verdict { token, is_accepted: true });
    }
    let token = pick(&residual(p, q), draw.uniform(RESIDUAL)).unwrap_or(token);
    Ok(Verdict { token, is_accepted: false })
}

/// Far more than a sum of probabilities is off by.
const ROUNDING: f64 = 1e-6;

/// The probability that a token stays: `p` of 1 are the target's, `q` the draft's.
#[must_use]
pub fn acceptance(p: f64, q: f64) -> f64 {
    if p < q { p / q } else { 1.0 }
}

/// What is drawn from where a proposed token does not stay: `max(0, p − q)`, normalised, in the
/// order of `p`. It is `p` itself if nothing is left, which rounding alone can cause.
#[must_use]
pub fn residual(p: &Distribution, q: &Distribution) -> Vec<(u32, f64)> {
    let mut sorted = q.to_vec();
    sorted.sort_unstable_by_key(|&(token, _)| token);
    let drafted = |token| {
        let place = sorted.binary_search_by_key(&token, |&(token, _)| token);
        place.map_or(0.0, |place| sorted[place].1)
    };
    let beyond = |&(token, p): &(u32, f64)| (token, p - drafted(token));
    let mut left: Vec<_> = p.iter().map(beyond).filter(|&(_, left)| left > 0.0).collect();
    if left.is_empty() {
        left = p.to_vec();
    }
    let total: f64 = left.iter().map(|&(_, left)| left).sum();
    for (_, left) in &mut left {
        *left /= total;
    }
    left
}

/// A token of a draft's own distribution, by a random number of its own.
#[must_use]
pub fn propose(q: &Distribution, draw: Draw) -> Option<u32> {
    pick(q, draw.uniform(PROPOSAL))
}

/// The first token at which the running sum exceeds the draw's share of the whole.
fn pick(distribution: &Distribution, uniform: f64) -> Option<u32> {
    let threshold = uniform * distribution.iter().map(|&(_, weight)| weight).sum::<f64>();
    let mut sum = 0.0;
    let drawn = distribution.iter().find(|&&(_, weight)| {
        sum += weight;
        sum > threshold
    });
    drawn.or(distribution.last()).map(|&(token, _)| token)
}

fn probability(distribution: &Distribution, token: u32) -> f64 {
    distribution.iter().find(|&&(found, _)| found == token).map_or(0.0, |&(_, found)| found)
}

#[cfg(test)]
mod tests;

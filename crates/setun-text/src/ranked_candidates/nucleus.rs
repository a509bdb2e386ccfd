//! Draws from a nucleus without a sort.

use setun_ops::noise::Noise;

use super::{Ranked, RankedCandidates};

/// Draws after which a list is sorted: each halves what is left, about.
const DRAWS: usize = 4;

/// Weights below `exp(−37)` of the best are less than a rounding of the sum, 2^−53.
const LEAST: f64 = -37.0;

impl RankedCandidates {
    /// The token that [`draw`](Self::draw) takes of those that [`keep_top_p`](Self::keep_top_p)
    /// leaves. None where a rounding could decide, or it takes many draws.
    ///
    /// A token stays if those before it have less than `share` of the whole weight. So do all
    /// before it then; where the one drawn of all does not stay, neither do those behind it, and
    /// it is drawn of those before it.
    ///
    /// Sums of `n` weights in two orders, each within `n · 2^−53` of the true one, differ by
    /// less than `4 n · 2^−53` of it; leaving out small weights adds at most `n · 2^−53`.
    pub(crate) fn draw_top_p(&self, share: f64, noise: Noise) -> Option<u32> {
        let best = self.best()?;
        let weight = |ranked: Ranked| {
            let difference = f64::from(ranked.logit()) - f64::from(best.logit());
            if difference < LEAST { 0.0 } else { libm::exp(difference) }
        };
        let weights: Vec<f64> = self.tokens.iter().map(|&ranked| weight(ranked)).collect();
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
        let margin = 8.0 * self.tokens.len() as f64 * f64::EPSILON;
        let most = share * weights.iter().sum::<f64>();
        let mut end = None; // what is left comes before it
        for _ in 0..DRAWS {
            let (drawn, _) = self.draw(noise, end)?;
            let before = self.tokens.iter().zip(&weights);
            let before: f64 = before.filter(|(ranked, _)| **ranked < drawn).map(|(_, w)| w).sum();
            if drawn == best || before * (1.0 + margin) < most * (1.0 - margin) {
                return Some(drawn.token());
            }
            if before * (1.0 - margin) < most * (1.0 + margin) {
                return None;
            }
            end = Some(drawn);
        }
        None
    }
}

//! Requests that are beam searches, and what they find without a cache or a scheduler.

use super::{Asked, EOS, FinishReason, SEED, model};
use crate::beams::{Beam, BeamOptions, BeamSearch, BeamText, EarlyStopping};

impl Asked {
    /// Every kind of search for some seed.
    pub(super) fn beam_options(&self) -> BeamOptions {
        let beams = self.beams;
        let groups = if self.seed == 1 { beams } else { 1 };
        let kinds = [EarlyStopping::Full, EarlyStopping::Unlikely, EarlyStopping::Never];
        BeamOptions {
            length_penalty: if self.is_warm { 0.0 } else { 1.0 },
            early_stopping: kinds[usize::try_from(self.seed % 3).unwrap()],
            num_return_sequences: beams,
            num_beam_groups: groups,
            diversity_penalty: if groups > 1 { 0.7 } else { 0.0 },
            ..BeamOptions::new(beams)
        }
    }

    /// What the search finds, and how the best of it ends.
    pub(super) fn found_alone(&self) -> (Vec<u32>, FinishReason) {
        let (options, sampler) = (self.beam_options(), self.sampler());
        let eos = vec![EOS];
        let mut search = BeamSearch::new(&self.prompt, self.max_tokens, options, sampler, eos);
        while !search.rows().is_empty() {
            let rows = search.rows().into_iter().map(|row| model(SEED).logits(row));
            let rows: Vec<_> = rows.collect();
            search.advance(&rows, &mut |_, _| Ok(false)).unwrap();
        }
        let beams = search.finish(FinishReason::Aborted);
        let spelt = beams.iter().flat_map(|Beam { tokens, score, .. }| spell(tokens, *score));
        (spelt.collect(), beams[0].finish_reason)
    }
}

/// What a scheduler has found.
pub(super) fn spell_all(texts: &[BeamText]) -> Vec<u32> {
    texts.iter().flat_map(|text| spell(&text.tokens, text.score)).collect()
}

/// A text and all bits of its score.
fn spell(tokens: &[u32], score: f64) -> Vec<u32> {
    let bits = score.to_bits();
    let halves = [bits >> 32, bits & 0xffff_ffff].map(|half| u32::try_from(half).unwrap());
    [tokens, &halves].concat()
}

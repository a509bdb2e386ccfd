//! Verification of proposed tokens.

use setun_text::{Sampler, Strategy};

use super::{
    acceptance::{Verdict, verify},
    draft::Proposal,
    sampled::{probabilities, sample},
};
use crate::{
    error::Error,
    inferencer::{OpenRow, TokenLogits},
};

/// What decides which proposed tokens stay.
pub enum Verify<'a> {
    /// Each token is the one that the strategy chooses, and a proposed one stays if it is that. The
    /// tokens are those of decoding without a draft, to the bit, whatever the strategy and the
    /// draft. The strategy is asked once for each token of a row, in order.
    Equal(&'a mut dyn Strategy),
    /// Tokens are distributed as the sampler's are, whatever the draft proposes and however
    /// probable it found it, and more of a model's proposals stay than would be equal: each with
    /// probability `min(1, p / q)`. Which tokens are drawn depends on what was proposed, and so on
    /// all that the length of a proposal follows from, which in a large batch are the other rows,
    /// too. Greedy choices are those of decoding without a draft.
    Distribution(&'a Sampler),
}

impl Verify<'_> {
    /// Whether it wants to know what proposals were drawn from.
    pub(super) fn wants_probabilities(&self) -> bool {
        match self {
            Self::Equal(_) => false,
            Self::Distribution(sampler) => !sampler.is_greedy(),
        }
    }

    /// The token after the tokens of a row, where a proposal may say one.
    fn judge(
        &mut self,
        row: &OpenRow,
        logits: &[f32],
        (proposal, place): (&Proposal, usize),
    ) -> Result<Verdict, Error> {
        let (step, proposed) = (row.step(), proposal.tokens.get(place));
        let token = match (self, proposed) {
            (Self::Equal(strategy), _) => strategy.choose(logits, &step)?,
            (Self::Distribution(sampler), Some(&token)) => {
                let p = probabilities(sampler, logits, &step)?;
                let q = proposal.probabilities.get(place).map(Vec::as_slice);
                return verify(&p, token, q, step.draw);
            }
            (Self::Distribution(sampler), None) => sample(sampler, logits, &step)?,
        };
        Ok(Verdict { token, is_accepted: proposed == Some(&token) })
    }
}

/// A row whose proposal is run.
pub(super) struct Judged<'a> {
    pub(super) row: &'a mut OpenRow,
    pub(super) proposal: Proposal,
    pub(super) accepted: usize,
    is_over: bool, // what comes after is void
}

impl<'a> Judged<'a> {
    pub(super) fn new(row: &'a mut OpenRow, proposal: Proposal) -> Self {
        Self { row, proposal, accepted: 0, is_over: false }
    }

    /// Takes the logits after a place of the last token and the proposal, in order.
    pub(super) fn take(
        &mut self,
        place: usize,
        logits: &[f32],
        verify: &mut Verify<'_>,
        (wanted, eos_tokens): (TokenLogits, &[u32]),
    ) -> Result<(), Error> {
        if self.is_over {
            return Ok(());
        }
        let verdict = verify.judge(self.row, logits, (&self.proposal, place))?;
        self.row.keep(logits, wanted);
        self.row.take(verdict.token, eos_tokens);
        self.accepted += usize::from(verdict.is_accepted);
        self.is_over = !verdict.is_accepted || self.row.ended;
        Ok(())
    }
}

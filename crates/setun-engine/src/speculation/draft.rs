//! The trait of drafts, which propose the tokens that come next.

use futures::future::LocalBoxFuture;
use setun_model::{MaybeSend, SequenceId};
use setun_text::{Sampler, Step};

use crate::error::Error;

/// Proposes tokens that the target model then verifies, all in one step.
///
/// A proposal never changes what may be generated ([`Verify`](super::Verify)), only how many
/// tokens a step gives. It should follow from the request alone: where a distribution is verified
/// the text depends on the proposals.
pub trait Draft: MaybeSend {
    /// One proposal for each request, in their order, each of another sequence; it may be empty.
    /// What goes beyond `most` or the target's vocabulary is cut off.
    ///
    /// From call to call the history of a sequence only grows, until it is
    /// [forgotten](Self::forget).
    ///
    /// # Errors
    ///
    /// If a model fails. That one guesses badly, or not at all, is no error.
    fn propose<'a>(
        &'a mut self,
        requests: &'a [DraftRequest<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Proposal>, Error>>;

    /// Drops what is kept of a sequence: it has ended, or its history will be another. One that
    /// is not known is no error.
    fn forget(&mut self, sequence: SequenceId);

    /// Size of its vocabulary, which must be the target's; none if it takes any.
    fn vocab_size(&self) -> Option<usize> {
        None
    }

    /// Bytes that are read to propose one token, as a model's weights are. Beside those of the
    /// target they tell how much time a proposal takes.
    fn bytes_per_token(&self) -> usize {
        0
    }
}

/// What is asked of a draft.
#[derive(Clone, Copy, Debug)]
pub struct DraftRequest<'a> {
    /// The sequence, by the name that it has in the target's cache.
    pub sequence: SequenceId,
    /// Where the first token is proposed: after its history, whose last token has not been run,
    /// and with random numbers. Those of further tokens have the indices after it.
    pub step: Step<'a>,
    /// Most tokens to propose; 1 or more.
    pub most: usize,
    /// Whether tokens are verified by the probabilities that they were drawn with
    /// ([`propose`](super::propose)). Otherwise they are compared with what is chosen by the
    /// step's own random numbers.
    pub probabilities: bool,
    /// How the target chooses in this sequence; none if as the draft was told once.
    pub sampler: Option<&'a Sampler>,
}

/// Tokens that may come next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The tokens, in order.
    pub tokens: Vec<u32>,
    /// For each of them the distribution that it was drawn from, as pairs of token and
    /// probability with all others at 0. Fewer where tokens were not drawn: those count as
    /// certain.
    pub probabilities: Vec<Vec<(u32, f64)>>,
}

impl Proposal {
    /// Leaves what may be verified.
    pub(super) fn cut(&mut self, most: usize, vocabulary: usize) {
        let known = self.tokens.iter().take_while(|&&token| (token as usize) < vocabulary).count();
        self.tokens.truncate(known.min(most));
        self.probabilities.truncate(self.tokens.len());
    }
}

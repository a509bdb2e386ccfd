//! Drafts that know the target, and one that watches what another is told.

use std::collections::HashMap;

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_model::SequenceId;

use crate::{
    error::Error,
    fake_model::FakeModel,
    speculation::{Draft, DraftRequest, Proposal},
};

/// What a [`Fixed`] draft proposes.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// The target's greedy continuation.
    Right,
    /// Never that.
    Wrong,
    /// All but the last token of it, or that too, as the text happens to be long.
    WrongInTheEnd,
    /// Too many tokens, unknown ones, and nothing for the last request.
    Wild,
    /// Nothing.
    Silent,
}

/// A draft that knows the target.
pub(super) struct Fixed {
    pub(super) target: FakeModel,
    pub(super) kind: Kind,
}

impl Fixed {
    fn proposal(&self, request: &DraftRequest<'_>) -> Proposal {
        let mut text = request.step.history.to_vec();
        for place in 0..request.most {
            let logits = self.target.logits(&text);
            let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
            let best = u32::try_from(best.expect("logits")).expect("few");
            let vocabulary = u32::try_from(self.target.vocabulary).expect("few");
            let is_wrong = match self.kind {
                Kind::Wrong => true,
                Kind::WrongInTheEnd => place + 1 == request.most && !text.len().is_multiple_of(3),
                _ => false,
            };
            text.push(if is_wrong { (best + 1) % vocabulary } else { best });
        }
        let mut tokens = text.split_off(request.step.history.len());
        match self.kind {
            Kind::Silent => tokens.clear(),
            Kind::Wild if request.step.history.len().is_multiple_of(2) => tokens.push(u32::MAX),
            Kind::Wild => tokens.extend([1; 200]),
            _ => {}
        }
        Proposal { tokens, probabilities: vec![] }
    }
}

impl Draft for Fixed {
    fn propose<'a>(
        &'a mut self,
        requests: &'a [DraftRequest<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Proposal>, Error>> {
        let answered = match self.kind {
            Kind::Wild => &requests[..requests.len() - 1],
            _ => requests,
        };
        let proposals = answered.iter().map(|request| self.proposal(request)).collect();
        ready(Ok(proposals)).boxed_local()
    }

    fn forget(&mut self, _: SequenceId) {}
}

/// Looks whether histories only grow, as [`Draft::propose`] says.
pub(super) struct Watched<D> {
    draft: D,
    seen: HashMap<SequenceId, Vec<u32>>,
}

impl<D: Draft> Watched<D> {
    pub(super) fn new(draft: D) -> Self {
        Self { draft, seen: HashMap::new() }
    }
}

impl<D: Draft> Draft for Watched<D> {
    fn propose<'a>(
        &'a mut self,
        requests: &'a [DraftRequest<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Proposal>, Error>> {
        for request in requests {
            assert!(request.most > 0);
            let seen = self.seen.entry(request.sequence).or_default();
            let history = request.step.history;
            assert!(history.starts_with(seen), "{seen:?} became {history:?}");
            *seen = history.to_vec();
        }
        self.draft.propose(requests)
    }

    fn forget(&mut self, sequence: SequenceId) {
        self.seen.remove(&sequence);
        self.draft.forget(sequence);
    }

    fn vocab_size(&self) -> Option<usize> {
        self.draft.vocab_size()
    }
}

impl Draft for Box<dyn Draft> {
    fn propose<'a>(
        &'a mut self,
        requests: &'a [DraftRequest<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Proposal>, Error>> {
        (**self).propose(requests)
    }

    fn forget(&mut self, sequence: SequenceId) {
        (**self).forget(sequence);
    }

    fn vocab_size(&self) -> Option<usize> {
        (**self).vocab_size()
    }
}

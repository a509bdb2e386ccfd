//! The constraint of a sequence, and its state's way to where masks are computed.

use std::{fmt, time::Duration};

use futures::channel::oneshot;
use setun_text::TokenMask;

use crate::{constraint::ConstraintState, error::Error};

/// A state on its way.
pub(crate) type Away = oneshot::Receiver<Prepared>;

/// A state whose mask is ready, and how long that took.
pub(crate) struct Prepared {
    pub(crate) state: Box<dyn ConstraintState>,
    pub(crate) took: Duration,
}

/// The state of a form, here or away.
pub(crate) struct SequenceConstraint {
    place: Place,
    /// How long its last mask took.
    took: Option<Duration>,
    /// How long a mask may take that is computed before the step.
    quick: Duration,
    /// Whether the mask of the next token is ready.
    is_ready: bool,
    /// What is allowed as long as the mask is not known.
    any: TokenMask,
    /// The last mask with a token that the form does not know.
    joined: TokenMask,
}

enum Place {
    Here(Box<dyn ConstraintState>),
    Away(Away),
    /// Who computed its mask is gone.
    LostDevice,
}

impl SequenceConstraint {
    pub(crate) fn new(state: Box<dyn ConstraintState>, vocabulary: usize) -> Self {
        let any = TokenMask::all(vocabulary);
        let quick = Duration::ZERO;
        let joined = TokenMask::none(0);
        Self { place: Place::Here(state), took: None, quick, is_ready: false, any, joined }
    }

    /// Hands the state out, for its mask to be made ready; what `send` gives brings it back.
    pub(crate) fn send(&mut self, send: impl FnOnce(Box<dyn ConstraintState>) -> Away) {
        self.place = match std::mem::replace(&mut self.place, Place::LostDevice) {
            Place::Here(state) => Place::Away(send(state)),
            place => place,
        };
    }

    /// Has its mask made ready at once, if the state is here.
    pub(crate) fn prepare(&mut self, prepare: impl FnOnce(Box<dyn ConstraintState>) -> Prepared) {
        match std::mem::replace(&mut self.place, Place::LostDevice) {
            Place::Here(state) => self.take_back(Some(prepare(state))),
            place => self.place = place,
        }
    }

    /// Sets how long a mask may take that is computed before the step.
    pub(crate) fn set_quick(&mut self, quick: Duration) {
        self.quick = quick;
    }

    /// Whether the next mask is to be computed before the step: it is the first, or the last one
    /// took no longer than it may.
    pub(crate) fn is_quick(&self) -> bool {
        self.took.is_none_or(|took| took <= self.quick)
    }

    /// Whether the mask of the next token is ready, or will be.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready || !matches!(self.place, Place::Here(_))
    }

    /// Whether the mask of the next token is still being computed, and is expected to take longer
    /// than others should wait: the last one took this many times what one may take before a step.
    pub(crate) fn is_late(&mut self, times: u32) -> bool {
        let is_slow = self.took.is_some_and(|took| took > self.quick.saturating_mul(times));
        if is_slow {
            self.poll();
        }
        is_slow && matches!(self.place, Place::Away(_))
    }

    /// The next token where the form allows one alone, and its mask takes a small part of a step.
    pub(crate) fn only_token(
        &mut self,
        prepare: impl FnOnce(Box<dyn ConstraintState>) -> Prepared,
    ) -> Option<u32> {
        if self.took.is_none_or(|took| took > self.quick) {
            return None;
        }
        if !self.is_ready {
            self.prepare(prepare);
        }
        let mask = self.mask(None).ok()?; // the error comes again
        let mut tokens = mask.iter();
        tokens.next().filter(|_| tokens.next().is_none())
    }

    /// Waits until the state is back.
    pub(crate) async fn wait(&mut self) {
        if let Place::Away(away) = &mut self.place {
            let back = away.await.ok();
            self.take_back(back);
        }
    }

    /// Takes the state back if it is there.
    fn poll(&mut self) {
        if let Place::Away(away) = &mut self.place {
            match away.try_recv() {
                Ok(None) => {}
                Ok(back) => self.take_back(back),
                Err(_) => self.place = Place::LostDevice,
            }
        }
    }

    fn take_back(&mut self, back: Option<Prepared>) {
        self.place = match back {
            Some(Prepared { state, took }) => {
                (self.took, self.is_ready) = (Some(took), true);
                Place::Here(state)
            }
            None => Place::LostDevice,
        };
    }

    /// The mask if it is ready, else one that allows all: what is to be asked of the model. Another
    /// token may be allowed beside it.
    pub(crate) fn known_mask(&mut self, also: Option<u32>) -> &TokenMask {
        self.poll();
        match &mut self.place {
            // The error comes again.
            Place::Here(state) => {
                let mask = state.mask().map(|mask| join(mask, also, &mut self.joined));
                mask.unwrap_or(&self.any)
            }
            Place::Away(_) | Place::LostDevice => &self.any,
        }
    }

    /// The tokens that may come next, and another, if there is one. The state is here.
    pub(crate) fn mask(&mut self, also: Option<u32>) -> Result<&TokenMask, Error> {
        match &mut self.place {
            Place::Here(state) => Ok(join(state.mask()?, also, &mut self.joined)),
            Place::Away(_) | Place::LostDevice => Err(lost()),
        }
    }

    /// Takes a token. The state is here.
    pub(crate) fn accept(&mut self, token: u32) -> Result<(), Error> {
        self.is_ready = false;
        match &mut self.place {
            Place::Here(state) => state.accept(token),
            Place::Away(_) | Place::LostDevice => Err(lost()),
        }
    }

    /// Says how many tokens may still be generated.
    pub(crate) fn set_tokens_left(&mut self, tokens: usize) {
        if let Place::Here(state) = &mut self.place {
            state.set_tokens_left(tokens);
        }
    }

    /// Whether the text may end here. Where that is not known, it may not.
    pub(crate) fn may_end(&mut self) -> bool {
        match &mut self.place {
            Place::Here(state) => state.may_end().unwrap_or(false),
            Place::Away(_) | Place::LostDevice => false,
        }
    }
}

/// A mask with another token.
fn join<'a>(mask: &'a TokenMask, also: Option<u32>, joined: &'a mut TokenMask) -> &'a TokenMask {
    let Some(token) = also else { return mask };
    joined.clone_from(mask);
    joined.insert(token);
    joined
}

fn lost() -> Error {
    Error::Constraint { reason: "the form panicked on the thread that computes its masks".into() }
}

impl fmt::Debug for SequenceConstraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Followed")
    }
}

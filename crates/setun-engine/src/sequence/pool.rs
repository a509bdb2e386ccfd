//! Pooled hidden states of a text's tokens.

use futures::channel::oneshot;
use setun_model::{ModelError, RequestedOutput, Row};

use super::Sequence;
use crate::{error::Error, pooling::Pooling};

/// What is to be made of a text, and as much of it as there is.
#[derive(Debug)]
pub(crate) struct Pool {
    pooling: Pooling,
    sums: Vec<f64>, // [hidden]
    tokens: usize,  // whose states are in the sums
    reply: Option<oneshot::Sender<Pooled>>,
}

/// The sum of the states, `[hidden]`, and how many there were.
pub(crate) type Pooled = (Vec<f64>, usize);

impl Pool {
    /// What it comes to goes to the reply. The caller may have gone.
    pub(crate) fn new(pooling: Pooling, reply: oneshot::Sender<Pooled>) -> Self {
        Self { pooling, sums: vec![], tokens: 0, reply: Some(reply) }
    }

    /// Of a text of this many tokens, the first whose state is requested and is not there.
    fn next(&self, count: usize) -> usize {
        match self.pooling {
            Pooling::Last => count - 1,
            Pooling::Mean => self.tokens,
        }
    }

    fn add(&mut self, state: &[f32]) {
        self.sums.resize(state.len(), 0.0);
        for (sum, &value) in self.sums.iter_mut().zip(state) {
            *sum += f64::from(value);
        }
        self.tokens += 1;
    }
}

impl Sequence {
    /// Whether its rows give hidden states, which stand in steps of their own.
    pub(crate) fn is_pooled(&self) -> bool {
        self.task.pool().is_some()
    }

    /// The first of its tokens that has to be run for its state.
    pub(super) fn first_pooled(&self) -> Option<usize> {
        self.task.pool().map(|pool| pool.next(self.context.len()))
    }

    /// What rows give for the embedding of their text.
    pub(crate) fn prompt_output(&self) -> RequestedOutput {
        if self.is_pooled() { RequestedOutput::HiddenState } else { RequestedOutput::Logits }
    }

    pub(super) fn add_state(&mut self, row: Row<'_>) -> Result<(), Error> {
        match (self.task.pool_mut(), row) {
            (None, _) => Ok(()),
            (Some(pool), Row::HiddenState(state)) => {
                if let Some(value) = state.iter().find(|value| !value.is_finite()) {
                    let (expected, found) = ("finite".into(), value.to_string());
                    return Err(Error::ModelOutput { what: "a hidden state", expected, found });
                }
                pool.add(state);
                Ok(())
            }
            (Some(_), _) => {
                let (what, found) = ("hidden states", "a model that gives logits alone".into());
                Err(ModelError::Unsupported { what, found, supported: "transformers" }.into())
            }
        }
    }

    /// Hands over what its states came to.
    pub(super) fn reply_pooled(&mut self) {
        if let Some(pool) = self.task.pool_mut()
            && let Some(reply) = pool.reply.take()
        {
            let _ = reply.send((std::mem::take(&mut pool.sums), pool.tokens));
        }
    }
}

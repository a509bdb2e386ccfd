//! The pipeline of stages that microbatches pass through.

#[cfg(not(target_family = "wasm"))]
mod threads;

use std::collections::VecDeque;

#[cfg(not(target_family = "wasm"))]
use threads::Threads;

use super::{ended, microbatch::Microbatch, worker::Worker};
use crate::error::ModelError;

/// The stages in order. What is sent comes back in the same order, having passed all of them.
pub(super) enum Pipeline {
    /// Each on a thread.
    #[cfg(not(target_family = "wasm"))]
    Threads(Threads),
    /// One after the other, with the pieces that wait for the first.
    InTurn(Vec<Worker>, VecDeque<Microbatch>),
}

impl Pipeline {
    /// On threads where there are any.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn new(workers: Vec<Worker>) -> Result<Self, ModelError> {
        Threads::start(workers).map(Self::Threads)
    }

    /// On threads where there are any.
    #[cfg(target_family = "wasm")]
    #[expect(clippy::unnecessary_wraps, reason = "a thread may not be had")]
    pub(super) fn new(workers: Vec<Worker>) -> Result<Self, ModelError> {
        Ok(Self::in_turn(workers))
    }

    pub(super) fn in_turn(workers: Vec<Worker>) -> Self {
        Self::InTurn(workers, VecDeque::new())
    }

    /// # Errors
    ///
    /// If the thread of a stage has ended.
    #[cfg_attr(
        target_family = "wasm",
        expect(clippy::unnecessary_wraps, reason = "a thread may have ended")
    )]
    pub(super) fn send(&mut self, piece: Microbatch) -> Result<(), ModelError> {
        match self {
            #[cfg(not(target_family = "wasm"))]
            Self::Threads(threads) => threads.send(piece),
            Self::InTurn(workers, waiting) => {
                // Now, as a caller may give up before all stages have had the piece.
                for worker in workers {
                    worker.owe(&piece.copies, &piece.state_copies);
                }
                waiting.retain(|other| other.number == piece.number);
                waiting.push_back(piece);
                Ok(())
            }
        }
    }

    /// # Errors
    ///
    /// If the thread of a stage has ended.
    pub(super) async fn next(&mut self) -> Result<Microbatch, ModelError> {
        match self {
            #[cfg(not(target_family = "wasm"))]
            Self::Threads(threads) => threads.next().await,
            Self::InTurn(workers, waiting) => {
                let mut piece = waiting.pop_front().ok_or_else(ended)?;
                for worker in workers {
                    worker.work(&mut piece).await;
                }
                Ok(piece)
            }
        }
    }
}

//! Tensor parallelism without shared memory: workers that each hold some rows of every matrix.
//!
//! The leader runs a plan as ever, but holds only the first rows of the ternary matrices, and
//! screens only the first rows of the head's table. Before an operation that reads such a weight
//! it sends the operation's input to the workers, computes its own outputs, and puts theirs beside
//! them. An output depends on its own row of weights alone, so the bits are those of one backend.
//!
//! Workers know neither the model nor its cache: a [`ShardWorker`](crate::ShardWorker) gets weights, then the
//! *pieces* of a plan, each an operation with the quantization before it, then inputs. How
//! messages travel is up to a [`ShardLink`].

pub(crate) mod message;
pub(crate) mod pieces;
pub(crate) mod ranked;
pub(crate) mod weights;

use std::{fmt, future::Future, ops::Range, pin::Pin, sync::Weak};

use setun_ops::{MaybeSend, OpsError};

use pieces::ShardedStep;

use crate::ternary_dot::TILE_OUTPUTS;

/// Least rows of a matrix for each that takes part.
const MIN_ROWS: usize = TILE_OUTPUTS;

/// Bytes that arrive later.
pub type Receiving<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, OpsError>> + 'a>>;

/// The way to the workers, each of which has a [`ShardWorker`](crate::ShardWorker). Messages of one worker stay in
/// order.
pub trait ShardLink: MaybeSend {
    /// Number of workers.
    fn workers(&self) -> usize;

    /// Sends a message, which is these parts one after the other. Never waits.
    ///
    /// # Errors
    ///
    /// [`OpsError::DeviceLost`] if the worker went away.
    fn send(&mut self, worker: usize, parts: &[&[u8]]) -> Result<(), OpsError>;

    /// The next answer of a worker.
    ///
    /// # Errors
    ///
    /// [`OpsError::DeviceLost`] if the worker went away.
    fn receive(&mut self, worker: usize) -> Receiving<'_>;
}

/// What a backend keeps of its workers.
pub(crate) struct Shards {
    pub(crate) link: Box<dyn ShardLink>,
    weights: u32,                         // sent so far
    steps: Vec<(u32, Weak<ShardedStep>)>, // those that workers have prepared
    next_step: u32,
    pub(crate) serial: u32, // of the last request
}

/// A weight that workers have, or have the other rows of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedWeight {
    /// Its number at the workers.
    pub(crate) id: u32,
    /// Rows of all.
    pub(crate) rows: usize,
    /// The first rows, which are the leader's.
    pub(crate) own: usize,
}

impl Shards {
    pub(crate) fn new(link: Box<dyn ShardLink>) -> Self {
        Self { link, weights: 0, steps: vec![], next_step: 0, serial: 0 }
    }

    /// Workers and the leader.
    pub(crate) fn parts(&self) -> usize {
        self.link.workers() + 1
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards").field("workers", &self.link.workers()).finish_non_exhaustive()
    }
}

/// The rows of one of `parts`, the leader being the first. Nearly equal numbers, whole tiles.
pub(crate) fn rows_of(rows: usize, parts: usize, part: usize) -> Range<usize> {
    let tiles = rows / TILE_OUTPUTS;
    let start = |part: usize| match part {
        part if part == parts => rows,
        part => tiles * part / parts * TILE_OUTPUTS,
    };
    start(part)..start(part + 1)
}

//! A model whose layers are split over several backends.
//!
//! Each [`Stage`](crate::Stage) has some layers, on a backend of its own kind; hidden states are
//! handed on from one to the next. A step is cut into pieces of its rows, in order, so that the
//! stages work at the same time, each at another piece. Natively a stage has a thread of its own;
//! in WebAssembly the stages run one after the other. All have the same block tables, each over
//! the cache of its own layers, and pieces pass every stage in order: so logits are those of the
//! model in one piece, to the bit where the backends agree to the bit.

mod any;
mod builder;
mod microbatch;
mod pipeline;
mod worker;

pub(crate) use any::DynStage;
pub use any::{AnyStage, AnyStageBuilder};
pub use builder::SplitBuilder;
use futures::future::{FutureExt, LocalBoxFuture};
use microbatch::{Microbatch, Pieces};
use pipeline::Pipeline;
use setun_ops::{BatchInputs, OpsError, top_logits::Ranked};
use worker::Worker;

use crate::{
    batch::Batch,
    cache::PagedCache,
    error::ModelError,
    layer_range::LayerRange,
    model::{MemoryUse, Model},
    options::MAX_ROWS,
    outputs::Outputs,
    plan::HeadOutput,
    profile::Profile,
    stage::{RankedRows, head_output},
    step_inputs::StepInputs,
};

/// Rows of a piece at least: with fewer, stages would read their weights too often for what they
/// gain by working at the same time.
const PIECE_ROWS: usize = 64;

/// The stages of a model. See the [module](self).
pub struct Split {
    shape: Shape,
    line: Pipeline,
    inputs: StepInputs,
    pieces: Pieces,
    piece_rows: usize,
    memory: MemoryUse,
    profile: Option<Profile>, // of the last step, where steps are timed
}

/// What all stages of a model have in common, and what it comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) positions: usize,
    pub(crate) block_positions: usize,
    pub(crate) block_bytes: usize, // of all stages
    pub(crate) state_bytes: usize, // of all stages
    pub(crate) tentative: usize,
    pub(crate) ranked: RankedRows, // of the last
}

impl Split {
    /// A model of these stages, in order; natively each gets a thread.
    ///
    /// # Errors
    ///
    /// If they are not the parts of one model, all of them and in order, or a thread is not to be
    /// had.
    pub fn new(stages: Vec<AnyStage>) -> Result<Self, ModelError> {
        Self::over(stages, Pipeline::new)
    }

    /// A model of these stages that runs them one after the other, all on the caller's thread.
    ///
    /// # Errors
    ///
    /// If they are not the parts of one model, all of them and in order.
    pub fn in_turn(stages: Vec<AnyStage>) -> Result<Self, ModelError> {
        Self::over(stages, |workers| Ok(Pipeline::in_turn(workers)))
    }

    fn over(
        stages: Vec<AnyStage>,
        line: impl FnOnce(Vec<Worker>) -> Result<Pipeline, ModelError>,
    ) -> Result<Self, ModelError> {
        let shape = Shape::of(&stages)?;
        let mut memory = MemoryUse::default();
        for stage in &stages {
            memory.add(&stage.0.memory());
        }
        let line = line(stages.into_iter().map(Worker::new).collect())?;
        Ok(Self {
            shape,
            line,
            inputs: StepInputs::default(),
            pieces: Pieces::default(),
            piece_rows: PIECE_ROWS,
            memory,
            profile: None,
        })
    }

    /// Cuts steps into pieces of at least this many rows, but for steps that have fewer.
    #[must_use]
    pub fn with_piece_rows(mut self, rows: usize) -> Self {
        self.piece_rows = rows.max(1);
        self
    }

    async fn step(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        outputs: &mut Outputs,
    ) -> Result<(), ModelError> {
        self.inputs.fill(batch, cache, 1)?;
        let head = head_output(&mut self.inputs, self.shape.ranked);
        let inputs = &self.inputs.inputs;
        let (rows, wanted) = (inputs.rows(), inputs.wanted.len());
        let room = match head {
            HeadOutput::TopLogits { capacity } => {
                Room::Ranked(outputs.ranked_mut(wanted, capacity)?)
            }
            HeadOutput::States => Room::Logits(outputs.states_mut(wanted, self.shape.hidden_size)?),
            _ => Room::Logits(outputs.logits_mut(wanted, self.shape.vocab_size)?),
        };
        let (number, count) = self.pieces.begin(rows, self.piece_rows);
        cache.step_runs();
        for index in 0..count {
            let mut piece = self.pieces.cut(&self.inputs.inputs, index, count);
            piece.head = head;
            piece.blocks = cache.high_water_blocks();
            piece.max_blocks = cache.max_blocks_beside_states();
            piece.states = cache.high_water_states();
            piece.profiled = self.profile.is_some();
            if index == 0 {
                piece.copies.extend_from_slice(cache.copies());
                piece.state_copies.extend_from_slice(cache.state_copies());
                cache.copies_made(); // each stage owes them from now on
            }
            self.line.send(piece)?;
        }
        self.collect(number, count, room).await?;
        cache.step_done();
        Ok(())
    }

    /// Sends a piece without rows, for which the last stage runs its head alone.
    async fn run_head(&mut self, rows: &[usize], outputs: &mut Outputs) -> Result<(), ModelError> {
        let room = Room::Logits(outputs.logits_mut(rows.len(), self.shape.vocab_size)?);
        let step = self.profile.clone();
        let (number, count) = self.pieces.begin(0, self.piece_rows);
        let mut piece = self.pieces.cut(&BatchInputs::default(), 0, count);
        piece.head_rows.extend_from_slice(rows);
        piece.profiled = step.is_some();
        self.line.send(piece)?;
        self.collect(number, count, room).await?;
        Profile::follow(&mut self.profile, step);
        Ok(())
    }

    /// Sends a piece without rows, which shrinks what it comes by.
    async fn shrink_stages(&mut self, cache: &mut PagedCache) -> Result<(), ModelError> {
        let (number, count) = self.pieces.begin(0, self.piece_rows);
        let mut piece = self.pieces.cut(&BatchInputs::default(), 0, count);
        (piece.blocks, piece.shrinks) = (cache.high_water_blocks(), true);
        piece.states = cache.high_water_states();
        piece.copies.extend_from_slice(cache.copies());
        piece.state_copies.extend_from_slice(cache.state_copies());
        cache.copies_made(); // each stage owes them from now on
        self.line.send(piece)?;
        self.collect(number, count, Room::Logits(&mut [])).await
    }

    /// Waits for the pieces of a step, those after an error too.
    async fn collect(
        &mut self,
        number: u64,
        count: usize,
        mut room: Room<'_>,
    ) -> Result<(), ModelError> {
        let mut error = None;
        let mut profile = Profile::default();
        let (mut rows, mut filled) = (0, 0);
        for _ in 0..count {
            let mut piece = self.line.next().await?;
            while piece.number != number {
                // A step that its caller gave up has left it.
                self.pieces.spare(piece);
                piece = self.line.next().await?;
            }
            error = error.or(piece.error.take());
            filled += room.put(filled, &piece);
            profile.add(&piece.profile);
            rows += piece.inputs.rows();
            self.memory = piece.memory;
            self.pieces.spare(piece);
        }
        if let Some(error) = error {
            return Err(error);
        }
        if let Some(last) = &mut self.profile {
            *last = Profile { steps: profile.steps.min(1), rows, ..profile };
        }
        Ok(())
    }
}

impl Shape {
    fn of(stages: &[AnyStage]) -> Result<Self, ModelError> {
        let parts: Vec<LayerRange> = stages.iter().map(|stage| stage.0.part()).collect();
        LayerRange::check(&parts)?;
        let mut shapes = stages.iter().map(|stage| stage.0.shape());
        let Some(first) = shapes.next() else {
            let what = "stages, at least";
            return Err(ModelError::Stages { what, expected: 1, found: 0 });
        };
        shapes.try_fold(first, |sum, shape| {
            let counts = |shape: &Self| {
                let Self { vocab_size, hidden_size, positions, block_positions, .. } = *shape;
                [vocab_size, hidden_size, positions, block_positions]
            };
            let whats = ["tokens", "hidden width", "positions", "positions of a block"];
            for (what, (expected, found)) in
                whats.into_iter().zip(counts(&sum).into_iter().zip(counts(&shape)))
            {
                if expected != found {
                    return Err(ModelError::Stages { what, expected, found });
                }
            }
            let block_bytes = sum.block_bytes + shape.block_bytes;
            let state_bytes = sum.state_bytes + shape.state_bytes;
            let tentative = sum.tentative.min(shape.tentative);
            Ok(Self { block_bytes, state_bytes, tentative, ..shape })
        })
    }
}

/// A step's outputs.
enum Room<'a> {
    Logits(&'a mut [f32]),
    Ranked(&'a mut [Ranked]),
}

impl Room<'_> {
    /// Puts a piece's rows after the elements of those before, and says how many it has.
    fn put(&mut self, first: usize, piece: &Microbatch) -> usize {
        match self {
            Self::Logits(room) => {
                room[first..][..piece.logits.len()].copy_from_slice(&piece.logits);
                piece.logits.len()
            }
            Self::Ranked(room) => {
                room[first..][..piece.ranked.len()].copy_from_slice(&piece.ranked);
                piece.ranked.len()
            }
        }
    }
}

impl Model for Split {
    fn vocab_size(&self) -> usize {
        self.shape.vocab_size
    }

    fn context_length(&self) -> usize {
        self.shape.positions
    }

    fn block_positions(&self) -> usize {
        self.shape.block_positions
    }

    fn block_bytes(&self) -> usize {
        self.shape.block_bytes
    }

    fn state_bytes(&self) -> usize {
        self.shape.state_bytes
    }

    fn max_tentative(&self) -> usize {
        self.shape.tentative
    }

    fn max_rows(&self) -> usize {
        MAX_ROWS
    }

    fn memory(&self) -> MemoryUse {
        self.memory
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.step(batch, cache, outputs).boxed_local()
    }

    fn head_logits<'a>(
        &'a mut self,
        rows: &'a [usize],
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.run_head(rows, outputs).boxed_local()
    }

    fn shrink<'a>(
        &'a mut self,
        cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.shrink_stages(cache).boxed_local()
    }

    fn set_profiled(&mut self, profiled: bool) {
        self.profile = profiled.then(Profile::default);
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref().filter(|profile| profile.steps > 0)
    }
}

/// What is left to say when the thread of a stage is no more.
fn ended() -> ModelError {
    OpsError::DeviceLost { reason: "the thread of a stage has ended".to_owned() }.into()
}

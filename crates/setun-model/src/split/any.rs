//! Stages whatever their backends.

use futures::future::{FutureExt, LocalBoxFuture};
use setun_checkpoint::ModelConfig;
use setun_ops::{Backend, BlockId, StateId, WeightData, WeightId, top_logits::Ranked};

use super::{Shape, microbatch::Microbatch};
use crate::{
    error::ModelError,
    layer_range::LayerRange,
    model::{MaybeSend, MaybeSendBackend, MemoryUse},
    plan::HeadOutput,
    profile::Profile,
    stage::{Stage, StageBuilder},
};

/// Blocks that a cache grows by at least.
const GROWTH: usize = 8;

/// A [`Stage`] on any backend.
pub struct AnyStage(pub(super) Box<dyn SendStage>);

/// A [`StageBuilder`] for any backend.
pub struct AnyStageBuilder(pub(super) Box<dyn DynStageBuilder>);

/// A [`DynStage`] that may go to another thread.
pub(super) trait SendStage: DynStage + MaybeSend {}
impl<T: DynStage + MaybeSend> SendStage for T {}

/// A [`Stage`] whatever its backend.
pub(crate) trait DynStage {
    fn part(&self) -> LayerRange;
    fn shape(&self) -> Shape;
    fn memory(&self) -> MemoryUse;
    fn set_profiled(&mut self, profiled: bool);
    fn profile(&self) -> Option<&Profile>;
    /// Grows the cache to this many blocks or some more, at most this many, and makes copies in it.
    fn grow_and_copy(
        &mut self,
        blocks: (usize, usize),
        copies: &[(BlockId, BlockId)],
    ) -> Result<(), ModelError>;
    /// Makes copies, and gives back the memory of the blocks from `blocks` on and what is kept
    /// ready for steps. Copies of blocks that were never there are none.
    fn shrink(&mut self, blocks: usize, copies: &[(BlockId, BlockId)]) -> Result<(), ModelError>;
    /// Grows the recurrent states to this many.
    fn grow_states(&mut self, states: usize) -> Result<(), ModelError>;
    /// Gives back the memory of the recurrent states from `states` on.
    fn copy_states(&mut self, pairs: &[(StateId, StateId)]) -> Result<(), ModelError>;
    fn shrink_states(&mut self, states: usize) -> Result<(), ModelError>;
    /// Takes the piece's hidden states, and leaves its own or, at the end, what was requested.
    fn work<'a>(
        &'a mut self,
        piece: &'a mut Microbatch,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>>;
}

pub(super) trait DynStageBuilder: MaybeSend {
    fn part(&self) -> LayerRange;
    fn needs(&self, id: WeightId) -> bool;
    fn add(&mut self, id: WeightId, weight: WeightData) -> Result<(), ModelError>;
    fn finish(self: Box<Self>) -> Result<AnyStage, ModelError>;
}

impl<B: MaybeSendBackend + 'static> From<Stage<B>> for AnyStage {
    fn from(stage: Stage<B>) -> Self {
        Self(Box::new(stage))
    }
}

impl<B: MaybeSendBackend + 'static> From<StageBuilder<B>> for AnyStageBuilder {
    fn from(builder: StageBuilder<B>) -> Self {
        Self(Box::new(builder))
    }
}

impl<B: Backend> DynStage for Stage<B> {
    fn part(&self) -> LayerRange {
        self.part
    }

    fn shape(&self) -> Shape {
        Shape {
            vocab_size: self.config.vocab_size,
            hidden_size: self.config.hidden_size,
            positions: self.positions,
            block_positions: self.spec.block_positions,
            block_bytes: self.spec.block_bytes(),
            state_bytes: self.spec.state_bytes(),
            tentative: self.spec.recurrent.map_or(usize::MAX, |recurrent| recurrent.tentative),
            ranked: self.ranked,
        }
    }

    fn memory(&self) -> MemoryUse {
        let head = self.weight_bytes[self.layout.head.0 as usize];
        MemoryUse {
            body: self.weight_bytes.iter().sum::<usize>() - head,
            head,
            screen: self.weights.iter().map(|weight| self.backend.bytes_beside(weight)).sum(),
            cache: self.cache_blocks * self.spec.block_bytes()
                + self.states * self.spec.state_bytes(),
        }
    }

    fn set_profiled(&mut self, profiled: bool) {
        self.profile = profiled.then(Profile::default);
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref().filter(|profile| profile.steps > 0)
    }

    fn grow_and_copy(
        &mut self,
        (blocks, most): (usize, usize),
        copies: &[(BlockId, BlockId)],
    ) -> Result<(), ModelError> {
        if blocks > self.cache_blocks {
            let roomy = GROWTH.max(self.cache_blocks + self.cache_blocks / 2);
            let roomy = roomy.min(most).max(blocks);
            self.cache_blocks = if self.backend.grow_cache(&mut self.cache, roomy).is_ok() {
                roomy
            } else {
                self.backend.grow_cache(&mut self.cache, blocks)?;
                blocks
            };
        }
        if !copies.is_empty() {
            self.backend.copy_blocks(&mut self.cache, copies)?;
        }
        let most = most.max(blocks);
        if self.cache_blocks > most {
            self.backend.shrink_cache(&mut self.cache, most)?; // recurrent states take the rest
            self.cache_blocks = most;
        }
        Ok(())
    }

    fn shrink(&mut self, blocks: usize, copies: &[(BlockId, BlockId)]) -> Result<(), ModelError> {
        self.steps.clear();
        self.forget_head_rows();
        // A copy may be on its way through a block that no step has written to.
        let needed = copies.iter().map(|(_, to)| to.0 as usize + 1).max().unwrap_or(0);
        if needed > self.cache_blocks {
            self.backend.grow_cache(&mut self.cache, needed)?;
            self.cache_blocks = needed;
        }
        let is_there = |block: BlockId| (block.0 as usize) < self.cache_blocks;
        let copies: Vec<_> = copies.iter().copied().filter(|&(from, _)| is_there(from)).collect();
        self.backend.copy_blocks(&mut self.cache, &copies)?;
        self.backend.shrink_cache(&mut self.cache, blocks)?;
        self.cache_blocks = self.cache_blocks.min(blocks);
        Ok(())
    }

    fn grow_states(&mut self, states: usize) -> Result<(), ModelError> {
        self.grow_states(states)
    }

    fn copy_states(&mut self, pairs: &[(StateId, StateId)]) -> Result<(), ModelError> {
        self.copy_states(pairs)
    }

    fn shrink_states(&mut self, states: usize) -> Result<(), ModelError> {
        self.shrink_states(states)
    }

    fn work<'a>(
        &'a mut self,
        piece: &'a mut Microbatch,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.pass(piece).boxed_local()
    }
}

impl<B: Backend> Stage<B> {
    /// See [`DynStage::work`].
    async fn pass(&mut self, piece: &mut Microbatch) -> Result<(), ModelError> {
        if !piece.head_rows.is_empty() {
            piece.logits.resize(piece.head_rows.len() * self.config.vocab_size, 0.0);
            let out = bytemuck::cast_slice_mut(&mut piece.logits);
            return self.head_logits(&piece.head_rows, out).await;
        }
        let rows = piece.inputs.rows();
        if !self.part.has_head() {
            let step = self.run(&piece.inputs, HeadOutput::Hidden, &piece.hidden, 1)?;
            piece.hidden.resize(rows * self.config.hidden_size, 0.0);
            return self.read(step, rows, bytemuck::cast_slice_mut(&mut piece.hidden)).await;
        }
        piece.inputs.wanted.append(&mut piece.wanted);
        piece.inputs.top_logits.append(&mut piece.top_logits);
        let [has_earlier, has_later] = piece.has_others;
        if !has_earlier {
            self.forget_head_rows();
        }
        let step = self.run(&piece.inputs, piece.head, &piece.hidden, 1)?;
        let wanted = piece.inputs.wanted.len();
        let out: &mut [u8] = if let HeadOutput::TopLogits { capacity } = piece.head {
            piece.ranked.resize(wanted * capacity, Ranked::PADDING);
            bytemuck::cast_slice_mut(&mut piece.ranked)
        } else {
            let ModelConfig { vocab_size, hidden_size, .. } = self.config;
            let is_states = piece.head == HeadOutput::States;
            let width = if is_states { hidden_size } else { vocab_size };
            piece.logits.resize(wanted * width, 0.0);
            bytemuck::cast_slice_mut(&mut piece.logits)
        };
        self.read(step, wanted, out).await?;
        if has_later { self.keep_head_rows().await } else { Ok(()) }
    }
}

impl<B: MaybeSendBackend + 'static> DynStageBuilder for StageBuilder<B> {
    fn part(&self) -> LayerRange {
        self.part()
    }

    fn needs(&self, id: WeightId) -> bool {
        self.needs(id)
    }

    fn add(&mut self, id: WeightId, weight: WeightData) -> Result<(), ModelError> {
        self.add(id, weight)
    }

    fn finish(self: Box<Self>) -> Result<AnyStage, ModelError> {
        (*self).finish().map(AnyStage::from)
    }
}

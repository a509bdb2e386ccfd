//! Attention: in one launch, or, of few rows over many positions, in chunks that are folded.

use setun_ops::{BufferId, OpsError, attention::inverse_sqrt, numeric::to_u32, op::HeadShape};

use super::Lowering;
use crate::{
    kernel::Kernel,
    launch::{Argument, CHUNK_POSITIONS, Launch, Scratch, When},
};

/// Widest head of the kernel.
const MAX_HEAD_DIM: usize = 256;

/// Most rows whose chunks are shared out, or that have a workgroup each: more of them keep a device busy
/// as they are.
const MAX_SPLIT_ROWS: u32 = 8;

/// What a launch of the kernel does: see `wgsl/attention.wgsl`.
#[derive(Clone, Copy)]
enum Mode {
    Whole = 0,
    Split = 1,
    Fold = 2,
}

impl<B> Lowering<'_, B> {
    pub(super) fn attention(
        &mut self,
        qkv: BufferId,
        shape: HeadShape,
        layer: usize,
        out: BufferId,
    ) -> Result<(), OpsError> {
        if shape.head_dim > MAX_HEAD_DIM {
            let what = format!("heads of {}, expected at most {MAX_HEAD_DIM}", shape.head_dim);
            return Err(OpsError::Plan { op: self.op, name: "attention", what });
        }
        let (_, positions) = self.plan.token_and_position_limits();
        // A plan without positions, as tests have them, knows no bound.
        let chunks =
            if positions == usize::MAX { 1 } else { positions.div_ceil(CHUNK_POSITIONS as usize) };
        let rows = self.rows(out);
        if rows > MAX_SPLIT_ROWS || chunks == 1 || !self.tiles.has_chunks {
            self.attend(qkv, shape, layer, out, (Mode::Whole, When::Always), chunks);
        } else {
            self.attend(qkv, shape, layer, out, (Mode::Whole, When::OneChunk), chunks);
            self.attend(qkv, shape, layer, out, (Mode::Split, When::EachChunk), chunks);
            self.attend(qkv, shape, layer, out, (Mode::Fold, When::Chunks), chunks);
        }
        Ok(())
    }

    fn attend(
        &mut self,
        qkv: BufferId,
        shape: HeadShape,
        layer: usize,
        out: BufferId,
        (mode, when): (Mode, When),
        chunks: usize,
    ) {
        let rows = self.rows(out);
        let groups = shape.kv_heads * (shape.heads / shape.kv_heads).div_ceil(self.tiles.heads);
        let sums = if matches!(mode, Mode::Whole) {
            Argument::Nothing
        } else {
            let vectors = 2 + shape.head_dim.div_ceil(4) * self.tiles.heads;
            let bytes = 16 * u64::from(rows) * (groups * chunks * vectors) as u64;
            self.launches.scratch(Scratch::Chunks, bytes)
        };
        let mut words = self.heads(shape);
        words.extend([inverse_sqrt(shape.head_dim).to_bits(), mode as u32, to_u32(chunks)]);
        let arguments = vec![
            Argument::Buffer(qkv),
            Argument::Keys(layer),
            Argument::Values(layer),
            sums,
            Argument::Buffer(out),
        ];
        let layers = if matches!(mode, Mode::Split) { to_u32(chunks) } else { 1 };
        let queries = if rows > MAX_SPLIT_ROWS { self.tiles.queries } else { 1 };
        let kernel = Kernel::Attention { element: self.plan.cache().element, queries };
        let grid = [to_u32(groups), rows.div_ceil(queries), layers];
        self.launches.list.push(Launch {
            op: self.op,
            kernel,
            shape: words,
            arguments,
            grid,
            when,
        });
    }

    pub(super) fn heads(&self, shape: HeadShape) -> Vec<u32> {
        let block_positions = self.plan.cache().block_positions;
        [shape.heads, shape.kv_heads, shape.head_dim, block_positions].map(to_u32).to_vec()
    }
}

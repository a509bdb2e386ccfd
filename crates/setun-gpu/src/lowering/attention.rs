//! Attention: in one launch, or, of few rows, in chunks of positions.

use setun_ops::{
    BufferId, OpsError,
    attention::{SPAN, inverse_sqrt},
    numeric::to_u32,
    op::HeadShape,
};

use super::Lowering;
use crate::{
    kernel::{ChunkLaunches, Kernel},
    launch::{Argument, CHUNK_POSITIONS, Launch, Scratch, When},
};

/// Widest head of the kernel.
const MAX_HEAD_DIM: usize = 256;

/// Most rows whose chunks are shared out: more of them keep a device busy as they are.
const MAX_SPLIT_ROWS: u32 = 8;

/// Likewise where chunks have launches in every step.
const MAX_CHUNKED_ROWS: u32 = 32;

/// Most chunks of a row: where a step has fewer, workgroups of the others end at once.
const MAX_CHUNKS: usize = 64;

/// Most bytes that launches over chunks leave for each other.
const MAX_CHUNK_BYTES: u64 = 1 << 28;

/// What a launch of the kernel does: see `wgsl/attention.wgsl`, and of chunks that have launches in
/// every step `cuda/parts/attention_chunks.cuh`.
#[derive(Clone, Copy)]
enum Mode {
    Whole = 0,
    Split = 1,
    Fold = 2,
    FoldSpans = 3,
}

/// How the positions of a row are shared out.
#[derive(Clone, Copy)]
struct Chunks {
    count: usize,
    positions: usize,
    /// What their launches leave for each other.
    bytes: u64,
    /// Whether they have a kernel of their own, in every step.
    always: bool,
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
        let chunks = self.chunks(shape, self.rows(out));
        let launches: &[(Mode, When)] = match chunks {
            None => &[(Mode::Whole, When::Always)],
            Some(Chunks { always: true, .. }) => &[
                (Mode::Split, When::Always),
                (Mode::Fold, When::Always),
                (Mode::FoldSpans, When::Always),
            ],
            Some(_) => &[
                (Mode::Whole, When::OneChunk),
                (Mode::Split, When::EachChunk),
                (Mode::Fold, When::Chunks),
            ],
        };
        for launch in launches {
            self.attend((qkv, out), shape, layer, *launch, chunks);
        }
        Ok(())
    }

    /// None where a workgroup takes all positions of its rows.
    fn chunks(&self, shape: HeadShape, rows: u32) -> Option<Chunks> {
        let (_, positions) = self.plan.token_and_position_limits();
        if positions == usize::MAX {
            return None; // a plan without positions, as tests have them, knows no bound
        }
        match self.tiles.chunks {
            ChunkLaunches::ByStep => {
                let each = CHUNK_POSITIONS as usize;
                let count = positions.div_ceil(each);
                let vectors = 2 + shape.head_dim.div_ceil(4) * self.tiles.heads;
                let bytes = 16 * u64::from(rows) * (self.groups(shape) * count * vectors) as u64;
                let chunks = Chunks { count, positions: each, bytes, always: false };
                (rows <= MAX_SPLIT_ROWS && count > 1).then_some(chunks)
            }
            ChunkLaunches::Always { positions: min_positions } => {
                let min_positions = min_positions as usize;
                let each = positions.div_ceil(MAX_CHUNKS).max(1).next_multiple_of(min_positions);
                let count = positions.div_ceil(each);
                let spans = count * each / SPAN;
                let floats = count * each + count + spans * (1 + shape.head_dim);
                let bytes = 4 * u64::from(rows) * (shape.heads * floats) as u64;
                let chunks = Chunks { count, positions: each, bytes, always: true };
                (rows <= MAX_CHUNKED_ROWS && bytes <= MAX_CHUNK_BYTES).then_some(chunks)
            }
        }
    }

    /// Workgroups of a row.
    fn groups(&self, shape: HeadShape) -> usize {
        shape.kv_heads * (shape.heads / shape.kv_heads).div_ceil(self.tiles.heads)
    }

    fn attend(
        &mut self,
        (qkv, out): (BufferId, BufferId),
        shape: HeadShape,
        layer: usize,
        (mode, when): (Mode, When),
        chunks: Option<Chunks>,
    ) {
        let is_whole = matches!(mode, Mode::Whole);
        let left = match chunks {
            Some(chunks) if !is_whole => self.launches.scratch(Scratch::Chunks, chunks.bytes),
            _ => Argument::Nothing,
        };
        let (count, positions) = chunks.map_or((1, 0), |chunks| (chunks.count, chunks.positions));
        let mut words = self.heads(shape);
        words.extend([inverse_sqrt(shape.head_dim).to_bits(), mode as u32]);
        words.extend([count, positions, self.spec(qkv).width].map(to_u32));
        let arguments = vec![
            Argument::Buffer(qkv),
            Argument::Keys(layer),
            Argument::Values(layer),
            left,
            Argument::Buffer(out),
        ];
        let always = chunks.is_some_and(|chunks| chunks.always);
        let has_layers = matches!(mode, Mode::Split) || (always && matches!(mode, Mode::Fold));
        let layers = if has_layers { to_u32(count) } else { 1 };
        let queries = if chunks.is_none() { self.tiles.queries } else { 1 };
        let rows = self.rows(out).div_ceil(queries);
        self.launches.list.push(Launch {
            op: self.op,
            kernel: Kernel::Attention { element: self.plan.cache().element, chunks: always },
            shape: words,
            arguments,
            grid: [to_u32(self.groups(shape)), rows, layers],
            when,
        });
    }

    pub(super) fn heads(&self, shape: HeadShape) -> Vec<u32> {
        let block_positions = self.plan.cache().block_positions;
        [shape.heads, shape.kv_heads, shape.head_dim, block_positions].map(to_u32).to_vec()
    }
}

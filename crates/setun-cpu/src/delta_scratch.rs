//! Memory in which a member of the team works on a key head of a `delta_net`.

use setun_ops::{
    HAS_RECURRENT, OpsError, Plan, aligned::Aligned, delta_net::DeltaNetShape, op::Op,
};

use crate::{lanes::LANES, memory::zeroed};

/// Rows that are taken in together.
pub(crate) const CHUNK: usize = 16;

/// Fewest rows for which a part of a state is brought together.
pub(crate) const PACKED_ROWS: usize = 4;

/// Columns of a state that pass a chunk's rows together.
pub(crate) const BLOCK: usize = 2 * LANES;

/// Memory of a member for one key head.
#[derive(Debug, Default)]
pub(crate) struct DeltaScratch {
    pub(crate) raw: Aligned<f32>, // [kernel − 1 + CHUNK, history_of_key_head]
    pub(crate) mixed: Aligned<f32>, // [CHUNK, channels of the head], after the convolution
    pub(crate) taps: Aligned<f32>, // [kernel, channels of the head]
    pub(crate) gates: Aligned<f32>, // [CHUNK, 2, group]: decays, then β
    pub(crate) out: Aligned<f32>, // [CHUNK, value_dim]
    pub(crate) block: Aligned<f32>, // [key_dim, BLOCK]
    pub(crate) state: Aligned<f32>, // [group, key_dim, value_dim], of tentative rows
}

/// The shape of a plan's delta nets.
pub(crate) fn delta_scratch(plan: &Plan) -> Option<DeltaNetShape> {
    let all = if HAS_RECURRENT { plan.ops() } else { &[] };
    all.iter().find_map(|op| match op {
        Op::DeltaNet { shape, .. } => Some(*shape),
        _ => None,
    })
}

impl DeltaScratch {
    pub(crate) fn grow(&mut self, shape: DeltaNetShape) -> Result<(), OpsError> {
        let DeltaNetShape { key_dim, value_dim, kernel, .. } = shape;
        let channels = channels(&shape);
        for (memory, size) in [
            (&mut self.raw, (kernel - 1 + CHUNK) * shape.history_of_key_head()),
            (&mut self.mixed, CHUNK * channels),
            (&mut self.taps, kernel * channels),
            (&mut self.gates, 2 * CHUNK * shape.group()),
            (&mut self.out, CHUNK * value_dim),
            (&mut self.block, key_dim * BLOCK),
            (&mut self.state, shape.group() * key_dim * value_dim),
        ] {
            if memory.len() < size {
                *memory = zeroed(size, "scratch memory")?;
            }
        }
        Ok(())
    }
}

/// Channels of a key head and its value heads.
pub(crate) fn channels(shape: &DeltaNetShape) -> usize {
    2 * shape.key_dim + shape.group() * shape.value_dim
}

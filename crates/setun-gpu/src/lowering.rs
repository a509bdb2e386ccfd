//! A plan as launches: for each operation the kernels that compute it.

mod attention;
mod hybrid;
mod linear;
mod tables;

use std::collections::HashMap;

pub(crate) use linear::MAX_OWN_WORDS;
use setun_ops::{
    BufferId, HAS_RECURRENT, OpsError, Plan, WeightId, WeightSpec,
    numeric::to_u32,
    op::{HeadShape, Norm, Op},
    plan::{BufferSpec, RowSet},
    quantize::scales_of_row,
    ternary::padded_columns,
};

use crate::{
    kernel::{COLUMNS, Kernel, Tiles},
    launch::{Argument, Launch, Launches, When},
    weight::{GpuWeight, WeightFormat},
};

/// The launches of a plan over weights in a device's memory, which have been checked.
///
/// # Errors
///
/// If an operation exceeds what its kernel can do.
pub(crate) fn lower<B>(
    plan: &Plan,
    weights: &[GpuWeight<B>],
    fusion: Fusion,
    tiles: Tiles,
) -> Result<Launches, OpsError> {
    let own_inputs = HashMap::new();
    let launches = Launches::default();
    let mut lowering = Lowering { plan, weights, fusion, tiles, op: 0, own_inputs, launches };
    for (index, op) in plan.ops().iter().enumerate() {
        lowering.op = index;
        lowering.op(op)?;
    }
    Ok(lowering.launches)
}

/// Whether several operations may share a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fusion {
    /// Wherever that saves a launch.
    #[default]
    Shared,
    /// Each has its own, so that each buffer can be read: for tests.
    Apart,
}

struct Lowering<'a, B> {
    plan: &'a Plan,
    weights: &'a [GpuWeight<B>],
    fusion: Fusion,
    tiles: Tiles,
    op: usize,
    /// Codes that no launch makes, as who reads them makes them: of which floats and norm.
    own_inputs: HashMap<BufferId, (BufferId, Option<Norm>)>,
    launches: Launches,
}

impl<B> Lowering<'_, B> {
    fn op(&mut self, op: &Op) -> Result<(), OpsError> {
        match op {
            Op::Embed { table, out } => self.embed(*table, *out),
            Op::RmsNorm { x, norm, out } => self.rms_norm(*x, *norm, *out),
            Op::Quantize { x, norm, out } => self.quantize(*x, *norm, *out),
            Op::TernaryMatmul { linear, residual, out, out_column } => {
                self.ternary_matmul(linear, *residual, *out, *out_column);
            }
            Op::HeadNorm { x, column, heads, norm } => self.head_norm(*x, *column, *heads, *norm),
            Op::RopeAppend { qkv, shape, rope, layer } => {
                self.rope_append(*qkv, *shape, *rope, *layer);
            }
            Op::Attention { qkv, shape, layer, out } => {
                self.attention(*qkv, *shape, *layer, *out)?;
            }
            Op::SigmoidGate { .. }
            | Op::DeltaNet { .. }
            | Op::DenseMatmul { .. }
            | Op::Hadamard { .. } => {
                if HAS_RECURRENT {
                    self.hybrid(op)?;
                }
            }
            Op::Gate { gate, up, activation, out } => self.gate(gate, up, *activation, *out),
            Op::Head { x, table, out } => self.head(*x, *table, Argument::Buffer(*out)),
            Op::TopLogits { x, table, out } => self.top_logits(*x, *table, *out),
            Op::Argmax { x, table, room, out } => self.argmax(*x, *table, *room, *out),
        }
        Ok(())
    }

    fn rms_norm(&mut self, x: BufferId, norm: Norm, out: BufferId) {
        let gathers = self.spec(x).rows != self.spec(out).rows;
        let shape = vec![
            to_u32(self.spec(x).width),
            norm.eps.to_bits(),
            self.is_wanted(out),
            u32::from(gathers),
        ];
        let arguments = vec![Argument::Buffer(x), weight(norm.gain), Argument::Buffer(out)];
        self.push(Kernel::RmsNorm, shape, arguments, [self.rows(out), 1, 1]);
    }

    fn quantize(&mut self, x: BufferId, norm: Option<Norm>, out: BufferId) {
        self.own_inputs.remove(&out);
        if self.readers_quantize(x, out) {
            self.own_inputs.insert(out, (x, norm));
            return;
        }
        let BufferSpec { kind, width, .. } = self.spec(out);
        let (group, padded) = (kind.group(), padded_columns(width));
        let shape = vec![
            to_u32(width),
            to_u32(padded / 4),
            self.rows(out),
            self.is_wanted(out),
            u32::from(norm.is_some()),
            norm.map_or(0, |norm| norm.eps.to_bits()),
            to_u32(scales_of_row(width, group)),
            to_u32(group.map_or(padded, |group| group.min(padded)) / 4),
        ];
        let gain = norm.map_or(Argument::Nothing, |norm| weight(norm.gain));
        let arguments = vec![Argument::Buffer(x), gain, Argument::Buffer(out)];
        let kernel = Kernel::Quantize { grouped: group.is_some() };
        self.push(kernel, shape, arguments, [self.rows(out), 1, 1]);
    }

    /// Whether all that reads the codes of one row can make them of `x`, which is still there.
    fn readers_quantize(&self, x: BufferId, out: BufferId) -> bool {
        let words = padded_columns(self.spec(x).width) / 4;
        // Lanes that agree on one scale make no others.
        if self.spec(out).kind.group().is_some() {
            return false;
        }
        if self.fusion == Fusion::Apart || self.rows(out) > 1 || words > MAX_OWN_WORDS {
            return false;
        }
        let (mut readers, mut is_overwritten) = (0, false);
        for op in &self.plan.ops()[self.op + 1..] {
            let (reads, write) = op.accesses();
            is_overwritten |= write == Some(x);
            if reads.contains(&Some(out)) {
                let can = match op {
                    Op::TernaryMatmul { .. } => true,
                    Op::Gate { gate, up, .. } => gate.x == up.x,
                    _ => false,
                };
                if !can || is_overwritten {
                    return false;
                }
                readers += 1;
            }
            if write == Some(out) {
                break;
            }
        }
        readers > 0
    }

    fn head_norm(&mut self, x: BufferId, column: usize, heads: usize, norm: Norm) {
        let head_dim = match self.plan.weights()[norm.gain.0 as usize] {
            WeightSpec::Vector { len } => len,
            _ => 0, // a checked plan names a vector
        };
        let shape = vec![
            to_u32(self.spec(x).width),
            to_u32(column),
            to_u32(head_dim),
            norm.eps.to_bits(),
            self.is_wanted(x),
        ];
        let arguments = vec![weight(norm.gain), Argument::Buffer(x)];
        self.push(Kernel::HeadNorm, shape, arguments, [to_u32(heads), self.rows(x), 1]);
    }

    fn rope_append(&mut self, qkv: BufferId, shape: HeadShape, rope: WeightId, layer: usize) {
        let kernel = Kernel::RopeAppend(self.plan.cache().element);
        let arguments = vec![
            weight(rope),
            Argument::Buffer(qkv),
            Argument::Keys(layer),
            Argument::Values(layer),
        ];
        let mut words = self.heads(shape);
        words.extend(match self.plan.weights()[rope.0 as usize] {
            WeightSpec::Rope { positions, head_dim } => [positions, head_dim / 2].map(to_u32),
            _ => [0, 0], // a checked plan names such a table
        });
        words.push(to_u32(self.spec(qkv).width));
        let heads = to_u32(shape.heads + shape.kv_heads);
        self.push(kernel, words, arguments, [self.rows(qkv), heads, 1]);
    }

    fn push(&mut self, kernel: Kernel, shape: Vec<u32>, arguments: Vec<Argument>, grid: [u32; 3]) {
        let when = When::Always;
        self.launches.list.push(Launch { op: self.op, kernel, shape, arguments, grid, when });
    }

    fn spec(&self, buffer: BufferId) -> BufferSpec {
        self.plan.buffer(buffer)
    }

    fn rows(&self, buffer: BufferId) -> u32 {
        to_u32(self.plan.buffer_rows(buffer))
    }

    fn is_wanted(&self, buffer: BufferId) -> u32 {
        u32::from(self.spec(buffer).rows == RowSet::Wanted)
    }

    fn form(&self, id: WeightId) -> WeightFormat {
        self.weights[id.0 as usize].form
    }
}

/// The variant of a product for this many rows.
fn columns(rows: u32) -> u32 {
    COLUMNS.into_iter().find(|&columns| columns >= rows).unwrap_or(COLUMNS[COLUMNS.len() - 1])
}

fn weight(id: WeightId) -> Argument {
    Argument::Weight(id, 0)
}

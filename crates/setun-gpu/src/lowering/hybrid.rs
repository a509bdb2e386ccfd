//! Operations of hybrid models: delta nets, their small matrices, gates of attention and rotations.

use setun_ops::{
    BufferId, OpsError, WeightId,
    delta_net::{DeltaNetShape, HeadOrder, query_scale},
    hadamard,
    numeric::to_u32,
    op::{DeltaNetWeights, Op},
};

use super::{Lowering, weight};
use crate::{
    kernel::{DeltaNetPart, Kernel, MAX_KEY_DIM},
    launch::Argument,
    weight::WeightFormat,
};

/// Columns of a workgroup of `wgsl/sigmoid_gate.wgsl`.
const GATE_COLUMNS: u32 = 512;

/// Rows of a workgroup of `wgsl/dense_matmul.wgsl`.
const DENSE_ROWS: u32 = 4;

/// Columns of a workgroup of `wgsl/parts/delta_net_rule.wgsl`.
const RULE_COLUMNS: u32 = 32;

impl<B> Lowering<'_, B> {
    /// Lowers an operation for which [`Op::is_hybrid`] holds.
    pub(super) fn hybrid(&mut self, op: &Op) -> Result<(), OpsError> {
        match op {
            Op::SigmoidGate { x, gate, column } => self.sigmoid_gate(*x, *gate, *column),
            Op::DenseMatmul { x, weight, out, out_column } => {
                self.dense_matmul(*x, *weight, *out, *out_column);
            }
            Op::Hadamard { x, signs, block, is_inverse } => {
                self.hadamard(*x, *signs, *block, *is_inverse);
            }
            Op::DeltaNet { x, shape, weights, layer, out } => {
                self.delta_net(*x, *shape, weights, *layer, *out)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn sigmoid_gate(&mut self, x: BufferId, gate: BufferId, column: usize) {
        let (width, rows) = (to_u32(self.spec(x).width), self.rows(x));
        let shape = vec![width, to_u32(self.spec(gate).width), to_u32(column)];
        let arguments = vec![Argument::Buffer(gate), Argument::Buffer(x)];
        self.push(Kernel::SigmoidGate, shape, arguments, [width.div_ceil(GATE_COLUMNS), rows, 1]);
    }

    fn dense_matmul(&mut self, x: BufferId, table: WeightId, out: BufferId, column: usize) {
        let WeightFormat::Dense { table: element, stride } = self.form(table) else {
            return; // a checked plan names a table
        };
        let (width, out_width) = (self.spec(x).width, self.spec(out).width);
        let rows = self.rows(x).div_ceil(DENSE_ROWS);
        for (index, (first, outputs)) in self.parts(table).into_iter().enumerate() {
            let shape = [width, stride, first, out_width, column].map(to_u32).to_vec();
            let table = Argument::Weight(table, index);
            let arguments = vec![table, Argument::Buffer(x), Argument::Buffer(out)];
            let grid = [to_u32(outputs), rows, 1];
            self.push(Kernel::DenseMatmul(element), shape, arguments, grid);
        }
    }

    fn hadamard(&mut self, x: BufferId, signs: Option<WeightId>, block: usize, is_inverse: bool) {
        let (width, rows) = (self.spec(x).width, self.rows(x));
        let shape = vec![
            to_u32(width / 4),
            hadamard::scale(block).to_bits(),
            self.is_wanted(x),
            u32::from(signs.is_some()),
            u32::from(is_inverse),
        ];
        let signs = signs.map_or(Argument::Nothing, weight);
        let kernel = Kernel::Hadamard { block: to_u32(block) };
        let grid = [to_u32(width / block), rows, 1];
        self.push(kernel, shape, vec![signs, Argument::Buffer(x)], grid);
    }

    fn delta_net(
        &mut self,
        x: BufferId,
        shape: DeltaNetShape,
        weights: &DeltaNetWeights,
        layer: usize,
        out: BufferId,
    ) -> Result<(), OpsError> {
        let key_dim = to_u32(shape.key_dim);
        if key_dim > MAX_KEY_DIM {
            let what = format!("heads of {key_dim}, expected at most {MAX_KEY_DIM}");
            return Err(OpsError::Plan { op: self.op, name: "delta_net", what });
        }
        let ring = self.plan.cache().recurrent.map_or(0, |recurrent| recurrent.ring());
        let DeltaNetShape { key_heads, value_heads, value_dim, kernel, .. } = shape;
        let tiled = |order| usize::from(order == HeadOrder::Tiled);
        let orders = [tiled(shape.order), tiled(shape.output_order)];
        let sizes = [key_heads, value_heads, shape.key_dim, value_dim, kernel];
        let mut words: Vec<u32> = sizes.into_iter().chain(orders).map(to_u32).collect();
        let eps = weights.norm.eps.to_bits();
        words.extend([to_u32(ring), query_scale(shape.key_dim).to_bits(), eps]);
        let (heads, rows) = (to_u32(value_heads), self.rows(x));
        let launches = [
            (
                DeltaNetPart::Rule { key_dim },
                weights.conv,
                to_u32(value_dim).div_ceil(RULE_COLUMNS),
            ),
            (DeltaNetPart::Output, weights.norm.gain, 1),
        ];
        for (part, vector, columns) in launches {
            let arguments = vec![
                Argument::Buffer(x),
                weight(vector),
                weight(weights.decay),
                weight(weights.dt_bias),
                Argument::Matrices(layer),
                Argument::History(layer),
                Argument::Buffer(out),
            ];
            self.push(Kernel::DeltaNet(part), words.clone(), arguments, [heads, rows, columns]);
        }
        Ok(())
    }
}

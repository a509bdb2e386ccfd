//! Products with ternary matrices, and the gate made of two.

use setun_ops::{
    BufferId, WeightSpec,
    numeric::to_u32,
    op::{Activation, Linear},
    quantize::scales_of_row,
    ternary::{BLOCK_COLUMNS, PLANE_COLUMNS, padded_columns},
    ternary_matmul::common_run,
};

use super::{Lowering, columns, weight};
use crate::{
    kernel::{COLUMNS, Input, Kernel, Product},
    launch::Argument,
    weight::WeightFormat,
};

/// Rows that a workgroup takes together at most; more of them go in tiles.
const MAX_COLUMNS: u32 = COLUMNS[COLUMNS.len() - 1];

/// And with two matrices, whose sums a lane keeps both.
const MAX_GATE_COLUMNS: u32 = 4;

/// Widest row, in words of codes, that a workgroup quantizes for itself: with the sums over its
/// lanes it fits WebGPU's least memory of a workgroup, 16 KiB.
pub(crate) const MAX_OWN_WORDS: usize = (16_384 - 4096) / 4;

/// One matrix of a product, in numbers.
struct Side {
    outputs: usize,
    columns: usize,
    /// Scales of a row of weights and of one of activations.
    groups: [usize; 2],
    bias: u32,
    grouped: bool,
    /// Columns that have one scale of each.
    run: usize,
    runs: usize,
    /// Runs that share a scale of weights, and one of activations.
    shared: [usize; 2],
}

impl<B> Lowering<'_, B> {
    pub(super) fn ternary_matmul(
        &mut self,
        linear: &Linear,
        residual: Option<BufferId>,
        out: BufferId,
        first: usize,
    ) {
        let Some(side) = self.side(linear) else { return };
        let in_place = residual == Some(out);
        let kind = residual.map_or(0, |_| if in_place { 2 } else { 1 });
        let (product, inputs) = self.inputs([linear.x; 2], side.grouped, MAX_COLUMNS);
        let shape = self.product_shape([&side, &side], linear.x, (out, first), kind);
        let residual = residual.filter(|_| !in_place);
        let own = [
            weight(linear.weight),
            bias(linear),
            residual.map_or(Argument::Nothing, Argument::Buffer),
            Argument::Buffer(out),
        ];
        let arguments = inputs.into_iter().chain(own).collect();
        let grid = self.product_grid(&side, linear.x, product);
        self.push(Kernel::TernaryMatmul(product), shape, arguments, grid);
    }

    pub(super) fn gate(
        &mut self,
        gate: &Linear,
        up: &Linear,
        activation: Activation,
        out: BufferId,
    ) {
        let (Some(first), Some(second)) = (self.side(gate), self.side(up)) else { return };
        let (product, inputs) =
            self.inputs([gate.x, up.x], first.grouped || second.grouped, MAX_GATE_COLUMNS);
        let shape = self.product_shape([&first, &second], gate.x, (out, 0), 0);
        let own =
            [weight(gate.weight), weight(up.weight), bias(gate), bias(up), Argument::Buffer(out)];
        let arguments = inputs.into_iter().chain(own).collect();
        let grid = self.product_grid(&first, gate.x, product);
        self.push(Kernel::Gate(activation, product), shape, arguments, grid);
    }

    /// Nothing for what a checked plan does not hold.
    fn side(&self, linear: &Linear) -> Option<Side> {
        let WeightFormat::Ternary { groups, group_planes } = self.form(linear.weight) else {
            return None;
        };
        let WeightSpec::Ternary { rows: outputs, columns, grouped } =
            self.plan.weights()[linear.weight.0 as usize]
        else {
            return None;
        };
        let bias = linear.bias.map_or(0, |bias| if bias.before_scale { 2 } else { 1 });
        let w = grouped.then_some(group_planes * PLANE_COLUMNS);
        let x = self.spec(linear.x).kind.group();
        let (groups, grouped) = ([groups, scales_of_row(columns, x)], w.or(x).is_some());
        let run = common_run(x, w).unwrap_or(BLOCK_COLUMNS);
        let runs = columns.div_ceil(run);
        let shared = [w, x].map(|group| group.map_or(runs, |group| runs.min(group / run)));
        Some(Side { outputs, columns, groups, bias, grouped, run, runs, shared })
    }

    /// The variant and its first arguments: codes, or the floats that they are made of.
    fn inputs(&self, x: [BufferId; 2], grouped: bool, most: u32) -> (Product, [Argument; 2]) {
        if let Some((floats, norm)) = self.own_inputs.get(&x[0]) {
            let words = to_u32(padded_columns(self.spec(*floats).width) / 4);
            let gain = norm.map_or(Argument::Nothing, |norm| weight(norm.gain));
            let product = Product { grouped, input: Input::Floats { words } };
            return (product, [Argument::Buffer(*floats), gain]);
        }
        let rows = self.rows(x[0]);
        let input = if rows > MAX_COLUMNS && !grouped && self.tiles.many.is_some() {
            Input::Tiles
        } else {
            Input::Codes { columns: columns(rows).min(most) }
        };
        (Product { grouped, input }, x.map(Argument::Buffer))
    }

    /// The words of `Shape` in `cuda/parts/linear.cuh` and `wgsl/parts/linear.wgsl`.
    fn product_shape(
        &self,
        sides: [&Side; 2],
        x: BufferId,
        (out, first): (BufferId, usize),
        residual: u32,
    ) -> Vec<u32> {
        let padded = padded_columns(sides[0].columns);
        let norm = self.own_inputs.get(&x).and_then(|(_, norm)| *norm);
        let mut shape = vec![to_u32(sides[0].outputs), to_u32(padded / BLOCK_COLUMNS)];
        shape.extend(sides.map(|side| to_u32(side.groups[0])));
        shape.extend(sides.map(|side| to_u32(side.groups[1])));
        shape.extend(sides.map(|side| u32::from(side.grouped)));
        shape.extend(sides.map(|side| to_u32(side.runs)));
        shape.extend(sides.map(|side| to_u32(side.run / PLANE_COLUMNS)));
        shape.extend(sides.map(|side| to_u32(side.shared[0])));
        shape.extend(sides.map(|side| to_u32(side.shared[1])));
        shape.extend(sides.map(|side| side.bias));
        shape.extend([
            self.rows(x),
            self.is_wanted(x),
            to_u32(sides[0].columns),
            to_u32(padded / 4),
            u32::from(norm.is_some()),
            norm.map_or(0, |norm| norm.eps.to_bits()),
            to_u32(self.spec(out).width),
            to_u32(first),
            residual,
        ]);
        shape
    }

    fn product_grid(&self, side: &Side, x: BufferId, product: Product) -> [u32; 3] {
        let (outputs, rows) = match (product.input, self.tiles.many) {
            (Input::Tiles, Some([outputs, rows])) => (outputs, rows),
            (Input::Codes { columns }, _) => (self.tiles.outputs, columns),
            (Input::Tiles | Input::Floats { .. }, _) => (self.tiles.outputs, 1),
        };
        [to_u32(side.outputs).div_ceil(outputs), self.rows(x).div_ceil(rows), 1]
    }
}

fn bias(linear: &Linear) -> Argument {
    linear.bias.map_or(Argument::Nothing, |bias| weight(bias.weight))
}

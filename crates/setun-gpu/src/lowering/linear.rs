//! Products with ternary matrices, and the gate made of two.

use setun_ops::{
    BufferId,
    op::{Activation, Linear},
    ternary::{BLOCK_COLUMNS, padded_columns},
};

use super::{GATE_LANES, Lowering, columns, weight, word};
use crate::{
    kernel::Kernel,
    launch::Argument,
    weight::Form,
};

/// Outputs of a workgroup.
const OUTPUTS: u32 = 8;

/// Where a product goes: what `wgsl/ternary_matmul.wgsl` calls `y`.
struct Target {
    y: Argument,
    width: usize,
    first: usize,
    residual: Option<BufferId>,
}

impl<B> Lowering<'_, B> {
    pub(super) fn ternary_matmul(
        &mut self,
        linear: &Linear,
        residual: Option<BufferId>,
        out: BufferId,
        first: usize,
    ) {
        let width = self.spec(out).width;
        self.product(linear, &Target { y: Argument::Buffer(out), width, first, residual });
    }

    pub(super) fn gate(
        &mut self,
        gate: &Linear,
        up: &Linear,
        activation: Activation,
        out: BufferId,
    ) {
        let width = self.spec(out).width;
        let bytes = 4 * u64::from(self.rows(out)) * width as u64;
        let sides = [gate, up].map(|side| {
            let y = self.launches.scratch(usize::from(std::ptr::eq(side, up)), bytes);
            self.product(side, &Target { y, width, first: 0, residual: None });
            y
        });
        let shape = vec![word(width), self.is_wanted(out)];
        let arguments = vec![sides[0], sides[1], Argument::Buffer(out)];
        let grid = [word(width.div_ceil(GATE_LANES)), self.rows(out), 1];
        self.push(Kernel::Gate(activation), shape, arguments, grid);
    }

    fn product(&mut self, linear: &Linear, target: &Target) {
        let Form::Ternary { groups, group_planes } = self.form(linear.weight) else {
            return; // a checked plan names a ternary matrix
        };
        let setun_ops::WeightSpec::Ternary { rows: outputs, columns: inputs, grouped } =
            self.plan.weights()[linear.weight.0 as usize]
        else {
            return;
        };
        let rows = self.rows(linear.x);
        let bias = linear.bias.map_or(0, |bias| if bias.before_scale { 2 } else { 1 });
        let in_place = target.residual.is_some_and(|id| Argument::Buffer(id) == target.y);
        let residual = target.residual.map_or(0, |_| if in_place { 2 } else { 1 });
        let shape = vec![
            word(outputs),
            word(padded_columns(inputs) / BLOCK_COLUMNS),
            word(groups),
            word(group_planes),
            rows,
            self.is_wanted(linear.x),
            bias,
            residual,
            word(target.width),
            word(target.first),
        ];
        let arguments = vec![
            weight(linear.weight),
            Argument::Buffer(linear.x),
            linear.bias.map_or(Argument::Nothing, |bias| weight(bias.weight)),
            target.residual.filter(|_| !in_place).map_or(Argument::Nothing, Argument::Buffer),
            target.y,
        ];
        let columns = columns(rows);
        let grid = [word(outputs).div_ceil(OUTPUTS), rows.div_ceil(columns), 1];
        self.push(Kernel::TernaryMatmul { grouped, columns }, shape, arguments, grid);
    }
}

//! The operations of a gated delta net.

use setun_ops::{BufferId, Op, WeightId, WeightSpec};

use super::Steps;
use crate::layout::{DeltaNetLayout, LayerLayout};

impl Steps<'_> {
    pub(super) fn delta_net(
        &mut self,
        layer: &LayerLayout,
        net: &DeltaNetLayout,
        hidden: BufferId,
    ) -> BufferId {
        let (shape, index) = (net.shape, self.recurrent);
        self.recurrent += 1;
        let mixed = self.float(shape.input_width());
        let normed = self.norm(hidden, layer.input_norm);
        let dense = net.gates.dense.filter(|[first, _]| self.is_table(*first));
        let mut out_column = net.gates.ternary.column;
        for weight in dense.into_iter().flatten() {
            self.plan.push(Op::DenseMatmul { x: normed, weight, out: mixed, out_column });
            out_column += shape.value_heads;
        }
        let gates = std::slice::from_ref(&net.gates.ternary);
        let ternary = if dense.is_some() { &[] } else { gates };
        let inputs: Vec<_> = ternary.iter().chain(&net.input).cloned().collect();
        self.linears(normed, None, &inputs, |steps, linear, layout| {
            let (residual, out_column) = (None, layout.column);
            steps.plan.push(Op::TernaryMatmul { linear, residual, out: mixed, out_column });
        });
        self.plan.release(normed);
        let out = self.float(shape.value_width());
        let weights = net.weights;
        self.plan.push(Op::DeltaNet { x: mixed, shape, weights, layer: index, out });
        self.plan.release(mixed);
        self.add_to_residual(hidden, out, None, &layer.output)
    }

    fn is_table(&self, weight: WeightId) -> bool {
        matches!(self.layout.specs[weight.0 as usize], WeightSpec::Dense { .. })
    }
}

//! Densities of a layer's feed-forward part, which exact sparsity relies on.

use setun_ops::{
    Op, Plan,
    op::{Activation, BufferId},
};

use crate::layout::Layout;

/// What was not zero in the feed-forward part of a layer, over all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerDensity {
    /// Gates that are open. None were counted where the activation is not relu², which closes none.
    pub gates: Density,
    /// Codes that enter `down`, after its norm and quantizing.
    pub down: Density,
}

/// How many of some elements are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Density {
    /// Those that are not zero.
    pub nonzero: u64,
    /// All that were counted.
    pub all: u64,
}

impl Density {
    /// The share that is not zero, 0 to 1. None where nothing was counted.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.nonzero as f64 / self.all as f64)
    }

    fn add(&mut self, other: Self) {
        self.nonzero += other.nonzero;
        self.all += other.all;
    }
}

/// Adds other steps, layer by layer, from the first layer that they have.
pub(super) fn add(layers: &mut Vec<LayerDensity>, others: &[LayerDensity], first: usize) {
    if layers.len() < first + others.len() {
        layers.resize(first + others.len(), LayerDensity::default());
    }
    for (layer, other) in layers[first..].iter_mut().zip(others) {
        layer.gates.add(other.gates);
        layer.down.add(other.down);
    }
}

/// An op of a plan whose elements that are not zero are counted.
#[derive(Debug)]
pub(super) struct Counted {
    op: usize,
    layer: usize,
    is_gate: bool, // else the codes that enter `down`
    width: usize,
}

impl Counted {
    /// All of a plan: the gates, and what quantizes for `down`.
    pub(super) fn all(plan: &Plan, layout: &Layout) -> Vec<Self> {
        let mut all = vec![];
        for (index, op) in plan.ops().iter().enumerate() {
            let counted = |op, out, layer, is_gate| {
                let width = plan.buffer(out).width;
                Self { op, layer, is_gate, width }
            };
            match op {
                Op::Gate { gate, activation: Activation::ReluSquared, out, .. } => {
                    let layer = layout.layers.iter().position(|l| l.gate.weight == gate.weight);
                    all.extend(layer.map(|layer| counted(index, *out, layer, true)));
                }
                Op::TernaryMatmul { linear, .. } => {
                    let layer = layout.layers.iter().position(|l| l.down.weight == linear.weight);
                    let found = layer.zip(quantizer(&plan.ops()[..index], linear.x));
                    all.extend(found.map(|(layer, op)| counted(op, linear.x, layer, false)));
                }
                _ => {}
            }
        }
        all
    }

    /// Adds what a step of this many rows counted. `nonzero` has an element for each op.
    pub(super) fn add(&self, nonzero: &[u64], rows: usize, layers: &mut [LayerDensity]) {
        let layer = &mut layers[self.layer];
        let density = if self.is_gate { &mut layer.gates } else { &mut layer.down };
        density.add(Density { nonzero: nonzero[self.op], all: (rows * self.width) as u64 });
    }
}

/// The last of some ops that wrote codes to a buffer.
fn quantizer(ops: &[Op], codes: BufferId) -> Option<usize> {
    ops.iter().rposition(|op| matches!(op, Op::Quantize { out, .. } if *out == codes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_added_one_by_one() {
        let density = |nonzero, all| Density { nonzero, all };
        let layer = |gates, down| LayerDensity { gates, down };
        let step = [layer(density(1, 4), density(2, 4)), layer(density(0, 0), density(3, 4))];
        let mut sum = vec![];
        add(&mut sum, &step, 0);
        add(&mut sum, &step[..1], 0);
        add(&mut sum, &step[1..], 1);
        assert_eq!(sum, [layer(density(2, 8), density(4, 8)), layer(density(0, 0), density(6, 8))]);
        assert_eq!(sum[0].gates.share(), Some(0.25));
        assert_eq!(sum[1].gates.share(), None);
    }
}

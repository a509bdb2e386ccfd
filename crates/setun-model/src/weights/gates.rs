//! The gate matrices of a delta net that are stored as floats: ternary or dense.
//!
//! Where they are stored as floats, only their values show which. Those of the first delta net decide for all.

use setun_checkpoint::{Tensor, blocks, dense};
use setun_ops::{WeightData, WeightSpec};

use super::{Role, WeightsBuilder, targets::Targets};
use crate::{error::ModelError, layer_range::ABSENT};

impl Targets {
    /// Leaves out the linear layers of gates, which are handed out as they are stored.
    pub(super) fn leave_gates(&mut self) {
        for gates in &self.gates {
            self.linears[gates.linear].is_left_out = true;
        }
    }
}

impl WeightsBuilder {
    pub(super) fn add_gate(
        &mut self,
        net: usize,
        part: usize,
        tensor: Tensor,
    ) -> Result<(), ModelError> {
        self.targets.gates[net].tensors[part] = Some(tensor);
        if self.targets.are_gates_ternary.is_none() {
            let [Some(b), Some(a)] = &self.targets.gates[0].tensors else { return Ok(()) };
            self.decide(blocks::unpack(b).is_ok() && blocks::unpack(a).is_ok());
        }
        for net in 0..self.targets.gates.len() {
            for part in 0..2 {
                if let Some(tensor) = self.targets.gates[net].tensors[part].take() {
                    self.finish_gate(net, part, tensor)?;
                }
            }
        }
        self.settle_if_known()
    }

    /// Of each pair of forms the other has no weights.
    fn decide(&mut self, are_ternary: bool) {
        self.targets.are_gates_ternary = Some(are_ternary);
        for gates in &self.targets.gates {
            let linear = &mut self.targets.linears[gates.linear];
            let absent = if are_ternary { gates.dense.to_vec() } else { vec![linear.weight] };
            linear.is_left_out = !are_ternary;
            for id in absent {
                self.layout.specs[id.0 as usize] = ABSENT;
                self.data[id.0 as usize] = Some(WeightData::Vector(vec![0.0]));
            }
        }
    }

    fn finish_gate(&mut self, net: usize, part: usize, tensor: Tensor) -> Result<(), ModelError> {
        let gates = &self.targets.gates[net];
        if self.targets.are_gates_ternary == Some(true) {
            let index = gates.linear;
            let linear = &mut self.targets.linears[index];
            linear.parts[part].take(tensor, Role::Weight, linear.class)?;
            let is_whole = !self.targets.unsettled && self.targets.linears[index].is_complete();
            return if is_whole { self.finish_linear(index) } else { Ok(()) };
        }
        let id = gates.dense[part].0 as usize;
        let table = WeightData::Dense(dense::table(tensor)?);
        self.kinds[id] = table.kind();
        debug_assert!(matches!(self.layout.specs[id], WeightSpec::Dense { .. }), "a table");
        self.data[id] = Some(table);
        Ok(())
    }
}

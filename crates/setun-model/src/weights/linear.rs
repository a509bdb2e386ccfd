//! Linear layers whose tensors come one by one.

use setun_checkpoint::{Tensor, config::LinearClass, dense, exact, master, packed};
use setun_ops::{
    WeightData, WeightId,
    aligned::Aligned,
    ternary::{Scales, TernaryMatrix},
};

use super::infos::Form;
use crate::error::ModelError;

/// Matrices on their way to become one stacked matrix.
#[derive(Debug)]
pub(super) struct PendingLinear {
    pub(super) weight: WeightId,
    pub(super) bias: Option<WeightId>,
    pub(super) class: LinearClass,
    pub(super) parts: Vec<PendingPart>,
}

#[derive(Debug)]
pub(super) struct PendingPart {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) form: Form,
    pub(super) codes: Option<Aligned<u8>>,
    pub(super) scale: Option<f32>,
    pub(super) bias: Option<Vec<f32>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Weight,
    Scale,
    Bias,
}

impl PendingPart {
    pub(super) fn take(
        &mut self,
        tensor: &Tensor,
        role: Role,
        class: LinearClass,
    ) -> Result<(), ModelError> {
        match role {
            Role::Bias => self.bias = Some(dense::vector(tensor)?),
            Role::Scale => self.scale = Some(dense::weight_factor(tensor, class)?),
            Role::Weight => match self.form {
                Form::Packed => {
                    self.codes = Some(packed::unpack(tensor, self.rows, self.columns)?);
                }
                Form::Exact => self.codes = Some(exact::pack(tensor)?),
                Form::Master => {
                    let (codes, scale) = master::quantize(tensor)?;
                    (self.codes, self.scale) = (Some(codes), Some(scale));
                }
            },
        }
        Ok(())
    }

    pub(super) fn is_complete(&self, has_bias: bool) -> bool {
        self.codes.is_some() && self.scale.is_some() && (self.bias.is_some() || !has_bias)
    }
}

impl PendingLinear {
    pub(super) fn finish(&mut self, data: &mut [Option<WeightData>]) -> Result<(), ModelError> {
        let mut bias = vec![];
        let mut matrices = vec![];
        for part in &mut self.parts {
            if let (Some(codes), Some(scale)) = (part.codes.take(), part.scale) {
                let scales = Scales::Tensor(scale);
                matrices.push(TernaryMatrix::new(part.rows, part.columns, codes, scales)?);
            }
            bias.extend(part.bias.take().unwrap_or_default());
        }
        let matrix = TernaryMatrix::stack(matrices)?;
        data[self.weight.0 as usize] = Some(WeightData::Ternary(matrix));
        if let Some(id) = self.bias {
            data[id.0 as usize] = Some(WeightData::Vector(bias));
        }
        Ok(())
    }
}

//! Linear layers whose tensors come one by one.

use setun_checkpoint::{
    CheckpointError, Dtype, Tensor, blocks, config::LinearClass, dense, fake_quantized, master,
    packed, scales::by_group,
};
use setun_ops::{
    HAS_RECURRENT, WeightData, WeightId,
    aligned::Aligned,
    ternary::{Scales, TernaryMatrix},
    weight::ScaleKind,
};

use super::{Role, affine::PendingAffine, infos::StorageFormat, place::LayerPlace};
use crate::error::ModelError;

/// Matrices on their way to become one stacked matrix.
#[derive(Debug)]
pub(super) struct PendingLinear {
    pub(super) weight: WeightId,
    pub(super) bias: Option<WeightId>,
    pub(super) class: LinearClass,
    pub(super) scales: ScaleKind, // of the stacked matrix
    pub(super) parts: Vec<PendingPart>,
    pub(super) place: LayerPlace,
    pub(super) order: Option<Vec<usize>>, // of its outputs, by those of the stacked parts
    pub(super) blocks: Option<(Vec<usize>, usize)>, // order of blocks of columns, and their width
    pub(super) is_left_out: bool,         // as tables take its place
}

#[derive(Debug)]
pub(super) struct PendingPart {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) form: StorageFormat,
    pub(super) has_scale: bool, // beside the weight
    pub(super) kind: ScaleKind, // of the matrix by itself
    pub(super) codes: Option<Aligned<u8>>,
    pub(super) own_scales: Option<Scales>,
    pub(super) scale: Option<Scales>,
    pub(super) bias: Option<Vec<f32>>,
    affine: Option<PendingAffine>, // where it is stored so
}

impl PendingPart {
    /// Before any tensor; `beside` is the kind of the scales beside it.
    pub(super) fn new(
        rows: usize,
        columns: usize,
        form: StorageFormat,
        beside: Option<ScaleKind>,
    ) -> Self {
        let kind = beside.unwrap_or(ScaleKind::Tensor);
        let (has_scale, codes, own_scales) = (beside.is_some(), None, None);
        let (scale, bias) = (None, None);
        let affine = match form {
            StorageFormat::Affine { group } => Some(PendingAffine::new(rows, columns, group)),
            _ => None,
        };
        Self { rows, columns, form, has_scale, kind, codes, own_scales, scale, bias, affine }
    }

    pub(super) fn take(
        &mut self,
        tensor: Tensor,
        role: Role,
        class: LinearClass,
    ) -> Result<(), ModelError> {
        match (&mut self.affine, role) {
            (_, Role::Bias) => self.bias = Some(dense::vector(&tensor)?),
            (Some(affine), _) => {
                if let Some(unpacked) = affine.take(tensor, role, |matrix| matrix.unpack())? {
                    let (codes, scales) = unpacked;
                    (self.codes, self.own_scales) = (Some(codes), Some(scales));
                }
            }
            (None, Role::Scale | Role::Offset) => {
                let class = if self.form == StorageFormat::Blocks {
                    LinearClass::AutoBitLinear
                } else {
                    class
                };
                self.scale = Some(dense::weight_factors(&tensor, class, self.columns)?);
            }
            (None, Role::Weight) => self.unpack(&tensor)?,
        }
        Ok(())
    }

    /// Takes a weight that needs no other tensor to be unpacked.
    fn unpack(&mut self, tensor: &Tensor) -> Result<(), ModelError> {
        match (self.form, tensor.info.dtype) {
            (StorageFormat::Packed, Dtype::Base3)
            | (StorageFormat::Blocks | StorageFormat::Affine { .. }, _) => {
                let (codes, scales) = blocks::unpack(tensor)?;
                (self.codes, self.own_scales) = (Some(codes), Some(scales));
            }
            (StorageFormat::Packed, _) => {
                self.codes = Some(packed::unpack(tensor, self.rows, self.columns)?);
            }
            (StorageFormat::Exact, _) => self.codes = Some(fake_quantized::pack_codes(tensor)?),
            (StorageFormat::Master, _) => {
                let (codes, scale) = master::quantize(tensor)?;
                (self.codes, self.own_scales) = (Some(codes), Some(Scales::Tensor(scale)));
            }
        }
        Ok(())
    }

    /// Whether the tensor of a role is not there.
    pub(super) fn waits_for(&self, role: Role) -> bool {
        match (&self.affine, role) {
            (_, Role::Bias) => self.bias.is_none(),
            (Some(affine), _) => self.codes.is_none() && affine.waits_for(role),
            (None, Role::Weight) => self.codes.is_none(),
            (None, Role::Scale | Role::Offset) => self.scale.is_none() && self.has_scale,
        }
    }

    pub(super) fn is_complete(&self, has_bias: bool) -> bool {
        let has_scale = self.scale.is_some() || !self.has_scale;
        self.codes.is_some() && has_scale && (self.bias.is_some() || !has_bias)
    }

    /// The matrix by itself; its codes are no longer kept.
    pub(super) fn matrix(&mut self, name: &str) -> Result<TernaryMatrix, ModelError> {
        let (rows, columns, kind) = (self.rows, self.columns, self.kind);
        let spread = match (kind, self.scales()) {
            (ScaleKind::Rows, Scales::Tensor(scale)) => Scales::Rows(vec![scale; rows]),
            (kind, scales) => spread(scales, kind, self, || name.to_owned())?,
        };
        let codes = self.codes.take().unwrap_or_default();
        Ok(TernaryMatrix::new(rows, columns, codes, spread)?)
    }

    /// How few scales say the same, once it is complete.
    pub(super) fn needed_scales(&self) -> ScaleKind {
        match (&self.own_scales, &self.scale) {
            (Some(scales), None | Some(Scales::Tensor(_))) | (_, Some(scales)) => {
                ScaleKind::of(scales)
            }
            (None, None) => ScaleKind::Tensor,
        }
    }

    /// All scales of the matrix: its own times the one beside it.
    pub(super) fn scales(&mut self) -> Scales {
        match (self.own_scales.take(), self.scale.take()) {
            (Some(own), Some(Scales::Tensor(factor))) => multiplied(own, factor),
            (Some(scales), None) | (_, Some(scales)) => scales,
            (None, None) => Scales::Tensor(1.0),
        }
    }
}

fn multiplied(scales: Scales, factor: f32) -> Scales {
    let all = |values: Vec<f32>| values.into_iter().map(|value| value * factor).collect();
    match scales {
        Scales::Tensor(scale) => Scales::Tensor(scale * factor),
        Scales::Rows(values) => Scales::Rows(all(values)),
        Scales::ColumnGroups { columns, values } => {
            Scales::ColumnGroups { columns, values: all(values) }
        }
    }
}

impl PendingLinear {
    pub(super) fn is_complete(&self) -> bool {
        self.is_left_out || self.parts.iter().all(|part| part.is_complete(self.bias.is_some()))
    }

    /// How few scales its matrices need together, once they are complete.
    pub(super) fn needed_scales(&self) -> ScaleKind {
        let widest = |a, b| match (a, b) {
            (ScaleKind::ColumnGroups(a), ScaleKind::ColumnGroups(b)) => {
                ScaleKind::ColumnGroups(common_divisor(a, b))
            }
            (groups @ ScaleKind::ColumnGroups(_), _) | (_, groups @ ScaleKind::ColumnGroups(_)) => {
                groups
            }
            (ScaleKind::Tensor, ScaleKind::Tensor) if self.parts.len() == 1 => ScaleKind::Tensor,
            _ => ScaleKind::Rows,
        };
        self.parts
            .iter()
            .map(PendingPart::needed_scales)
            .reduce(widest)
            .unwrap_or(ScaleKind::Tensor)
    }

    pub(super) fn finish(
        &mut self,
        data: &mut [Option<WeightData>],
        name: impl Fn() -> String,
    ) -> Result<(), ModelError> {
        if self.is_left_out {
            return Ok(());
        }
        let mut bias = vec![];
        let mut matrices = vec![];
        for part in &mut self.parts {
            if let Some(codes) = part.codes.take() {
                let scales = spread(part.scales(), self.scales, part, &name)?;
                matrices.push(TernaryMatrix::new(part.rows, part.columns, codes, scales)?);
            }
            bias.extend(part.bias.take().unwrap_or_default());
        }
        let stacked = TernaryMatrix::stack(matrices)?;
        let matrix = match &self.order {
            Some(order) if HAS_RECURRENT => stacked.in_order(order)?,
            _ => stacked,
        };
        let matrix = match &self.blocks {
            Some((order, columns)) if HAS_RECURRENT => {
                matrix.with_column_blocks(order, *columns)?
            }
            _ => matrix,
        };
        data[self.weight.0 as usize] = Some(WeightData::Ternary(matrix));
        if let Some(id) = self.bias {
            data[id.0 as usize] = Some(WeightData::Vector(bias));
        }
        Ok(())
    }
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Scales of the kind that the plan of the model was made for.
pub(super) fn spread(
    scales: Scales,
    kind: ScaleKind,
    part: &PendingPart,
    name: impl Fn() -> String,
) -> Result<Scales, CheckpointError> {
    let (rows, columns) = (part.rows, part.columns);
    let found = ScaleKind::of(&scales);
    let spread = match kind {
        ScaleKind::Tensor | ScaleKind::Rows if matches!(found, ScaleKind::Tensor) => Some(scales),
        ScaleKind::Rows if found == ScaleKind::Rows => Some(scales),
        ScaleKind::Tensor | ScaleKind::Rows => None,
        ScaleKind::ColumnGroups(width) => by_group(&scales, rows, columns, width)
            .map(|values| Scales::ColumnGroups { columns: width, values }),
    };
    spread.ok_or_else(|| CheckpointError::MixedScales { tensor: name() })
}

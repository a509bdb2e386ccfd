//! Which tensor becomes which weight, checked against the headers.

use std::collections::HashMap;

use setun_checkpoint::{CheckpointError, Dtype, TensorInfo, config::LinearClass};
use setun_ops::{
    WeightId,
    weight::{DenseKind, ScaleKind, WeightKind},
};

use super::{
    infos::{Form, TensorInfos},
    linear::{PendingLinear, PendingPart, Role},
};
use crate::{error::ModelError, families::Family};

/// Which tensor becomes which weight.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    pub(super) by_name: HashMap<String, Target>,
    pub(super) linears: Vec<PendingLinear>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Vector(WeightId),
    Table(WeightId),
    Linear { linear: usize, part: usize, role: Role },
}

/// The types that a table, a gain, a bias or a scale may have.
const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::BF16];

impl Targets {
    pub(crate) fn add_vector(
        &mut self,
        name: &str,
        id: WeightId,
        len: usize,
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        let info = infos.find(name)?;
        info.expect_shape(&[len])?;
        info.expect_dtype(&FLOATS)?;
        self.by_name.insert(name.to_owned(), Target::Vector(id));
        Ok(())
    }

    pub(crate) fn add_table(
        &mut self,
        name: &str,
        id: WeightId,
        rows: usize,
        columns: usize,
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        let info = infos.find(name)?;
        info.expect_shape(&[rows, columns])?;
        info.expect_dtype(&FLOATS)?;
        self.by_name.insert(name.to_owned(), Target::Table(id));
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one call site, all of different kinds")]
    pub(crate) fn add_linear(
        &mut self,
        weight: WeightId,
        bias: Option<WeightId>,
        stack: &[(&str, usize)],
        columns: usize,
        family: &Family,
        class: LinearClass,
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        let linear = self.linears.len();
        let mut parts = vec![];
        for (part, &(name, rows)) in stack.iter().enumerate() {
            let mut target = |suffix: &str, role| {
                let name = format!("{name}{suffix}");
                self.by_name.insert(name.clone(), Target::Linear { linear, part, role });
                name
            };
            let form = infos.form(name, family)?;
            let info = infos.find(&target(family.weight, Role::Weight))?;
            check_weight(info, form, rows, columns)?;
            if form != Form::Master {
                check_scale(infos.find(&target(family.scale, Role::Scale))?)?;
            }
            if bias.is_some() {
                let info = infos.find(&target(family.bias, Role::Bias))?;
                info.expect_shape(&[rows])?;
                info.expect_dtype(&FLOATS)?;
            }
            let (codes, scale, bias) = (None, None, None);
            parts.push(PendingPart { rows, columns, form, codes, scale, bias });
        }
        self.linears.push(PendingLinear { weight, bias, class, parts });
        Ok(())
    }

    /// How each weight will be stored.
    pub(super) fn kinds(&self, weights: usize, infos: &[TensorInfo]) -> Vec<WeightKind> {
        let mut kinds = vec![WeightKind::Floats; weights];
        for info in infos {
            match self.by_name.get(&info.name) {
                Some(Target::Table(id)) => {
                    kinds[id.0 as usize] = WeightKind::Dense(match info.dtype {
                        Dtype::F16 => DenseKind::F16,
                        Dtype::BF16 => DenseKind::Bf16,
                        _ => DenseKind::F32,
                    });
                }
                Some(&Target::Linear { linear, .. }) => {
                    let linear = &self.linears[linear];
                    let is_stack = linear.parts.len() > 1;
                    let scales = if is_stack { ScaleKind::Rows } else { ScaleKind::Tensor };
                    kinds[linear.weight.0 as usize] = WeightKind::Ternary(scales);
                }
                Some(Target::Vector(_)) | None => {}
            }
        }
        kinds
    }

    /// A tensor that a weight still waits for.
    pub(super) fn missing_name(&self, id: WeightId) -> String {
        let is_it = |target: &Target| match *target {
            Target::Vector(found) | Target::Table(found) => found == id,
            Target::Linear { linear, part, role } => {
                let linear = &self.linears[linear];
                let part = &linear.parts[part];
                let waits = match role {
                    Role::Weight => part.codes.is_none(),
                    Role::Scale => part.scale.is_none(),
                    Role::Bias => part.bias.is_none(),
                };
                waits && (linear.weight == id || linear.bias == Some(id))
            }
        };
        let mut names: Vec<_> =
            self.by_name.iter().filter(|(_, target)| is_it(target)).map(|(name, _)| name).collect();
        names.sort();
        names.first().map_or_else(|| format!("weight {}", id.0), |name| (*name).clone())
    }
}

fn check_weight(
    info: &TensorInfo,
    form: Form,
    rows: usize,
    columns: usize,
) -> Result<(), CheckpointError> {
    const FIELDS: usize = 4; // rows that share a byte
    if form != Form::Packed {
        info.expect_shape(&[rows, columns])?;
        return info.expect_dtype(&FLOATS);
    }
    if !rows.is_multiple_of(FIELDS) {
        return Err(CheckpointError::PackedRows { tensor: info.name.clone(), rows });
    }
    info.expect_shape(&[rows / FIELDS, columns])
}

fn check_scale(info: &TensorInfo) -> Result<(), CheckpointError> {
    if !info.shape.is_empty() {
        info.expect_shape(&[1])?;
    }
    info.expect_dtype(&FLOATS)
}

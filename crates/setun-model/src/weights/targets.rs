//! Which tensor becomes which weight, checked against the headers.

use std::collections::HashMap;

use setun_checkpoint::{
    Dtype, TensorInfo, affine, blocks,
    config::{LinearClass, Quantization, QuantizationMode},
    dtype::FLOATS,
};
use setun_ops::{
    WeightId,
    weight::{DenseKind, ScaleKind, WeightKind},
};

use super::{
    Role,
    affine::{BIASES, CODES, PendingAffine, SCALES},
    checks::{check_scale, check_vector, check_weight},
    gates::PendingGates,
    infos::{StorageFormat, TensorInfos},
    linear::{PendingLinear, PendingPart},
    tables::{PendingInt8Table, PendingTable},
    vectors::VectorForm,
};
use crate::{error::ModelError, families::Family};

/// Which tensor becomes which weight.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    pub(super) by_name: HashMap<String, Target>,
    pub(super) linears: Vec<PendingLinear>, // those of a layer together, in one order
    pub(super) int8_tables: Vec<PendingInt8Table>,
    pub(super) tables: Vec<PendingTable>, // those that are ternary
    pub(super) unsettled: bool,           // whether data must show how matrices are scaled
    pub(super) gates: Vec<PendingGates>,  // of delta nets, where they are stored as floats
    pub(super) are_gates_ternary: Option<bool>,
    layer: LayerPlace,
}

/// Where the next linear layer is: the kind of its layer, and its number there. Those of one place are alike in all
/// layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerPlace {
    kind: u8,
    index: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Vector(WeightId, VectorForm),
    Table(WeightId),
    /// Int8 codes of a table, or the scales of its rows.
    Int8Table {
        table: usize,
        is_scales: bool,
    },
    TernaryTable {
        table: usize,
        role: Role,
    },
    Linear {
        linear: usize,
        part: usize,
        role: Role,
    },
    /// `b` or `a` of a delta net, as floats.
    Gate {
        net: usize,
        part: usize,
    },
}

impl Target {
    /// Whether it goes with a matrix as its scales or what else describes its codes.
    pub(super) fn is_scale(&self) -> bool {
        match self {
            Self::Linear { role, .. } | Self::TernaryTable { role, .. } => {
                matches!(role, Role::Scale | Role::Offset)
            }
            Self::Int8Table { is_scales, .. } => *is_scales,
            Self::Vector(..) | Self::Table(_) | Self::Gate { .. } => false,
        }
    }

    /// A number for the ternary matrix that it belongs to.
    pub(super) fn matrix(&self) -> Option<(bool, usize, usize)> {
        match *self {
            Self::Linear { linear, part, .. } => Some((false, linear, part)),
            Self::TernaryTable { table, .. } => Some((true, table, 0)),
            Self::Vector(..) | Self::Table(_) | Self::Int8Table { .. } | Self::Gate { .. } => None,
        }
    }
}

/// The types that a table may have.
const TABLES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I8];

impl Targets {
    pub(crate) fn add_vector(
        &mut self,
        name: &str,
        id: WeightId,
        (len, form): (usize, VectorForm),
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        let info = infos.find(name)?;
        match form {
            VectorForm::Taps(taps) => {
                info.expect_shape(&[len / taps.max(1), taps])?;
                info.expect_dtype(&FLOATS)?;
            }
            _ => check_vector(info, len)?,
        }
        self.by_name.insert(name.to_owned(), Target::Vector(id, form));
        Ok(())
    }

    /// Two matrices of floats, which may be ternary.
    pub(super) fn add_gates(
        &mut self,
        weight: WeightId,
        dense: [WeightId; 2],
        names: &[String; 2],
        (rows, columns): (usize, usize),
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        for (part, name) in names.iter().enumerate() {
            let info = infos.find(name)?;
            info.expect_shape(&[rows, columns])?;
            info.expect_dtype(&FLOATS)?;
            let target = Target::Gate { net: self.gates.len(), part };
            self.by_name.insert(name.clone(), target);
        }
        let (linear, place) = (self.linears.len(), self.layer);
        self.layer.index += 1;
        let part = || PendingPart::new(rows, columns, StorageFormat::Blocks, None);
        self.linears.push(PendingLinear {
            weight,
            bias: None,
            class: LinearClass::AutoBitLinear,
            scales: ScaleKind::Rows,
            parts: vec![part(), part()],
            place,
            order: None,
            is_left_out: false,
        });
        self.gates.push(PendingGates { linear, dense, tensors: [None, None] });
        self.unsettled = true;
        Ok(())
    }

    /// Brings the outputs of the linear layer that was added last into an order.
    pub(super) fn set_order(&mut self, order: Vec<usize>) {
        if let Some(linear) = self.linears.last_mut() {
            linear.order = Some(order);
        }
    }

    /// The linear layers from now on are those of a layer of this kind.
    pub(super) fn begin_layer(&mut self, kind: u8) {
        self.layer = LayerPlace { kind, index: 0 };
    }

    pub(crate) fn add_table(
        &mut self,
        name: &str,
        id: WeightId,
        (rows, columns): (usize, usize),
        mode: QuantizationMode,
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        let info = infos.find(name)?;
        if let (QuantizationMode::Affine { group }, Dtype::U32) = (mode, info.dtype) {
            let table = self.tables.len();
            let target = |role| Target::TernaryTable { table, role };
            let matrix = PendingAffine::new(rows, columns, group);
            let prefix = name.strip_suffix(CODES).unwrap_or(name);
            let floats = self.add_affine(prefix, &matrix, target, infos)?;
            let form = StorageFormat::Affine { group };
            let mut matrix = PendingPart::new(rows, columns, form, None);
            matrix.kind = ScaleKind::ColumnGroups(group);
            self.tables.push(PendingTable { id, name: name.to_owned(), matrix, floats });
            return Ok(());
        }
        info.expect_shape(&[rows, columns])?;
        if info.dtype == Dtype::Base3 {
            return self.add_trits(name, id, (rows, columns), infos);
        }
        if info.dtype == Dtype::I8 {
            return self.add_int8_table(name, id, rows, infos);
        }
        if blocks::table_scales(info.dtype).is_none() && !blocks::TABLES.contains(&info.dtype) {
            info.expect_dtype(&TABLES)?;
        }
        self.by_name.insert(name.to_owned(), Target::Table(id));
        Ok(())
    }

    /// A ternary table as `.setun` has it, with scales beside it as a linear layer's.
    fn add_trits(
        &mut self,
        name: &str,
        id: WeightId,
        (rows, columns): (usize, usize),
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        let scales = format!("{name}_scale");
        let beside = check_scale(infos.find(&scales)?, rows, columns)?;
        let table = self.tables.len();
        let target = |role| Target::TernaryTable { table, role };
        self.by_name.insert(name.to_owned(), target(Role::Weight));
        self.by_name.insert(scales, target(Role::Scale));
        let matrix = PendingPart::new(rows, columns, StorageFormat::Packed, Some(beside));
        self.tables.push(PendingTable { id, name: name.to_owned(), matrix, floats: Dtype::F32 });
        Ok(())
    }

    /// A table of codes `I8 [rows, columns]` with scales `F32 [rows]` beside it.
    fn add_int8_table(
        &mut self,
        name: &str,
        id: WeightId,
        rows: usize,
        infos: &TensorInfos<'_>,
    ) -> Result<(), ModelError> {
        let scales = format!("{name}_scale");
        let info = infos.find(&scales)?;
        info.expect_shape(&[rows])?;
        info.expect_dtype(&[Dtype::F32])?;
        let table = self.int8_tables.len();
        self.by_name.insert(name.to_owned(), Target::Int8Table { table, is_scales: false });
        self.by_name.insert(scales, Target::Int8Table { table, is_scales: true });
        self.int8_tables.push(PendingInt8Table { weight: id, codes: None, scales: None });
        Ok(())
    }

    /// The three tensors of a matrix of MLX; the type of its scales.
    fn add_affine(
        &mut self,
        name: &str,
        matrix: &PendingAffine,
        target: impl Fn(Role) -> Target,
        infos: &TensorInfos<'_>,
    ) -> Result<Dtype, ModelError> {
        let roles = [(CODES, Role::Weight), (SCALES, Role::Scale), (BIASES, Role::Offset)];
        let names = roles.map(|(suffix, _)| format!("{name}{suffix}"));
        let [codes, scales, biases] = names.each_ref().map(|name| infos.find(name));
        let shape = (matrix.rows, matrix.columns);
        let scales = scales?;
        affine::check(codes?, scales, biases?, shape, matrix.group)?;
        let targets = names.into_iter().zip(roles.map(|(_, role)| target(role)));
        self.by_name.extend(targets);
        Ok(scales.dtype)
    }

    #[expect(clippy::too_many_arguments, reason = "one call site, all of different kinds")]
    pub(crate) fn add_linear(
        &mut self,
        weight: WeightId,
        bias: Option<WeightId>,
        stack: &[(&str, usize)],
        columns: usize,
        family: &Family,
        quantization: &Quantization,
        infos: &TensorInfos<'_>,
    ) -> Result<ScaleKind, ModelError> {
        let linear = self.linears.len();
        let mut parts = vec![];
        let mut in_data = false;
        let mut kind = if stack.len() > 1 { ScaleKind::Rows } else { ScaleKind::Tensor };
        for (part, &(name, rows)) in stack.iter().enumerate() {
            let mut target = |suffix: &str, role| {
                let name = format!("{name}{suffix}");
                self.by_name.insert(name.clone(), Target::Linear { linear, part, role });
                name
            };
            let form = infos.form(name, family, quantization.mode)?;
            let info = infos.find(&target(family.weight, Role::Weight))?;
            if !matches!(form, StorageFormat::Affine { .. }) {
                check_weight(info, form, rows, columns)?;
            }
            in_data |= info.scale_is_in_data(quantization.mode);
            let scale = infos.get(&format!("{name}{}", family.scale));
            let mut beside = None;
            let has_scale =
                form.has_scale_beside() || form == StorageFormat::Blocks && scale.is_some();
            if has_scale {
                let info = infos.find(&target(family.scale, Role::Scale))?;
                let found = check_scale(info, rows, columns)?;
                kind = wider(kind, found);
                beside = Some(found);
            }
            if bias.is_some() {
                let info = infos.find(&target(family.bias, Role::Bias))?;
                check_vector(info, rows)?;
            }
            if let StorageFormat::Affine { group } = form {
                let matrix = PendingAffine::new(rows, columns, group);
                let target = |role| Target::Linear { linear, part, role };
                self.add_affine(name, &matrix, target, infos)?;
            }
            parts.push(PendingPart::new(rows, columns, form, beside));
        }
        let class = quantization.linear_class;
        let (place, order) = (self.layer, None);
        self.layer.index += 1;
        self.linears.push(PendingLinear {
            weight,
            bias,
            class,
            scales: kind,
            parts,
            place,
            order,
            is_left_out: false,
        });
        self.unsettled |= in_data;
        Ok(kind)
    }

    /// How each weight will be stored.
    pub(super) fn kinds(&self, weights: usize, infos: &[TensorInfo]) -> Vec<WeightKind> {
        let mut kinds = vec![WeightKind::Floats; weights];
        for info in infos {
            match self.by_name.get(&info.name) {
                Some(Target::Table(id)) => {
                    kinds[id.0 as usize] = WeightKind::Dense(match info.dtype {
                        Dtype::F16 => DenseKind::F16,
                        Dtype::Bf16 => DenseKind::Bf16,
                        other => {
                            blocks::table_scales(other).map_or(DenseKind::F32, DenseKind::Ternary)
                        }
                    });
                }
                Some(&Target::Int8Table { table, .. }) => {
                    let id = self.int8_tables[table].weight;
                    kinds[id.0 as usize] = WeightKind::Dense(DenseKind::Int8Rows);
                }
                Some(&Target::Linear { linear, .. }) => {
                    let linear = &self.linears[linear];
                    kinds[linear.weight.0 as usize] = WeightKind::Ternary(linear.scales);
                }
                Some(&Target::TernaryTable { table, .. }) => {
                    let PendingTable { id, matrix, .. } = &self.tables[table];
                    kinds[id.0 as usize] = WeightKind::Dense(DenseKind::Ternary(matrix.kind));
                }
                Some(Target::Vector(..) | Target::Gate { .. }) | None => {}
            }
        }
        kinds
    }

    /// Tensors that the model has no use for.
    pub(super) fn unused(&self, infos: &[TensorInfo], family: &Family) -> Vec<String> {
        let names = infos.iter().map(|info| info.name.as_str());
        names
            .filter(|name| !self.by_name.contains_key(*name))
            .filter(|name| !family.ignored.iter().any(|ignored| name.ends_with(ignored)))
            .map(str::to_owned)
            .collect()
    }

    /// A tensor that a weight still waits for.
    pub(super) fn missing_name(&self, id: WeightId) -> String {
        let is_it = |target: &Target| match *target {
            Target::Vector(found, _) | Target::Table(found) => found == id,
            Target::Int8Table { table, is_scales } => {
                let table = &self.int8_tables[table];
                let waits = if is_scales { table.scales.is_none() } else { table.codes.is_none() };
                waits && table.weight == id
            }
            Target::Linear { linear, part, role } => {
                let linear = &self.linears[linear];
                let waits = linear.parts[part].waits_for(role);
                waits && (linear.weight == id || linear.bias == Some(id))
            }
            Target::Gate { net, part } => {
                let gates = &self.gates[net];
                let linear = &self.linears[gates.linear];
                let waits = linear.weight == id && linear.parts[part].waits_for(Role::Weight);
                gates.dense[part] == id || waits
            }
            Target::TernaryTable { table, role } => {
                let table = &self.tables[table];
                table.id == id && table.matrix.waits_for(role)
            }
        };
        let names = self.by_name.iter().filter(|(_, target)| is_it(target)).map(|(name, _)| name);
        names.min().map_or_else(|| format!("weight {}", id.0), Clone::clone)
    }
}

/// The kind that can hold both.
fn wider(a: ScaleKind, b: ScaleKind) -> ScaleKind {
    match (a, b) {
        (groups @ ScaleKind::ColumnGroups(_), _) | (_, groups @ ScaleKind::ColumnGroups(_)) => {
            groups
        }
        (ScaleKind::Rows, _) | (_, ScaleKind::Rows) => ScaleKind::Rows,
        (ScaleKind::Tensor, ScaleKind::Tensor) => ScaleKind::Tensor,
    }
}

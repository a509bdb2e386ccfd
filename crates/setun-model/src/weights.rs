//! From named tensors to numbered weights, each checked once.

use std::collections::HashMap;

use setun_checkpoint::{
    CheckpointError, Dtype, ModelConfig, Tensor, TensorInfo, config::LinearClass, dense, exact,
    master, packed, tensor::missing,
};
use setun_ops::{
    DenseMatrix, WeightData, WeightId,
    dense::DenseValues,
    rope_append::RopeTable,
    ternary::{Scales, TernaryMatrix},
};

use crate::{
    error::ModelError,
    families::{Family, family},
    layout::{Layout, LayoutBuilder},
    rope::inverse_frequencies,
};

/// All weights of a model in host memory, ready to be moved into a backend.
#[derive(Clone, Debug)]
pub struct Weights {
    /// Which weight is which.
    pub layout: Layout,
    /// The values; [`WeightId`]`(i)` is element `i`.
    pub data: Vec<WeightData>,
    /// Tensors of the checkpoint that the model has no use for.
    pub unused: Vec<String>,
}

impl Weights {
    /// Bytes of all weights.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.data.iter().map(WeightData::bytes).sum()
    }

    /// The table of the head, where its elements are floats.
    #[must_use]
    pub fn float_head(&self) -> Option<&DenseMatrix> {
        match &self.data[self.layout.head.0 as usize] {
            WeightData::Dense(table) => match table.values() {
                DenseValues::F32(_) | DenseValues::F16(_) | DenseValues::Bf16(_) => Some(table),
                DenseValues::Int8Rows { .. } | DenseValues::Ternary(_) => None,
            },
            _ => None,
        }
    }

    /// Replaces the head by its int8-row form; a tied embedding becomes the same table, so
    /// that the wide one is dropped.
    ///
    /// # Errors
    ///
    /// If a value is not a finite number.
    pub fn head_to_int8(&mut self) -> Result<(), ModelError> {
        if let WeightData::Dense(table) = &mut self.data[self.layout.head.0 as usize] {
            *table = table.to_int8_rows()?;
        }
        Ok(())
    }
}

/// Takes a checkpoint's tensors in any order. See [`WeightsBuilder::new`].
#[derive(Debug)]
pub struct WeightsBuilder {
    layout: Layout,
    targets: Targets,
    data: Vec<Option<WeightData>>,
    unused: Vec<String>,
}

impl WeightsBuilder {
    /// Checks names and shapes against the headers, before any data is read.
    ///
    /// `positions` is the number of positions that the model will serve, at most the
    /// configuration's context.
    ///
    /// # Errors
    ///
    /// If the architecture is unknown, or a tensor is missing or of another shape or type.
    pub fn new(
        config: &ModelConfig,
        infos: &[TensorInfo],
        positions: usize,
    ) -> Result<Self, ModelError> {
        let family = family(config)?;
        let (layout, targets) =
            LayoutBuilder::new(config, family, &TensorInfos::new(infos)).build(positions)?;
        let mut data: Vec<Option<WeightData>> = vec![None; layout.specs.len()];
        let frequencies = inverse_frequencies(&config.rope, config.head_dim);
        data[layout.rope.0 as usize] =
            Some(WeightData::Rope(RopeTable::new(positions, &frequencies)?));
        let unused = infos
            .iter()
            .map(|info| info.name.as_str())
            .filter(|name| !targets.by_name.contains_key(*name))
            .filter(|name| !family.ignored.iter().any(|ignored| name.ends_with(ignored)))
            .map(str::to_owned)
            .collect();
        Ok(Self { layout, targets, data, unused })
    }

    /// Which weight is which.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Tensors of the checkpoint that the model has no use for.
    #[must_use]
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// Takes one tensor. Those that the model does not need are dropped.
    ///
    /// # Errors
    ///
    /// If a weight is not ternary, or a scale or another value is not a finite number.
    pub fn add(&mut self, tensor: Tensor) -> Result<(), ModelError> {
        match self.targets.by_name.get(&tensor.info.name) {
            None => {}
            Some(Target::Vector(id)) => {
                let values = dense::vector(&tensor)?;
                self.data[id.0 as usize] = Some(WeightData::Vector(values));
            }
            Some(Target::Table(id)) => {
                let id = *id;
                self.data[id.0 as usize] = Some(WeightData::Dense(dense::table(tensor)?));
            }
            Some(&Target::Linear { linear, part, role }) => {
                let linear = &mut self.targets.linears[linear];
                linear.parts[part].take(&tensor, role, linear.class)?;
                if linear.parts.iter().all(|part| part.is_complete(linear.bias.is_some())) {
                    linear.finish(&mut self.data)?;
                }
            }
        }
        Ok(())
    }

    /// The weights, once all tensors were taken.
    ///
    /// # Errors
    ///
    /// If one is missing.
    pub fn finish(self) -> Result<Weights, ModelError> {
        if let Some(index) = self.data.iter().position(Option::is_none) {
            let id = WeightId(u32::try_from(index).unwrap_or(u32::MAX));
            return Err(missing(&[], &self.targets.missing_name(id)).into());
        }
        let data = self.data.into_iter().flatten().collect();
        Ok(Weights { layout: self.layout, data, unused: self.unused })
    }
}

/// Which tensor becomes which weight.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    by_name: HashMap<String, Target>,
    linears: Vec<PendingLinear>,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Vector(WeightId),
    Table(WeightId),
    Linear { linear: usize, part: usize, role: Role },
}

/// The types that a table, a gain, a bias or a scale may have.
const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::BF16];

/// How the weights of a linear layer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Four codes a byte, with a scale.
    Packed,
    /// −1, 0 and +1 as floats, with a scale.
    Exact,
    /// Floats to be quantized at load.
    Master,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Weight,
    Scale,
    Bias,
}

/// Matrices on their way to become one stacked matrix.
#[derive(Debug)]
struct PendingLinear {
    weight: WeightId,
    bias: Option<WeightId>,
    class: LinearClass,
    parts: Vec<PendingPart>,
}

#[derive(Debug)]
struct PendingPart {
    rows: usize,
    columns: usize,
    form: Form,
    codes: Option<Vec<u8>>,
    scale: Option<f32>,
    bias: Option<Vec<f32>>,
}

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

    /// A tensor that a weight still waits for.
    fn missing_name(&self, id: WeightId) -> String {
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
        names.first().map_or_else(String::new, |name| (*name).clone())
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

impl PendingPart {
    fn take(&mut self, tensor: &Tensor, role: Role, class: LinearClass) -> Result<(), ModelError> {
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

    fn is_complete(&self, has_bias: bool) -> bool {
        self.codes.is_some() && self.scale.is_some() && (self.bias.is_some() || !has_bias)
    }
}

impl PendingLinear {
    fn finish(&mut self, data: &mut [Option<WeightData>]) -> Result<(), ModelError> {
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

/// Headers of a checkpoint's tensors, by name.
pub(crate) struct TensorInfos<'a> {
    all: &'a [TensorInfo],
    by_name: HashMap<&'a str, &'a TensorInfo>,
}

impl<'a> TensorInfos<'a> {
    fn new(all: &'a [TensorInfo]) -> Self {
        Self { all, by_name: all.iter().map(|info| (info.name.as_str(), info)).collect() }
    }

    /// How a linear layer is stored: codes are packed in bytes; floats are codes where a scale
    /// lies beside them, and master weights where none does.
    pub(crate) fn form(&self, linear: &str, family: &Family) -> Result<Form, ModelError> {
        let info = self.find(&format!("{linear}{}", family.weight))?;
        let has_scale = self.by_name.contains_key(format!("{linear}{}", family.scale).as_str());
        Ok(match (info.dtype, has_scale) {
            (Dtype::U8, _) => Form::Packed,
            (_, true) => Form::Exact,
            (_, false) => Form::Master,
        })
    }

    pub(crate) fn find(&self, name: &str) -> Result<&'a TensorInfo, ModelError> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| missing(self.all, name).into())
    }
}

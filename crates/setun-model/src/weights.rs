//! From named tensors to numbered weights, each checked once.

mod affine;
mod checks;
mod contents;
mod gates;
mod infos;
mod layout_builder;
mod linear;
mod orders;
mod place;
mod settle;
mod tables;
mod targets;
mod vectors;

use setun_checkpoint::{ModelConfig, Tensor, TensorInfo, dense, tensor::missing};
use setun_ops::{
    DenseMatrix, HAS_RECURRENT, WeightData, WeightId, WeightSpec,
    dense::DenseValues,
    numeric::to_u32,
    weight::{ScaleKind, WeightKind},
};

pub use contents::Contents;
use infos::TensorInfos;
use layout_builder::LayoutBuilder;
use targets::{Target, Targets};
use vectors::VectorForm;

use crate::{error::ModelError, families::family, layout::Layout, rope};

/// What a tensor is to its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Weight,
    Scale,
    /// MLX's `biases`, which are added to codes.
    Offset,
    Bias,
}

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

    /// How each weight is stored; [`WeightId`]`(i)` is element `i`.
    #[must_use]
    pub fn kinds(&self) -> Vec<WeightKind> {
        self.data.iter().map(WeightData::kind).collect()
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
}

/// Takes a checkpoint's tensors in any order. See [`WeightsBuilder::new`].
#[derive(Debug)]
pub struct WeightsBuilder {
    layout: Layout,
    kinds: Vec<WeightKind>,
    targets: Targets,
    data: Vec<Option<WeightData>>,
    taken: Vec<bool>, // complete, and no longer here
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
        let family = family(config, infos)?;
        let (layout, targets, signs) =
            LayoutBuilder::new(config, family, &TensorInfos::new(infos)).build(positions)?;
        let mut data: Vec<Option<WeightData>> = vec![None; layout.specs.len()];
        let table = rope::table(&config.rope, positions)?;
        data[layout.rope.0 as usize] = Some(WeightData::Rope(table));
        for (width, id) in &signs {
            let signs = config.hadamard.as_ref().and_then(|rotation| rotation.signs.get(width));
            data[id.0 as usize] = signs.cloned().map(WeightData::Vector);
        }
        let unused = targets.unused(infos, family);
        let kinds = targets.kinds(layout.specs.len(), infos);
        let taken = vec![false; data.len()];
        Ok(Self { layout, kinds, targets, data, taken, unused })
    }

    /// How each weight will be stored; [`WeightId`]`(i)` is element `i`.
    #[must_use]
    pub fn kinds(&self) -> &[WeightKind] {
        &self.kinds
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
            Some(Target::Gate { .. }) if !HAS_RECURRENT => {}
            Some(&Target::Vector(id, form)) => {
                let values = match form {
                    VectorForm::Taps(_) => dense::elements(&tensor)?,
                    _ => dense::vector(&tensor)?,
                };
                self.data[id.0 as usize] = Some(WeightData::Vector(form.read(values)));
            }
            Some(Target::Table(id)) => {
                let id = *id;
                self.data[id.0 as usize] = Some(WeightData::Dense(dense::table(tensor)?));
            }
            Some(&Target::Int8Table { table, is_scales }) => {
                let pending = &mut self.targets.int8_tables[table];
                if let Some(table) = pending.take(tensor, is_scales)? {
                    self.data[pending.weight.0 as usize] = Some(WeightData::Dense(table));
                }
            }
            Some(&Target::TernaryTable { table, role }) => {
                let table = &mut self.targets.tables[table];
                if let Some(matrix) = table.take(tensor, role)? {
                    let (rows, columns) = (matrix.rows(), matrix.columns());
                    let table_data = DenseValues::Ternary(matrix);
                    let whole = DenseMatrix::new(rows, columns, table_data)?;
                    self.data[table.id.0 as usize] = Some(WeightData::Dense(whole));
                }
            }
            Some(&Target::Linear { linear: index, part, role }) => {
                let linear = &mut self.targets.linears[index];
                linear.parts[part].take(tensor, role, linear.class)?;
                if self.targets.unsettled {
                    self.settle_if_known()?;
                } else if self.targets.linears[index].is_complete() {
                    self.finish_linear(index)?;
                }
            }
            Some(&Target::Gate { net, part }) => self.add_gate(net, part, tensor)?,
        }
        Ok(())
    }

    /// Whether it is known how each weight will be stored. Before that the tensors of which
    /// [`scale_is_in_data`](TensorInfo::scale_is_in_data), those of the first layer of each kind, are to
    /// be added.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.targets.unsettled
    }

    fn settle_if_known(&mut self) -> Result<(), ModelError> {
        if self.targets.settle() { self.settle() } else { Ok(()) }
    }

    /// The first layer has shown how matrices are scaled: finishes those that waited for it.
    fn settle(&mut self) -> Result<(), ModelError> {
        for linear in &self.targets.linears {
            let grouped = matches!(linear.scales, ScaleKind::ColumnGroups(_));
            let weight = linear.weight.0 as usize;
            if let WeightSpec::Ternary { grouped: found, .. } = &mut self.layout.specs[weight] {
                *found = grouped;
            }
            if !linear.is_left_out {
                self.kinds[weight] = WeightKind::Ternary(linear.scales);
            }
        }
        for index in 0..self.targets.linears.len() {
            if self.targets.linears[index].is_complete() {
                self.finish_linear(index)?;
            }
        }
        Ok(())
    }

    fn finish_linear(&mut self, index: usize) -> Result<(), ModelError> {
        let Targets { linears, by_name, .. } = &mut self.targets;
        let name = || {
            let is_it = |target: &Target| match *target {
                Target::Linear { linear, role, .. } => linear == index && role == Role::Weight,
                _ => false,
            };
            let found = by_name.iter().find(|(_, target)| is_it(target));
            found.map(|(name, _)| name.clone()).unwrap_or_default()
        };
        linears[index].finish(&mut self.data, name)
    }

    /// The weights that are complete and were not taken before, in order.
    pub fn take_ready(&mut self) -> Vec<(WeightId, WeightData)> {
        let places = (0..).map(WeightId).zip(self.data.iter_mut().zip(&mut self.taken));
        let ready = places.filter_map(|(id, (data, taken))| {
            let weight = data.take()?;
            *taken = true;
            Some((id, weight))
        });
        ready.collect()
    }

    /// The weights, once all tensors were added.
    ///
    /// # Errors
    ///
    /// If one is missing, or has left by [`take_ready`](Self::take_ready).
    pub fn finish(self) -> Result<Weights, ModelError> {
        self.check_complete(|index| self.data[index].is_some())?;
        let data = self.data.into_iter().flatten().collect();
        Ok(Weights { layout: self.layout, data, unused: self.unused })
    }

    /// The layout, and the tensors that the model has no use for, once all weights have left by
    /// [`take_ready`](Self::take_ready).
    ///
    /// # Errors
    ///
    /// If one was never complete, or has not left.
    pub fn finish_taken(self) -> Result<(Layout, Vec<String>), ModelError> {
        self.check_complete(|index| self.taken[index])?;
        Ok((self.layout, self.unused))
    }

    fn check_complete(&self, is_there: impl Fn(usize) -> bool) -> Result<(), ModelError> {
        match (0..self.data.len()).find(|&index| !is_there(index)) {
            None => Ok(()),
            Some(index) => {
                let id = WeightId(to_u32(index));
                Err(missing(&[], &self.targets.missing_name(id)).into())
            }
        }
    }
}

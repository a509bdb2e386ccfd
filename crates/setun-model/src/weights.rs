//! From named tensors to numbered weights, each checked once.

mod infos;
mod linear;
mod targets;

use setun_checkpoint::{ModelConfig, Tensor, TensorInfo, dense, tensor::missing};
use setun_ops::{DenseMatrix, WeightData, WeightId, dense::DenseValues, weight::WeightKind};

pub(crate) use infos::{Form, TensorInfos};
use targets::Target;
pub(crate) use targets::Targets;

use crate::{
    error::ModelError,
    families::family,
    layout::{Layout, LayoutBuilder},
    rope,
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
        let (layout, targets) =
            LayoutBuilder::new(config, family, &TensorInfos::new(infos)).build(positions)?;
        let mut data: Vec<Option<WeightData>> = vec![None; layout.specs.len()];
        let table = rope::table(&config.rope, config.head_dim, positions)?;
        data[layout.rope.0 as usize] = Some(WeightData::Rope(table));
        let unused = infos
            .iter()
            .map(|info| info.name.as_str())
            .filter(|name| !targets.by_name.contains_key(*name))
            .filter(|name| !family.ignored.iter().any(|ignored| name.ends_with(ignored)))
            .map(str::to_owned)
            .collect();
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
                let id = WeightId(u32::try_from(index).unwrap_or(u32::MAX));
                Err(missing(&[], &self.targets.missing_name(id)).into())
            }
        }
    }
}

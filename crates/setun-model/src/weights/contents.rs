//! A model's tensors, checked and unpacked one by one, to be written in another format.

use std::collections::HashMap;

use setun_checkpoint::{
    CheckpointError, Dtype, Files, ModelConfig, Tensor, TensorData, TensorInfo, blocks,
    config::{LinearClass, Quantization, QuantizationMode},
    dense, dtype, files,
    outline::{Content, Outline, OutlineKind, OutlineTensor},
    tensor,
    write::config_json,
};
use setun_ops::{
    DenseMatrix,
    aligned::{Aligned, NoMemory},
    ternary::Scales,
};

use super::{
    Role,
    infos::{StorageFormat, TensorInfos},
    layout_builder::LayoutBuilder,
    linear::PendingPart,
    tables::PendingTable,
    targets::{Target, Targets},
};
use crate::{error::ModelError, families::family};

/// Takes a checkpoint's tensors in any order, and gives back what they hold.
#[derive(Debug)]
pub struct Contents {
    config: ModelConfig,
    is_changed: bool, // against that of the checkpoint
    targets: Targets,
    places: HashMap<String, usize>, // of all tensors of the checkpoint that are used
    tensors: Vec<OutlineTensor>,
    unused: Vec<String>,
}

impl Contents {
    /// Checks names and shapes against the headers, before any data is read.
    ///
    /// # Errors
    ///
    /// If the architecture is unknown, or a tensor is missing or of another shape or type.
    pub fn new(config: &ModelConfig, infos: &[TensorInfo]) -> Result<Self, ModelError> {
        let family = family(config, infos)?;
        let by_name = TensorInfos::new(infos);
        let (_, mut targets, _) = LayoutBuilder::new(config, family, &by_name).build(1)?;
        let quantization = written(config, &targets);
        let is_changed = quantization != config.quantization;
        let config = ModelConfig { quantization, ..config.clone() };
        targets.leave_gates();
        for linear in &mut targets.linears {
            linear.bias = None; // which is handed out by itself
        }
        let tensors = targets.in_order(&by_name);
        let places = targets.places(&tensors);
        let unused = targets.unused(infos, family);
        Ok(Self { config, is_changed, targets, places, tensors, unused })
    }

    /// Whether [`outline`](Self::outline) is known: before that the first layer is to be added
    /// where only data shows how matrices are scaled.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.targets.unsettled
    }

    /// Tensors that the model has no use for.
    #[must_use]
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// Places of the tensors in an outline, by name.
    #[must_use]
    pub fn order(&self) -> HashMap<String, usize> {
        (0..).zip(&self.tensors).map(|(place, tensor)| (tensor.name.clone(), place)).collect()
    }

    /// Where a tensor of the checkpoint belongs in the order of use, which begins with all scales,
    /// and with the first layer where it is to show how matrices are scaled.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        let place = self.places.get(name).copied()?;
        let group = match self.targets.by_name.get(name) {
            Some(Target::Linear { role: Role::Scale, .. }) => 0,
            _ if self.is_settled() || self.is_first_layer(name) => 1,
            _ => 2,
        };
        Some(place + group * self.places.len())
    }

    /// The one scale of a matrix, as far as it has been read: that beside it.
    #[must_use]
    pub fn scale(&self, name: &str) -> Option<f32> {
        let part = self.targets.part(name)?;
        match (part.form, &part.scale) {
            (StorageFormat::Packed | StorageFormat::Exact, Some(Scales::Tensor(scale))) => {
                Some(*scale)
            }
            _ => None,
        }
    }

    /// All but the values, once [settled](Self::is_settled); `files` are those of the checkpoint.
    /// The configuration is that of stored codes whose scales multiply, except where a bias is
    /// added after them, which only `bitlinear` says.
    ///
    /// # Errors
    ///
    /// If the configuration cannot be written.
    pub fn outline(&self, files: &Files) -> Result<Outline, ModelError> {
        let mut files = files.clone();
        if self.is_changed {
            files.insert(files::CONFIG, config_json(&self.config)?.into_bytes());
        }
        let mut tensors = self.tensors.clone();
        for tensor in &mut tensors {
            if let (OutlineKind::Ternary(kind), Some(part)) =
                (&mut tensor.kind, self.targets.part(&tensor.name))
            {
                *kind = part.kind;
            }
        }
        Ok(Outline { config: self.config.clone(), files, tensors })
    }

    /// Takes one tensor; gives back what has become whole by it, each with its name.
    ///
    /// # Errors
    ///
    /// If a weight is not ternary, or a scale or another value is not a finite number.
    pub fn add(&mut self, tensor: Tensor) -> Result<Vec<(String, Content)>, ModelError> {
        let name = tensor.info.name.clone();
        match self.targets.by_name.get(&name).copied() {
            None => Ok(vec![]),
            Some(Target::Table(_)) if !dtype::FLOATS.contains(&tensor.info.dtype) => {
                let content = if tensor.info.dtype.is_ternary() {
                    Content::Ternary(dense::ternary(&tensor)?)
                } else {
                    Content::Floats(widened(&name, &dense::table(tensor)?)?)
                };
                Ok(vec![(name, content)])
            }
            Some(Target::Int8Table { table, is_scales }) => {
                let pending = &mut self.targets.int8_tables[table];
                let Some(whole) = pending.take(tensor, is_scales)? else { return Ok(vec![]) };
                let name = name.strip_suffix(SCALES).unwrap_or(&name).to_owned();
                Ok(vec![(name.clone(), Content::Floats(widened(&name, &whole)?))])
            }
            Some(
                Target::Vector(..)
                | Target::Table(_)
                | Target::Gate { .. }
                | Target::Linear { role: Role::Bias, .. },
            ) => {
                let tensor = dense::widened(tensor)?;
                tensor::check_finite(&tensor)?;
                Ok(vec![(name, Content::Floats(tensor))])
            }
            Some(Target::TernaryTable { table, role }) => {
                let table = &mut self.targets.tables[table];
                let whole = table.take(tensor, role)?;
                let named = |matrix| (table.name.clone(), Content::Ternary(matrix));
                Ok(whole.map(named).into_iter().collect())
            }
            Some(Target::Linear { linear, part, role }) => {
                let was_settled = !self.targets.unsettled;
                let pending = &mut self.targets.linears[linear];
                pending.parts[part].take(tensor, role, pending.class)?;
                self.settle();
                match (was_settled, !self.targets.unsettled) {
                    (_, false) => Ok(vec![]),
                    (true, true) => self.finish(|at| at == (linear, part)),
                    (false, true) => self.finish(|_| true),
                }
            }
        }
    }

    fn is_first_layer(&self, name: &str) -> bool {
        match self.targets.by_name.get(name) {
            Some(&Target::Linear { linear, .. }) => self.targets.representative(linear) == linear,
            _ => false,
        }
    }

    /// Lets each matrix have as many scales as that of its use in the first layer.
    fn settle(&mut self) {
        if !self.targets.settle() {
            return;
        }
        let kinds = |linear: &super::linear::PendingLinear| -> Vec<_> {
            linear.parts.iter().map(PendingPart::needed_scales).collect()
        };
        let firsts = (0..self.targets.linears.len()).map(|at| self.targets.representative(at));
        let kinds: Vec<_> = firsts.map(|first| kinds(&self.targets.linears[first])).collect();
        for (linear, kinds) in self.targets.linears.iter_mut().zip(kinds) {
            for (part, kind) in linear.parts.iter_mut().zip(kinds) {
                part.kind = kind;
            }
        }
    }

    /// The matrices that are complete, among those requested.
    fn finish(
        &mut self,
        is_asked_for: impl Fn((usize, usize)) -> bool,
    ) -> Result<Vec<(String, Content)>, ModelError> {
        let mut whole = vec![];
        for (name, target) in &self.targets.by_name {
            let Target::Linear { linear, part, role: Role::Weight } = *target else { continue };
            let pending = &mut self.targets.linears[linear].parts[part];
            if is_asked_for((linear, part)) && pending.is_complete(false) {
                whole.push((name.clone(), Content::Ternary(pending.matrix(name)?)));
            }
        }
        whole.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(whole)
    }
}

/// After the name of a table of int8 codes.
const SCALES: &str = "_scale";

/// A table as `F32`, which holds the products of codes and scales as no shorter type does.
fn widened(name: &str, table: &DenseMatrix) -> Result<Tensor, CheckpointError> {
    let (rows, columns) = (table.rows(), table.columns());
    let no_memory = |NoMemory { bytes }| CheckpointError::OutOfMemory {
        tensor: name.to_owned(),
        bytes: bytes as u64,
    };
    let mut values = Aligned::filled(0.0, rows * columns).map_err(no_memory)?;
    for (row, out) in values.chunks_exact_mut(columns).enumerate() {
        table.widen_row(row, out);
    }
    Ok(Tensor::new(name, Dtype::F32, &[rows, columns], TensorData::F32(values)))
}

/// How layers are stored whose codes are written with scales that multiply.
fn written(config: &ModelConfig, targets: &Targets) -> Quantization {
    let parts = || targets.linears.iter().flat_map(|linear| &linear.parts);
    let has_bias = targets.linears.iter().any(|linear| linear.bias.is_some());
    let stored = config.quantization.clone();
    if parts().all(|part| part.form.has_scale_beside()) {
        return Quantization { mode: QuantizationMode::Offline, ..stored };
    }
    // These add a bias after all scales.
    let linear_class = if has_bias { LinearClass::BitLinear } else { LinearClass::AutoBitLinear };
    Quantization { linear_class, mode: QuantizationMode::Offline, ..stored }
}

impl Targets {
    fn part(&self, name: &str) -> Option<&PendingPart> {
        match *self.by_name.get(name)? {
            Target::Linear { linear, part, role: Role::Weight } => {
                Some(&self.linears[linear].parts[part])
            }
            _ => None,
        }
    }

    /// The places of all tensors in an order of use: a scale's is that of its matrix.
    fn places(&self, tensors: &[OutlineTensor]) -> HashMap<String, usize> {
        let mut matrices = HashMap::new();
        let mut places = HashMap::new();
        for (place, tensor) in tensors.iter().enumerate() {
            if let Some(matrix) = self.by_name.get(&tensor.name).and_then(Target::matrix) {
                matrices.entry(matrix).or_insert(place);
            }
            places.insert(tensor.name.clone(), place);
        }
        for (name, target) in self.by_name.iter().filter(|(_, target)| target.is_scale()) {
            let place = match target {
                Target::Int8Table { .. } => {
                    name.strip_suffix(SCALES).and_then(|table| places.get(table))
                }
                _ => target.matrix().and_then(|matrix| matrices.get(&matrix)),
            };
            if let Some(place) = place.copied() {
                places.insert(name.clone(), place);
            }
        }
        places
    }

    /// All tensors but scales, in the order of their use.
    fn in_order(&self, infos: &TensorInfos<'_>) -> Vec<OutlineTensor> {
        let place = |target: &Target| match *target {
            Target::Vector(id, _) | Target::Table(id) => (id.0, 0, 0),
            Target::Gate { net, part } => (self.gates[net].dense[part].0, 0, 0),
            Target::Int8Table { table, .. } => (self.int8_tables[table].weight.0, 0, 0),
            Target::TernaryTable { table, .. } => (self.tables[table].id.0, 0, 0),
            Target::Linear { linear, part, role } => {
                (self.linears[linear].weight.0, part, usize::from(role == Role::Bias))
            }
        };
        let mut all: Vec<_> =
            self.by_name.iter().filter(|(_, target)| !target.is_scale()).collect();
        all.sort_by_key(|(name, target)| (place(target), name.as_str()));
        let tensor = |(name, target): (&String, &Target)| {
            let info = infos.get(name)?;
            let (shape, kind) = match (self.part(name), *target) {
                (Some(part), _) => (vec![part.rows, part.columns], OutlineKind::Ternary(part.kind)),
                (None, Target::TernaryTable { table, .. }) => {
                    let PendingTable { matrix, floats, .. } = &self.tables[table];
                    let kind = OutlineKind::Table { scales: matrix.kind, floats: *floats };
                    (vec![matrix.rows, matrix.columns], kind)
                }
                (None, _) if dtype::FLOATS.contains(&info.dtype) => {
                    (info.shape.clone(), OutlineKind::Floats(info.dtype))
                }
                (None, _) => {
                    let floats = Dtype::F32;
                    let scales = blocks::table_scales(info.dtype);
                    let kind = scales.map_or(OutlineKind::Floats(floats), |scales| {
                        OutlineKind::Table { scales, floats }
                    });
                    (info.shape.clone(), kind)
                }
            };
            Some(OutlineTensor { name: name.clone(), shape, kind })
        };
        all.into_iter().filter_map(tensor).collect()
    }
}

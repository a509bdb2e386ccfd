//! A stage whose weights come one by one, so that no more than one of them is held twice.

use std::collections::BTreeMap;

use setun_checkpoint::ModelConfig;
#[cfg(not(target_family = "wasm"))]
use setun_ops::image::{Adopted, MappedWeight};
use setun_ops::{
    Backend, CacheSpec, OpsError, Usage, WeightData, WeightId, WeightSpec, op::Activation,
};

use super::{MIN_CAPACITY, RankedRows, Stage};
use crate::{
    cache_spec::cache_spec,
    error::ModelError,
    layer_range::{LayerRange, RangeLayout},
    layout::Layout,
    options::TransformerOptions,
    plan::HeadOutput,
};

/// Moves the weights of a part of a model into a backend as they come, in any order, and makes a
/// [`Stage`] of them.
pub struct StageBuilder<B: Backend> {
    backend: B,
    config: ModelConfig,
    part: LayerRange,
    layout: RangeLayout,
    options: TransformerOptions,
    usages: Vec<Usage>,
    weights: Vec<Option<B::Weight>>,
    weight_bytes: Vec<usize>,
}

impl<B: Backend> StageBuilder<B> {
    /// Takes the weights that the part needs from now on, under the numbers of the whole layout.
    ///
    /// # Errors
    ///
    /// If the model has another number of layers than the part says, or the options request a
    /// cache that no backend has.
    pub fn new(
        backend: B,
        config: ModelConfig,
        layout: &Layout,
        part: LayerRange,
        options: TransformerOptions,
    ) -> Result<Self, ModelError> {
        let (expected, found) = (part.of, layout.layers.len());
        if expected != found {
            let what = "layers of the model";
            return Err(ModelError::Stages { what, expected, found });
        }
        part_spec(&config, part, &options).check()?;
        let count = layout.specs.len();
        let layout = part.layout(layout);
        let mut usages = vec![Usage::General; count];
        // Columns add up with one scale a row.
        if config.activation == Activation::ReluSquared && layout.layout.activation_group.is_none()
        {
            for layer in &layout.layout.layers {
                usages[layer.down.weight.0 as usize] = Usage::SparseInput;
            }
        }
        let (weights, weight_bytes) = (vec![None; count], vec![0; count]);
        Ok(Self { backend, config, part, layout, options, usages, weights, weight_bytes })
    }

    /// Which layers it has.
    #[must_use]
    pub fn part(&self) -> LayerRange {
        self.part
    }

    /// Whether the part has use for a weight.
    #[must_use]
    pub fn needs(&self, id: WeightId) -> bool {
        self.layout.needs.get(id.0 as usize).is_some_and(|needed| *needed)
    }

    /// Moves one weight into the backend; one that is there already is replaced.
    ///
    /// # Errors
    ///
    /// If the part has no such weight or one of another kind or shape, or if the backend refuses
    /// it or has no memory for it.
    pub fn add(&mut self, id: WeightId, weight: WeightData) -> Result<(), ModelError> {
        let index = id.0 as usize;
        let expected = self.expected(id);
        let found = weight.spec();
        if expected != Some(found) {
            return Err(wrong_weight(id, expected, found.to_string()).into());
        }
        self.weight_bytes[index] = weight.bytes();
        self.weights[index] = Some(self.backend.upload(weight, self.usages[index])?);
        Ok(())
    }

    /// Takes one weight from an [image](Stage::images); one that is there already is replaced.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and if it is no image of the backend's.
    #[cfg(not(target_family = "wasm"))]
    pub fn adopt(&mut self, id: WeightId, image: MappedWeight) -> Result<(), ModelError> {
        let expected = self.expected(id);
        let usage = self.usages.get(id.0 as usize).copied().unwrap_or_default();
        let Adopted { weight, spec, bytes } = self.backend.adopt(image, usage)?;
        if expected != Some(spec) {
            return Err(wrong_weight(id, expected, spec.to_string()).into());
        }
        self.weight_bytes[id.0 as usize] = bytes;
        self.weights[id.0 as usize] = Some(weight);
        Ok(())
    }

    /// Kind and shape of a weight that the part needs.
    fn expected(&self, id: WeightId) -> Option<WeightSpec> {
        self.needs(id).then(|| self.layout.layout.specs[id.0 as usize])
    }

    /// The stage, once all weights were added.
    ///
    /// # Errors
    ///
    /// If a weight is missing, or the backend has no memory for the cache or a first step.
    pub fn finish(mut self) -> Result<Stage<B>, ModelError> {
        let weights = self.take_weights()?;
        let Self { mut backend, config, part, layout, options, weight_bytes, .. } = self;
        let layout = layout.layout;
        let positions = match layout.specs[layout.rope.0 as usize] {
            WeightSpec::Rope { positions, .. } => positions,
            _ => config.context_length,
        };
        let spec = part_spec(&config, part, &options);
        let cache = backend.create_cache(&spec, 0)?;
        let ranked = match (options.ranked, backend.takes_noise()) {
            (false, _) => RankedRows::None,
            (true, false) => RankedRows::ByLogit,
            (true, true) => RankedRows::All,
        };
        let mut stage = Stage {
            backend,
            config,
            part,
            layout,
            weights,
            positions,
            spec,
            cache,
            ranked,
            weight_bytes,
            cache_blocks: 0,
            states: 0,
            steps: BTreeMap::new(),
            clock: 0,
            profile: None,
            head: <_>::default(),
        };
        if options.ranked && part.has_head() {
            // What a backend makes of the head's table is part of loading, not of the first step.
            let key = (1, 1, HeadOutput::TopLogits { capacity: MIN_CAPACITY });
            let step = stage.prepare(key)?;
            stage.steps.insert(key, step);
        }
        Ok(stage)
    }

    /// All weights; those that the part does not need share one of no size.
    fn take_weights(&mut self) -> Result<Vec<B::Weight>, ModelError> {
        let specs = &self.layout.layout.specs;
        let mut absent = None;
        let mut weights = vec![];
        for (id, weight) in (0..).map(WeightId).zip(std::mem::take(&mut self.weights)) {
            weights.push(match (weight, &absent) {
                (Some(weight), _) => weight,
                (None, _) if self.layout.needs[id.0 as usize] => {
                    let expected = Some(specs[id.0 as usize]);
                    return Err(wrong_weight(id, expected, "none".to_owned()).into());
                }
                (None, Some(weight)) => B::Weight::clone(weight),
                (None, None) => {
                    let nothing = WeightData::Vector(vec![0.0]);
                    absent.insert(self.backend.upload(nothing, Usage::General)?).clone()
                }
            });
        }
        Ok(weights)
    }
}

fn part_spec(config: &ModelConfig, part: LayerRange, options: &TransformerOptions) -> CacheSpec {
    let blocks = (options.block_positions, options.cache_element);
    cache_spec(config, part.first..part.first + part.layers(), blocks, options.max_tentative)
}

pub(crate) fn wrong_weight(id: WeightId, expected: Option<WeightSpec>, found: String) -> OpsError {
    let expected = expected.map_or_else(|| "no such weight".to_owned(), |spec| spec.to_string());
    OpsError::Weight { id, expected, found }
}

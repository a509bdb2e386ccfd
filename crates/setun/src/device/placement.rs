//! Decisions on a device that are made before the weights move.

use setun_engine::HeadType;
#[cfg(not(target_family = "wasm"))]
use setun_model::LayerRange;
use setun_model::{BLOCK_POSITIONS, MAX_TENTATIVE, cache_spec};
use setun_ops::{
    CacheSpec, WeightId, WeightSpec,
    weight::{DenseKind, WeightKind},
};

use super::DeviceOptions;
use crate::header::ModelHeader;

/// Bytes of a table from which on it is screened by default. The smallest one measured, of 2 MB,
/// gains by it (`docs/performance.md`); far smaller ones are no large part of a step.
const SCREEN_PAYS_BYTES: usize = 1 << 20;

/// How a model, or a part of it, is kept on a device.
#[derive(Clone)]
pub(super) struct Placement {
    pub(super) options: DeviceOptions,
    /// How the head is kept on this device.
    pub(super) head: HeadType,
    /// The layers that it takes; none where it takes all.
    #[cfg(not(target_family = "wasm"))]
    pub(super) part: Option<LayerRange>,
}

impl Placement {
    pub(super) fn new(header: &ModelHeader, options: DeviceOptions) -> Self {
        Self {
            head: header.head_type(&options),
            options,
            #[cfg(not(target_family = "wasm"))]
            part: None,
        }
    }

    /// The same on a GPU, which keeps no screen.
    #[cfg(any(feature = "gpu", not(target_family = "wasm")))]
    pub(super) fn on_gpu(&self) -> Self {
        let head = match self.options.head {
            HeadType::Auto => HeadType::Stored,
            head => head,
        };
        Self { head, ..self.clone() }
    }

    /// The head where it is to be rounded.
    pub(super) fn int8_head(&self, header: &ModelHeader) -> Option<WeightId> {
        (self.options.head == HeadType::Int8).then_some(header.layout.head)
    }

    pub(super) fn cache(&self, header: &ModelHeader) -> CacheSpec {
        let layers = 0..header.config.layers.len();
        let blocks = (BLOCK_POSITIONS, self.options.cache.into());
        cache_spec(&header.config, layers, blocks, MAX_TENTATIVE)
    }
}

impl ModelHeader {
    /// How the head is kept with some options: what [`HeadType::Auto`] comes to on a processor.
    #[must_use]
    pub fn head_type(&self, options: &DeviceOptions) -> HeadType {
        let pays = options.device.level().is_some() && self.widened_bytes() >= SCREEN_PAYS_BYTES;
        match options.head {
            HeadType::Auto if pays => HeadType::Screened,
            HeadType::Auto => HeadType::Stored,
            head => head,
        }
    }

    /// Bytes of the head's table, where its elements are floats; of a ternary one those of f16, which take
    /// less time than its codes.
    fn widened_bytes(&self) -> usize {
        let head = self.layout.head.0 as usize;
        let WeightSpec::Dense { rows, columns } = self.layout.specs[head] else { return 0 };
        let element = match self.kinds[head] {
            WeightKind::Dense(DenseKind::F32) => 4,
            WeightKind::Dense(DenseKind::F16 | DenseKind::Bf16 | DenseKind::Ternary(_)) => 2,
            _ => 0,
        };
        rows * columns * element
    }
}

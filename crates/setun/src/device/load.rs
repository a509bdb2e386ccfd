//! Moving a model to its device.

use setun_cpu::{CpuBackend, CpuOptions, Level};
use setun_model::{Model as Forward, Transformer, TransformerOptions, Weights};
use setun_ops::{Backend, ScalarBackend};

use super::{Device, DeviceOptions, HeadType, SCALAR, unavailable};
use crate::{error::Error, model::Model};

/// Bytes of a table from which on it is screened by default. The smallest one measured, of 2 MB,
/// gains by it (`docs/performance.md`); far smaller ones are no large part of a step.
const SCREEN_PAYS_BYTES: usize = 1 << 20;

/// A model on its device.
pub struct LoadedModel {
    /// Logits for batches.
    pub model: Box<dyn Forward>,
    /// The device that runs.
    pub backend: &'static str,
    /// Its level, or its own name.
    pub level: String,
    /// Threads that run.
    pub threads: usize,
    /// How the head is kept: what [`HeadType::Auto`] came to.
    pub head: HeadType,
    /// Bytes of the weights, as they are kept.
    pub weight_bytes: usize,
}

/// How a head is kept with some options: what [`HeadType::Auto`] comes to.
pub(crate) fn head_type(weights: &Weights, options: &DeviceOptions) -> HeadType {
    let pays = level(options.device).is_some()
        && weights.float_head().is_some_and(|table| table.bytes() >= SCREEN_PAYS_BYTES);
    match options.head {
        HeadType::Auto if pays => HeadType::Screened,
        HeadType::Auto => HeadType::Stored,
        head => head,
    }
}

/// The level of a device; none for the definitions and for GPUs.
fn level(device: Device) -> Option<Level> {
    match device {
        Device::Scalar | Device::Gpu(_) => None,
        Device::Level(level) => Some(level),
        Device::Auto | Device::Cpu => Level::available().first().copied(),
    }
}

/// Moves the model's weights to a device.
pub(crate) async fn load_onto(model: Model, options: DeviceOptions) -> Result<LoadedModel, Error> {
    if let Some(threads) = options.threads.filter(|&threads| threads == 0 || threads > 1024) {
        return Err(Error::BadOption {
            option: "threads",
            found: threads.to_string(),
            expected: "1 to 1024".into(),
        });
    }
    let place = Place { head: head_type(&model.weights, &options), options };
    if let Device::Gpu(api) = options.device {
        #[cfg(feature = "gpu")]
        return super::gpu::load(model, api, place).await;
        #[cfg(not(feature = "gpu"))]
        return Err(unavailable(api.name(), "this build has no GPU".into()));
    }
    let Some(level) = level(options.device) else {
        return place.load(model, ScalarBackend, ("cpu", SCALAR.to_owned()), 1);
    };
    let backend = CpuBackend::new(CpuOptions { level: Some(level), threads: options.threads })
        .map_err(|error| unavailable(level.name(), error.to_string()))?;
    let threads = backend.threads();
    place.load(model, backend, ("cpu", level.name().to_owned()), threads)
}

/// What is decided before the weights move.
pub(super) struct Place {
    pub(super) head: HeadType,
    pub(super) options: DeviceOptions,
}

impl Place {
    /// Moves the weights into a backend.
    pub(super) fn load<B>(
        self,
        model: Model,
        backend: B,
        (name, level): (&'static str, String),
        threads: usize,
    ) -> Result<LoadedModel, Error>
    where
        Transformer<B>: Forward,
        B: Backend + 'static,
    {
        let head = self.head;
        let mut weights = model.weights;
        if head == HeadType::Int8 {
            weights.head_to_int8().map_err(Error::from)?;
        }
        let options = TransformerOptions {
            cache_element: self.options.cache.into(),
            ranked: head == HeadType::Screened || matches!(self.options.device, Device::Gpu(_)),
            ..TransformerOptions::default()
        };
        let model = Transformer::new(backend, model.config, weights, options)?;
        let weight_bytes = model.memory().weights();
        Ok(LoadedModel {
            model: Box::new(model),
            backend: name,
            level,
            threads,
            head,
            weight_bytes,
        })
    }
}

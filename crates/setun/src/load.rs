//! Loading of models onto devices: the header opens a device, then the weights go to it.

#[cfg(not(target_family = "wasm"))]
mod mapped;
#[cfg(not(target_family = "wasm"))]
mod own_image;

use std::sync::Arc;

use futures::future::{FutureExt, LocalBoxFuture};
use setun_checkpoint::Warning;
use setun_clock::Clock;
use setun_engine::{
    DeviceReport, EngineParts, Error as EngineError, GenerateOptions, HeadType, ReloadModel,
    Replica,
};
#[cfg(not(target_family = "wasm"))]
use setun_engine::{Inferencer, InferencerOptions};
use setun_model::Model as Forward;
use setun_ops::{WeightData, WeightId};

use crate::{
    custom_model::CustomModel,
    device::{
        Device, DeviceOpener, DeviceOptions, LoadedModel, OpenedDevice, Tester, device_failure,
    },
    error::Error,
    header::ModelHeader,
    model::Model,
    reader::{ModelReader, WeightReader},
    source::ModelSource,
};

#[cfg(not(target_family = "wasm"))]
pub use own_image::add_weight_image;

/// A model for an [`Engine`](crate::Engine::builder): a [`Model`] in memory, or a
/// [`ModelReader`] whose weights go to their device as they are read.
pub struct ModelInput {
    header: ModelHeader,
    weights: InputWeights,
    /// Where it can be read again; none where its bytes are gone.
    source: Option<ModelSource>,
    /// Seconds that reading took, of a model in memory.
    load_seconds: f64,
    warnings: Vec<Warning>,
}

enum InputWeights {
    /// In memory, as far as they were not handed out for good.
    Memory { data: Vec<Option<WeightData>>, next: usize },
    /// Still to be read.
    Reader(Box<WeightReader>),
}

impl From<Model> for ModelInput {
    fn from(model: Model) -> Self {
        let load_seconds = model.load_seconds();
        let Model { header, weights, source, warnings, .. } = model;
        let data = weights.data.into_iter().map(Some).collect();
        let weights = InputWeights::Memory { data, next: 0 };
        Self { header, weights, source, load_seconds, warnings }
    }
}

impl From<ModelReader> for ModelInput {
    fn from(reader: ModelReader) -> Self {
        let warnings = reader.warnings().to_vec();
        let ModelReader { header, weights } = reader;
        let source = Some(weights.source.clone());
        let weights = InputWeights::Reader(Box::new(weights));
        Self { header, weights, source, load_seconds: 0.0, warnings }
    }
}

impl ModelInput {
    /// How much may be read ahead from now on.
    pub(crate) async fn prefetch(&self, bytes: usize) {
        if let Some(source) = &self.source {
            source.bytes().await.prefetch(bytes);
        }
    }

    /// The next weight, none after the last. Where it is to `keep` those in memory, a copy.
    async fn next_weight(&mut self, keep: bool) -> Result<Option<(WeightId, WeightData)>, Error> {
        let (data, next) = match &mut self.weights {
            InputWeights::Memory { data, next } => (data, next),
            InputWeights::Reader(reader) => return reader.next().await,
        };
        let Some(weight) = data.get_mut(*next) else { return Ok(None) };
        let id = WeightId(u32::try_from(*next).unwrap_or(u32::MAX));
        *next += 1;
        Ok(if keep { weight.clone() } else { weight.take() }.map(|weight| (id, weight)))
    }

    /// Begins again with the first weight. Those in memory must have been kept.
    async fn rewind(&mut self) -> Result<(), Error> {
        match &mut self.weights {
            InputWeights::Memory { next, .. } => *next = 0,
            InputWeights::Reader(reader) => reader.rewind().await?,
        }
        Ok(())
    }

    /// Gives its weights to a device.
    async fn move_weights(&mut self, device: &mut OpenedDevice, keep: bool) -> Result<(), Error> {
        while let Some((id, weight)) = self.next_weight(keep).await? {
            device.take(id, weight)?;
        }
        Ok(())
    }

    /// Closes what it is read from.
    async fn close(&self) {
        if let InputWeights::Reader(reader) = &self.weights {
            reader.close().await;
        }
    }

    fn load_seconds(&self) -> f64 {
        match &self.weights {
            InputWeights::Memory { .. } => self.load_seconds,
            InputWeights::Reader(reader) => reader.begun.elapsed().as_secs_f64(),
        }
    }
}

/// Loads a model onto the device that the options name, or the best one. Where it is to `keep`
/// weights in memory, they are there afterwards. Boxed: every caller would have its own copy of
/// the code.
fn load_onto(
    model: &mut ModelInput,
    options: DeviceOptions,
    keep: bool,
) -> LocalBoxFuture<'_, Result<LoadedModel, Error>> {
    let loading = async move {
        let mut opener = DeviceOpener::new(&model.header, options)?;
        loop {
            match load_once(model, &mut opener, keep).await {
                Ok(loaded) => return Ok(loaded),
                Err(error) => opener.fall_back(error)?,
            }
            model.rewind().await?;
        }
    };
    loading.boxed_local()
}

async fn load_once(
    model: &mut ModelInput,
    opener: &mut DeviceOpener,
    keep: bool,
) -> Result<LoadedModel, Error> {
    let mut device = opener.open().await?;
    #[cfg(not(target_family = "wasm"))]
    let moved = mapped::map_or_move(model, opener, &mut device, keep).await;
    #[cfg(target_family = "wasm")]
    let moved = model.move_weights(&mut device, keep || opener.has_fallback()).await;
    if moved.is_err() {
        model.close().await;
    }
    moved?;
    device.finish().await
}

/// Models that an engine starts from.
pub(crate) enum EngineSource {
    /// A checkpoint.
    Checkpoint(Box<ModelInput>),
    /// A model that is no checkpoint.
    Custom(Box<CustomModel>),
}

impl EngineSource {
    /// How much may be read ahead from now on.
    pub(crate) async fn prefetch(&self, bytes: usize) {
        if let Self::Checkpoint(model) = self {
            model.prefetch(bytes).await;
        }
    }

    /// Loads it onto the first device that takes it; and the options with that device.
    pub(crate) async fn load(
        self,
        options: DeviceOptions,
        fallbacks: Vec<Device>,
    ) -> Result<(EngineParts, DeviceOptions), Error> {
        match self {
            Self::Checkpoint(model) => load_parts(*model, options, fallbacks).await,
            Self::Custom(model) => Ok((model.into_parts(), options)),
        }
    }

    /// Loads it as a draft, which needs no tokenizer.
    pub(crate) async fn load_draft(self, options: &DeviceOptions) -> Result<Vec<Replica>, Error> {
        match self {
            Self::Checkpoint(mut model) => load_replicas(&mut model, options, false).await,
            Self::Custom(model) => Ok(model.into_parts().replicas),
        }
    }
}

async fn load_parts(
    mut model: ModelInput,
    mut options: DeviceOptions,
    fallbacks: Vec<Device>,
) -> Result<(EngineParts, DeviceOptions), Error> {
    let tokenizer = model.header.tokenizer()?.map(Arc::clone);
    let (mut report, mut fallbacks) = (DeviceReport::default(), fallbacks.into_iter());
    let replicas = loop {
        let error = match load_replicas(&mut model, &options, fallbacks.len() > 0).await {
            Ok(replicas) => break replicas,
            Err(error) => error,
        };
        let next = fallbacks.next().filter(|_| device_failure(&error).is_some());
        let Some(next) = next else { return Err(error) };
        let failed = std::mem::replace(&mut options.device, next);
        report.add_failed(failed.kind(), failed.to_string(), error.to_string());
        model.rewind().await?;
    };
    let load_seconds = model.load_seconds();
    let mut header = model.header;
    header.apply(&options)?; // is tested as it runs
    let parts = EngineParts {
        name: header.name.clone(),
        shape: Some(header.shape()),
        tokenizer,
        template: header.template.clone(),
        eos_tokens: header.config.eos_tokens.clone(),
        sampling: header.sampling.clone(),
        defaults: GenerateOptions::default(),
        monitor: None,
        clock: Clock::system(),
        load_seconds,
        warnings: model.warnings.iter().map(ToString::to_string).collect(),
        report,
        self_tester: Some(Box::new(Tester::new(header, options.clone()))),
        replicas,
    };
    Ok((parts, options))
}

/// Loads a model onto a device, or onto each of several, one after the other.
async fn load_replicas(
    model: &mut ModelInput,
    options: &DeviceOptions,
    keep: bool,
) -> Result<Vec<Replica>, Error> {
    let devices = match &options.device {
        Device::Each(devices) => devices.clone(),
        device => vec![device.clone()],
    };
    let Some(last) = devices.len().checked_sub(1) else {
        let (found, expected) = ("none".into(), "a device or more".into());
        return Err(EngineError::BadOption { option: "device", found, expected }.into());
    };
    let mut replicas = vec![];
    for (index, device) in devices.iter().enumerate() {
        if index > 0 {
            model.rewind().await?;
        }
        let options = options.of_one(device, &devices);
        let loaded = load_onto(model, options.clone(), keep || index < last).await?;
        replicas.push(replica(loaded, model.source.as_ref(), &options));
    }
    Ok(replicas)
}

fn replica(loaded: LoadedModel, source: Option<&ModelSource>, options: &DeviceOptions) -> Replica {
    // The options name the device: what was chosen once is not measured again.
    let options = DeviceOptions { device: loaded.device, ..options.clone() };
    let reload = source.map(|source| Reload { source: source.clone(), options });
    Replica {
        model: loaded.model,
        backend: loaded.backend,
        level: loaded.level,
        threads: loaded.threads,
        head: loaded.head,
        weight_bytes: loaded.weight_bytes,
        report: loaded.report,
        max_blocks: usize::MAX,
        reload: reload.map(|reload| Box::new(reload) as _),
        draft: None,
    }
}

/// Loads a model again from its source, after its device was lost.
struct Reload {
    source: ModelSource,
    options: DeviceOptions,
}

impl Reload {
    async fn load(&self) -> Result<Box<dyn Forward>, Error> {
        let mut model = ModelReader::new(self.source.clone()).await?.into();
        Ok(load_onto(&mut model, self.options.clone(), false).await?.model)
    }
}

impl ReloadModel for Reload {
    fn reload(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Forward>, EngineError>> {
        self.load().map(|model| Ok(model?)).boxed_local()
    }
}

impl Model {
    /// Moves the weights to a device, for use without an engine.
    ///
    /// # Errors
    ///
    /// If the device is not here, or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn load_onto(self, options: DeviceOptions) -> Result<LoadedModel, Error> {
        pollster::block_on(load_onto(&mut self.into(), options, false))
    }

    /// Moves the weights to a device, for batches of token ids. Its end tokens end rows.
    ///
    /// # Errors
    ///
    /// If the device is not here, or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn into_inferencer(self, device: DeviceOptions) -> Result<Inferencer, Error> {
        let eos_tokens = self.config().eos_tokens.clone();
        let options = InferencerOptions { eos_tokens, ..InferencerOptions::default() };
        Ok(Inferencer::new(self.load_onto(device)?.model, options))
    }

    /// How its head is kept with some options: what [`HeadType::Auto`] comes to.
    #[must_use]
    pub fn head_type(&self, options: &DeviceOptions) -> HeadType {
        self.header.head_type(options)
    }
}

impl ModelReader {
    /// Looks at the devices that the options name, and reports which one would run and why.
    ///
    /// # Errors
    ///
    /// If a device that is named is not here, or there is no memory to test one.
    pub async fn probe(&self, options: DeviceOptions) -> Result<DeviceReport, Error> {
        let opened = DeviceOpener::new(&self.header, options)?.open().await?;
        Ok(opened.report)
    }
}

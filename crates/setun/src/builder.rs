//! Start of an engine: its model, devices and limits.

#[cfg(all(feature = "config", not(target_family = "wasm")))]
mod configured;
mod draft;
mod memory;
mod streams;

use std::time::Duration;

use futures::future::LocalBoxFuture;
use setun_engine::{Engine, EngineOptions, EngineParts, IntoEngineBuilder};
use web_time::Instant;

use crate::{
    custom_model::CustomModel,
    device::{CacheType, Device, DeviceOptions, HeadType},
    error::Error,
    load::{EngineSource, ModelInput},
    model::Model,
    reader::ModelReader,
};
use memory::max_blocks;

/// Makes an [`Engine`]. See [`Engine::builder`].
#[must_use]
pub struct EngineBuilder {
    source: EngineSource,
    draft: Option<EngineSource>,
    device: DeviceOptions,
    fallbacks: Vec<Device>,
    memory_fraction: Option<f64>,
    prefetch: Option<usize>,
    options: EngineOptions,
}

impl IntoEngineBuilder for Model {
    type Builder = EngineBuilder;

    fn into_engine_builder(self) -> EngineBuilder {
        EngineBuilder::new(EngineSource::Checkpoint(Box::new(self.into())))
    }
}

impl IntoEngineBuilder for ModelReader {
    type Builder = EngineBuilder;

    fn into_engine_builder(self) -> EngineBuilder {
        EngineBuilder::new(EngineSource::Checkpoint(Box::new(self.into())))
    }
}

impl IntoEngineBuilder for ModelInput {
    type Builder = EngineBuilder;

    fn into_engine_builder(self) -> EngineBuilder {
        EngineBuilder::new(EngineSource::Checkpoint(Box::new(self)))
    }
}

impl IntoEngineBuilder for CustomModel {
    type Builder = EngineBuilder;

    fn into_engine_builder(self) -> EngineBuilder {
        EngineBuilder::new(EngineSource::Custom(Box::new(self)))
    }
}

impl EngineBuilder {
    fn new(source: EngineSource) -> Self {
        Self {
            source,
            draft: None,
            device: DeviceOptions::default(),
            fallbacks: vec![],
            memory_fraction: None,
            prefetch: None,
            options: EngineOptions::default(),
        }
    }

    /// Where to run. Default: [`Device::Auto`].
    pub fn device(mut self, device: Device) -> Self {
        self.device.device = device;
        self
    }

    /// Another device, for where those before it are not here, fail, or do not hold the model;
    /// [`Engine::device_report`] tells why. A model in memory is kept until one has taken it.
    pub fn fallback(mut self, device: Device) -> Self {
        self.fallbacks.push(device);
        self
    }

    /// Threads to run on. Default: chosen for the processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.device.threads = Some(threads);
        self
    }

    /// Element type of the KV cache. Default: [`CacheType::F16`].
    pub fn cache_type(mut self, cache: CacheType) -> Self {
        self.device.cache = cache;
        self
    }

    /// How the head is kept. Default: [`HeadType::Auto`].
    pub fn head_type(mut self, head: HeadType) -> Self {
        self.device.head = head;
        self
    }

    /// Whether [`Device::Auto`] may choose a software adapter. Default: no; it is for
    /// tests, which have no other.
    pub fn software(mut self, software: bool) -> Self {
        self.device.software = software;
        self
    }

    /// Whole contexts that the cache may grow to. Generations whose tokens do not fit all at once
    /// wait, or give up their memory to others and begin again from their tokens, which changes
    /// no text. Default: 8. Memory is taken as it is used.
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.options.contexts = contexts.max(1);
        self
    }

    /// Positions that stay in the cache after their generation, least lately used ones going
    /// first, so that a prompt that begins as another did, or as a conversation, is computed from
    /// where they differ. 0 keeps none. They are part of the [`contexts`](Self::contexts) and make
    /// room for what runs. Default: one context.
    pub fn prefix_positions(mut self, positions: usize) -> Self {
        self.options.prefix_positions = Some(positions);
        self
    }

    /// Generations that run at once, on each device: the largest batch. Others wait. Default: 64.
    pub fn streams(mut self, streams: usize) -> Self {
        self.options.streams = streams.max(1);
        self
    }

    /// Requests that wait at once, for each device; one more is refused
    /// ([`EngineError::Busy`](crate::EngineError::Busy)). Default: 1024.
    pub fn queue(mut self, requests: usize) -> Self {
        self.options.queue = requests.max(1);
        self
    }

    /// Time that an idle engine waits for more requests after the first, so that they begin in one
    /// batch. Default: none.
    pub fn batch_wait(mut self, wait: Duration) -> Self {
        self.options.batch_wait = wait;
        self
    }

    /// Starts the engine on a thread of its own; with [`Device::Each`] on one for each device.
    ///
    /// # Errors
    ///
    /// If the device is not here or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn build(self) -> Result<Engine, Error> {
        let (parts, options) = pollster::block_on(self.load())?;
        Ok(Engine::start(parts, &options)?)
    }

    /// The engine, and the task that runs it: for a host with one thread, which spawns the
    /// task locally. `pace` is awaited with no time a few times per second of work, so that the
    /// host can handle its events, and with a time when there is nothing to do until then.
    ///
    /// # Errors
    ///
    /// If the device is not here or has not enough memory.
    pub async fn build_local(
        self,
        pace: impl FnMut(Duration) -> LocalBoxFuture<'static, ()> + 'static,
    ) -> Result<(Engine, LocalBoxFuture<'static, ()>), Error> {
        let (parts, options) = self.load().await?;
        Ok(Engine::start_local(parts, &options, pace)?)
    }

    /// Loads the model, and a draft, onto their devices.
    async fn load(self) -> Result<(EngineParts, EngineOptions), Error> {
        let begun = Instant::now();
        let Self { source, draft, device, fallbacks, memory_fraction, prefetch, options } = self;
        if let Some(bytes) = prefetch {
            source.prefetch(bytes).await;
        }
        let (mut parts, device) = source.load(device, fallbacks).await?;
        draft::load(draft, &device, &mut parts.replicas).await?;
        parts.load_seconds = parts.load_seconds.max(begun.elapsed().as_secs_f64());
        for replica in &mut parts.replicas {
            let length = options.context_length.unwrap_or(usize::MAX);
            let context = replica.model.context_length().min(length);
            replica.max_blocks = max_blocks(memory_fraction, replica, context)?;
        }
        Ok((parts, options))
    }
}

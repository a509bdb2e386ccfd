//! Start of an engine: its model, devices and limits.

mod draft;
mod memory;

use std::time::Duration;

use futures::future::LocalBoxFuture;
use setun_clock::Clock;
use setun_engine::{
    BackPressure, Engine, EngineOptions, EngineParts, GenerateOptions, HeadType, IntoEngineBuilder,
    SharedMonitor, engine_options,
};
use setun_text::option_setter;
use web_time::Instant;

#[cfg(not(target_family = "wasm"))]
use crate::system_memory::SystemMemory;
use crate::{
    config::{DeviceConfig, EngineConfig, device_options},
    custom_model::CustomModel,
    device::{ActivationGroup, CacheType, Device, DeviceOptions},
    error::Error,
    load::{EngineSource, ModelInput},
    model::Model,
    reader::ModelReader,
};
use memory::max_blocks;
#[cfg(not(target_family = "wasm"))]
use memory::shared_monitor;

/// How often the system's memory is read.
#[cfg(not(target_family = "wasm"))]
const MONITOR_EVERY: Duration = Duration::from_secs(1);

/// Makes an [`Engine`]. See [`Engine::builder`].
pub struct EngineBuilder {
    source: EngineSource,
    draft: Option<EngineSource>,
    config: EngineConfig,
    software: bool,
    monitor: Option<(SharedMonitor, Duration)>,
    clock: Clock,
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
            config: EngineConfig::default(),
            software: false,
            monitor: None,
            clock: Clock::system(),
        }
    }

    /// Where to run. Default: [`Device::Auto`].
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.config.device.backends = vec![device];
        self
    }

    /// Another device, for where those before it are not here, fail, or do not hold the model;
    /// [`Engine::device_report`] says why. A model in memory is kept until one has taken it.
    #[must_use]
    pub fn fallback(mut self, device: Device) -> Self {
        let backends = &mut self.config.device.backends;
        if backends.is_empty() {
            backends.push(Device::Auto);
        }
        backends.push(device);
        self
    }

    /// Whether [`Device::Auto`] may choose a software adapter. Default: no; it is for
    /// tests, which have no other.
    #[must_use]
    pub fn software(mut self, software: bool) -> Self {
        self.software = software;
        self
    }

    /// The clock of deadlines and waits. Default: the system's; tests of what takes its time have
    /// one that they move.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Options that generations take where they are not given. Default: those of the model.
    #[must_use]
    pub fn default_options(mut self, options: GenerateOptions) -> Self {
        self.config.generation = options;
        self
    }

    /// Sets all that a configuration says. What is set afterwards takes its place. Devices that
    /// this build or this processor lacks are passed over where it has another.
    #[must_use]
    pub fn config(self, mut config: EngineConfig) -> Self {
        let is_available = |device: &Device| device.check_available().is_ok();
        let backends = &mut config.device.backends;
        if backends.iter().any(is_available) {
            backends.retain(is_available);
        }
        Self { config, ..self }
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
        let Self { source, draft, config, software, monitor, clock } = self;
        config.check()?;
        let device = DeviceOptions { software, ..config.device_options() };
        let EngineConfig { engine: options, device: config, generation } = config;
        let DeviceConfig { backends, memory_fraction, prefetch_bytes, .. } = config;
        let fallbacks = backends.into_iter().skip(1).collect();
        if prefetch_bytes > 0 {
            source.prefetch(prefetch_bytes).await;
        }
        let (mut parts, device) = source.load(device, fallbacks).await?;
        draft::load(draft, &device, &mut parts.replicas).await?;
        (parts.defaults, parts.clock) = (generation, clock);
        parts.monitor = monitor;
        #[cfg(not(target_family = "wasm"))]
        if let Some(least) = config.min_available {
            parts.monitor = Some((shared_monitor(SystemMemory::new(least)?), MONITOR_EVERY));
        }
        parts.load_seconds = parts.load_seconds.max(begun.elapsed().as_secs_f64());
        for replica in &mut parts.replicas {
            let length = options.context_length.unwrap_or(usize::MAX);
            let context = replica.model.context_length().min(length);
            replica.max_blocks = max_blocks(memory_fraction, replica, context)?;
        }
        Ok((parts, options))
    }
}

macro_rules! define_setters {
    ($path:tt
        $(
            $(#[doc = $doc:literal])*
            $name:ident: $field:ident $(<$($inner:ty),*>)? as $kind:ident $(($($argument:tt)*))?
            = $default:literal, $value:literal, $group:ident
            $(, $modifier:ident $(($words:literal))?)*;
        )*
    ) => {
        /// Setters of the options of [`EngineOptions`](setun_engine::EngineOptions) and
        /// [`DeviceConfig`].
        impl EngineBuilder {
            $(option_setter! {
                $(#[doc = $doc])*
                #[doc = concat!("\nDefault: ", $default, ".")]
                $path $name: $field $(<$($inner),*>)?
            })*
        }
    };
}

engine_options!(define_setters! { [config.engine] });
device_options!(define_setters! { [config.device] });

//! How an engine starts.

use std::sync::Arc;

use futures::{
    channel::mpsc::{UnboundedReceiver, unbounded},
    future::{FutureExt, LocalBoxFuture},
};
use web_time::Instant;

use super::{Engine, Shared};
use crate::{
    device::{CacheType, Device, DeviceOptions, HeadType, Loaded, LoadedModel, load_onto},
    error::Error,
    input::ModelInput,
    load::About,
    owner::{Command, Owner},
    sequence::Report,
};

/// Whole contexts that the cache may grow to.
const DEFAULT_CONTEXTS: usize = 8;

/// Makes an [`Engine`]. See [`Engine::builder`].
#[must_use]
pub struct EngineBuilder {
    model: ModelInput,
    options: DeviceOptions,
    contexts: usize,
}

impl EngineBuilder {
    pub(super) fn new(model: ModelInput) -> Self {
        Self { model, options: DeviceOptions::default(), contexts: DEFAULT_CONTEXTS }
    }

    /// Where to run. Default: [`Device::Auto`].
    pub fn device(mut self, device: Device) -> Self {
        self.options.device = device;
        self
    }

    /// Threads to run on. Default: what suits the processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// Element type of the KV cache. Default: [`CacheType::F16`].
    pub fn cache_type(mut self, cache: CacheType) -> Self {
        self.options.cache = cache;
        self
    }

    /// How the head is kept. Default: [`HeadType::Auto`].
    pub fn head_type(mut self, head: HeadType) -> Self {
        self.options.head = head;
        self
    }

    /// Whether [`Device::Auto`] may choose a processor that plays a GPU. Default: no; it is for
    /// tests, which have no other.
    pub fn software(mut self, software: bool) -> Self {
        self.options.software = software;
        self
    }

    /// Whole contexts that the cache may grow to; more generations than fit wait their turn, and
    /// one that nobody reads keeps its place: set `max_tokens` where streams are read one after
    /// another. Default: 8. Memory is taken as it is used.
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.contexts = contexts.max(1);
        self
    }

    /// Starts the engine on a thread of its own.
    ///
    /// # Errors
    ///
    /// If the device is not here or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn build(self) -> Result<Engine, Error> {
        let (engine, owner, commands) = pollster::block_on(self.start())?;
        let run = move || {
            let pace: crate::owner::Pacer = Box::new(|| std::future::ready(()).boxed_local());
            pollster::block_on(owner.run(commands, pace));
        };
        std::thread::Builder::new().name("setun".into()).spawn(run).map_err(Error::Thread)?;
        Ok(engine)
    }

    /// The engine, and the task that runs it: for a host with one thread, which spawns the
    /// task locally. `pace` is awaited between steps, so that the host can do something else.
    ///
    /// # Errors
    ///
    /// If the device is not here or has not enough memory.
    pub async fn build_local(
        self,
        pace: impl FnMut() -> LocalBoxFuture<'static, ()> + 'static,
    ) -> Result<(Engine, LocalBoxFuture<'static, ()>), Error> {
        let (engine, owner, commands) = self.start().await?;
        Ok((engine, owner.run(commands, Box::new(pace)).boxed_local()))
    }

    async fn start(self) -> Result<(Engine, Owner, UnboundedReceiver<Command>), Error> {
        let begun = Instant::now();
        let Loaded { about, sketch, placed, again } = load_onto(self.model, self.options).await?;
        let LoadedModel { model, backend, level, threads, head, weight_bytes, report: devices } =
            placed;
        let About { name, config, tokenizer, template, defaults, load_seconds } = about;
        // A model that was read while it was loaded counts its time itself.
        let load_seconds = load_seconds.max(begun.elapsed().as_secs_f64());
        let report = Report { backend, level, model: name, load_seconds };
        let shared = Arc::new(Shared {
            tokenizer,
            template,
            defaults,
            eos_tokens: config.eos_tokens,
            context_length: model.context_length(),
            vocab_size: model.vocab_size(),
            weight_bytes,
            head,
            threads,
            devices,
            sketch,
            options: self.options,
            report: report.clone(),
        });
        let context = model.context_length().div_ceil(model.block_positions());
        let blocks = context.saturating_mul(self.contexts);
        let owner = Owner::new(model, report, blocks);
        let owner = match again {
            Some(again) => owner.with_revival(Box::new(again)),
            None => owner,
        };
        let (commands, receiver) = unbounded();
        Ok((Engine { commands, shared }, owner, receiver))
    }
}

//! How an engine starts.

#[cfg(all(feature = "config", not(target_family = "wasm")))]
mod configured;
mod devices;
mod draft;
mod memory;
mod source;
mod streams;

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use futures::{
    channel::{
        mpsc::{UnboundedReceiver, unbounded},
        oneshot,
    },
    future::{FutureExt, LocalBoxFuture, join_all},
};
use web_time::Instant;

use super::{Engine, Handle, Shared, Unless};
use crate::{
    device::{CacheType, Device, DeviceOptions, DeviceReport, HeadType, LoadedModel},
    error::Error,
    input::ModelInput,
    options::GenerateOptions,
    own_model::OwnModel,
    owner::{Command, Limits, Owner},
    pressure::SharedWatch,
    sequence::Report,
    stream::{BackPressure, DEFAULT_BUFFER},
};
use memory::max_blocks;
use source::{Facts, Source};

/// What a builder begins with.
pub(crate) mod defaults {
    /// Whole contexts that the cache may grow to.
    pub(crate) const CONTEXTS: usize = 8;

    /// Generations that run at once.
    pub(crate) const STREAMS: usize = 64;

    /// Requests that wait at once.
    pub(crate) const WAITING: usize = 1024;
}

/// Makes an [`Engine`]. See [`Engine::builder`].
#[must_use]
pub struct EngineBuilder {
    source: Source,
    draft: Option<Source>,
    options: DeviceOptions,
    contexts: usize,
    prefix_positions: Option<usize>,
    streams: usize,
    waiting: usize,
    wait: Duration,
    fallbacks: Vec<Device>,
    memory_fraction: Option<f64>,
    context_length: Option<usize>,
    buffer: usize,
    back_pressure: BackPressure,
    unless: Unless,
    sampling: GenerateOptions, // of which the numbers of sampling count
    prefetch: Option<usize>,
    watch: Option<(SharedWatch, Duration)>,
    profiled: bool,
    timeline: bool,
}

impl EngineBuilder {
    pub(super) fn new(model: ModelInput) -> Self {
        Self::of(Source::Files(model))
    }

    pub(super) fn own(model: OwnModel) -> Self {
        Self::of(Source::Own(Box::new(model)))
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            draft: None,
            options: DeviceOptions::default(),
            contexts: defaults::CONTEXTS,
            prefix_positions: None,
            streams: defaults::STREAMS,
            waiting: defaults::WAITING,
            wait: Duration::ZERO,
            fallbacks: vec![],
            memory_fraction: None,
            context_length: None,
            buffer: DEFAULT_BUFFER,
            back_pressure: BackPressure::Pause,
            unless: Unless::default(),
            sampling: GenerateOptions::default(),
            prefetch: None,
            watch: None,
            profiled: false,
            timeline: false,
        }
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

    /// Whole contexts that the cache may grow to. Generations whose tokens do not fit all at once
    /// wait, or give up their memory to others and begin again from their tokens, which changes
    /// no text. Default: 8. Memory is taken as it is used.
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.contexts = contexts.max(1);
        self
    }

    /// Positions that stay in the cache after their generation, least lately used ones going
    /// first, so that a prompt that begins as another did, or as a conversation, is computed from
    /// where they differ. 0 keeps none. They are part of the [`contexts`](Self::contexts) and make
    /// room for what runs. Default: one context.
    pub fn prefix_positions(mut self, positions: usize) -> Self {
        self.prefix_positions = Some(positions);
        self
    }

    /// Generations that run at once, on each device: the largest batch. Others wait. Default: 64.
    pub fn streams(mut self, streams: usize) -> Self {
        self.streams = streams.max(1);
        self
    }

    /// Requests that wait at once, for each device; one more is refused
    /// ([`Error::Busy`]). Default: 1024.
    pub fn queue(mut self, requests: usize) -> Self {
        self.waiting = requests.max(1);
        self
    }

    /// Time that an idle engine waits for more requests after the first, so that they begin in one
    /// batch. Default: none.
    pub fn batch_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Starts the engine on a thread of its own; with [`Device::Each`] on one for each device.
    ///
    /// # Errors
    ///
    /// If the device is not here or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn build(self) -> Result<Engine, Error> {
        let (engine, owners) = pollster::block_on(self.start())?;
        for (owner, commands) in owners {
            let run = move || {
                let pace: crate::owner::Pacer = Box::new(|time| match time {
                    Duration::ZERO => std::future::ready(()).boxed_local(),
                    time => futures_timer::Delay::new(time).boxed_local(),
                });
                pollster::block_on(owner.run(commands, pace));
            };
            let thread = std::thread::Builder::new().name("setun".into()).spawn(run);
            let mut running =
                engine.shared.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            running.push(thread.map_err(Error::Thread)?);
        }
        Ok(engine)
    }

    /// The engine, and the task that runs it: for a host with one thread, which spawns the
    /// task locally. `pace` is awaited between steps, with no time, so that the host can do
    /// something else; and where nothing is to be done for some time, with that.
    ///
    /// # Errors
    ///
    /// If the device is not here or has not enough memory.
    pub async fn build_local(
        self,
        pace: impl FnMut(Duration) -> LocalBoxFuture<'static, ()> + 'static,
    ) -> Result<(Engine, LocalBoxFuture<'static, ()>), Error> {
        let (engine, owners) = self.start().await?;
        let pace = Rc::new(RefCell::new(pace));
        let runs = owners.into_iter().map(|(owner, commands)| {
            let pace = Rc::clone(&pace);
            owner.run(commands, Box::new(move |time| (pace.borrow_mut())(time)))
        });
        let runs: Vec<_> = runs.collect();
        Ok((engine, join_all(runs).map(drop).boxed_local()))
    }

    async fn start(self) -> Result<(Engine, Owners), Error> {
        let begun = Instant::now();
        let Self { source, options, fallbacks, prefetch, .. } = self;
        if let (Source::Files(model), Some(bytes)) = (&source, prefetch) {
            model.prefetch(bytes).await;
        }
        let (facts, loaded, options, failed) = source.load(options, fallbacks).await?;
        let drafts = draft::load(self.draft, &options, &loaded).await?;
        let seconds = facts.load_seconds.max(begun.elapsed().as_secs_f64());
        let Some(mut shared) = shared(facts, &loaded, options, seconds) else {
            let (found, expected) = ("none".into(), "a device or more".into());
            return Err(Error::BadOption { option: "device", found, expected });
        };
        for (device, error) in &failed {
            shared.devices.add_failed(device, error);
        }
        (shared.streams, shared.max_waiting) = (self.streams, self.waiting);
        (shared.buffer, shared.back_pressure) = (self.buffer, self.back_pressure);
        (shared.unless, shared.defaults) = (self.unless, self.sampling.over(&shared.defaults));
        let most = self.context_length.unwrap_or(usize::MAX);
        shared.context_length = shared.context_length.min(most);
        let shared = Arc::new(shared);
        let watch = self.watch;
        let timeline = self.timeline.then(Instant::now);
        let (mut owners, mut handles) = (vec![], vec![]);
        for ((placed, again), draft) in loaded.into_iter().zip(drafts) {
            let beside = draft::bytes(draft.as_ref());
            let most = max_blocks(self.memory_fraction, &placed, shared.context_length, beside)?;
            let (commands, receiver) = unbounded();
            let LoadedModel { model, backend, level, .. } = placed;
            let report = Report { backend, level, ..shared.report.clone() };
            let context = shared.context_length.div_ceil(model.block_positions());
            let prefix = self.prefix_positions.map(|count| count.div_ceil(model.block_positions()));
            let limits = Limits {
                blocks: context.saturating_mul(self.contexts).min(most),
                min_blocks: context,
                prefix_blocks: prefix.unwrap_or(context),
                streams: self.streams.min(model.max_rows()),
                wait: self.wait,
            };
            let block_positions = model.block_positions();
            let owner = Owner::new(model, report, limits);
            let owner = match draft {
                Some(draft) => draft::attach(owner, draft, &limits, block_positions)?,
                None => owner,
            };
            let owner = match again {
                Some(again) => owner.with_revival(Box::new(again)),
                None => owner,
            };
            let owner = match &watch {
                Some((watch, every)) => owner.with_watch(watch.clone(), *every),
                None => owner,
            };
            owners.push((owner, receiver));
            handles.push(Handle::new(commands));
        }
        if self.profiled || self.timeline {
            for handle in &handles {
                let (reply, _) = oneshot::channel();
                handle.send(Command::Profile { profiled: true, timeline, reply })?;
            }
        }
        Ok((Engine { owners: handles.into(), shared }, owners))
    }
}

/// Owners, and where they hear what to do.
type Owners = Vec<(Owner, UnboundedReceiver<Command>)>;

/// What is the same for all owners; none without any.
fn shared(
    facts: Facts,
    loaded: &[source::Placed],
    options: DeviceOptions,
    load_seconds: f64,
) -> Option<Shared> {
    let (first, _) = loaded.first()?;
    let levels: Vec<_> = loaded.iter().map(|(placed, _)| placed.level.as_str()).collect();
    let devices = loaded.iter().flat_map(|(placed, _)| placed.report.devices.clone()).collect();
    let report = Report {
        backend: if loaded.len() > 1 { "each" } else { first.backend },
        level: levels.join(", "),
        model: facts.name,
        load_seconds,
    };
    Some(Shared {
        tokenizer: facts.tokenizer,
        template: facts.template,
        defaults: facts.defaults,
        eos_tokens: facts.eos_tokens,
        context_length: first.model.context_length(),
        vocab_size: first.model.vocab_size(),
        weight_bytes: loaded.iter().map(|(placed, _)| placed.weight_bytes).sum(),
        head: first.head,
        threads: loaded.iter().map(|(placed, _)| placed.threads).sum(),
        streams: defaults::STREAMS,
        max_waiting: defaults::WAITING,
        buffer: DEFAULT_BUFFER,
        back_pressure: BackPressure::Pause,
        unless: Unless::default(),
        devices: DeviceReport { devices },
        sketch: facts.sketch,
        options,
        report,
        #[cfg(feature = "grammar")]
        vocabulary: std::sync::OnceLock::new(),
        #[cfg(not(target_family = "wasm"))]
        running: std::sync::Mutex::default(),
    })
}

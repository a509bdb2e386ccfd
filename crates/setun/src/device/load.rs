//! Moving a model to its device.

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_cpu::{CpuBackend, CpuOptions, Level};
use setun_engine::Error as EngineError;
use setun_model::{BLOCK_POSITIONS, LayerRange, Layout, MaybeSend, Model as Forward, ModelError};
use setun_ops::{
    Backend, CacheSpec, ScalarBackend, WeightId, WeightSpec,
    weight::{DenseKind, WeightKind},
};

#[cfg(feature = "gpu")]
use super::gpu;
use super::{
    Device, DeviceOptions, DeviceReport, GpuApi, HeadType, SCALAR,
    again::Again,
    auto,
    open::{Opened, Taker},
    split, unavailable,
};
use crate::{
    error::{Error, ErrorCode},
    input::ModelInput,
    load::About,
    reader::Sketch,
};

/// Bytes of a table from which on it is screened by default. The smallest one measured, of 2 MB,
/// gains by it (`docs/performance.md`); far smaller ones are no large part of a step.
const SCREEN_PAYS_BYTES: usize = 1 << 20;

/// A model on its device.
pub struct LoadedModel {
    /// Logits for batches.
    pub model: Box<dyn Forward>,
    /// The device that runs, by its name even where it was chosen.
    pub device: Device,
    /// What it is called.
    pub backend: &'static str,
    /// Its level, or its own name.
    pub level: String,
    /// Threads that run.
    pub threads: usize,
    /// How the head is kept: what [`HeadType::Auto`] came to.
    pub head: HeadType,
    /// Bytes of the weights, as they are kept.
    pub weight_bytes: usize,
    /// Why this device runs.
    pub report: DeviceReport,
}

/// A model on its device, with all that an engine wants to know of it.
pub(crate) struct Loaded {
    pub(crate) about: About,
    pub(crate) sketch: Sketch,
    pub(crate) placed: LoadedModel,
    /// How to load it once more; none where its bytes are gone.
    pub(crate) again: Option<Again>,
}

/// How a head is kept with some options: what [`HeadType::Auto`] comes to on a processor.
pub(crate) fn head_type(
    layout: &Layout,
    kinds: &[WeightKind],
    options: &DeviceOptions,
) -> HeadType {
    let pays = level(&options.device).is_some() && float_bytes(layout, kinds) >= SCREEN_PAYS_BYTES;
    match options.head {
        HeadType::Auto if pays => HeadType::Screened,
        HeadType::Auto => HeadType::Stored,
        head => head,
    }
}

/// Bytes of the head's table, where its elements are floats.
fn float_bytes(layout: &Layout, kinds: &[WeightKind]) -> usize {
    let head = layout.head.0 as usize;
    let WeightSpec::Dense { rows, columns } = layout.specs[head] else { return 0 };
    let element = match kinds[head] {
        WeightKind::Dense(DenseKind::F32) => 4,
        WeightKind::Dense(DenseKind::F16 | DenseKind::Bf16) => 2,
        _ => 0,
    };
    rows * columns * element
}

/// The level of a device; none for the definitions and for GPUs.
fn level(device: &Device) -> Option<Level> {
    match device {
        Device::Scalar | Device::Gpu(_) | Device::Each(_) | Device::Split(_) => None,
        Device::Level(level) => Some(*level),
        Device::Auto | Device::Cpu => Level::available().first().copied(),
    }
}

/// Moves a model to a device. Boxed: every caller would have its own copy of the code.
pub(crate) fn load_onto(
    model: ModelInput,
    options: DeviceOptions,
) -> LocalBoxFuture<'static, Result<Loaded, Error>> {
    load(model, options).boxed_local()
}

async fn load(mut model: ModelInput, options: DeviceOptions) -> Result<Loaded, Error> {
    if let Some(threads) = options.threads.filter(|&threads| threads == 0 || threads > 1024) {
        let (found, expected) = (threads.to_string(), "1 to 1024".into());
        return Err(EngineError::BadOption { option: "threads", found, expected }.into());
    }
    let sketch = model.sketch()?.with_head(options.head);
    let place = Place::new(&sketch, options);
    let placed = match &place.options.device {
        Device::Auto => load_auto(&mut model, &sketch, &place).await?,
        Device::Split(shares) => split::load(&mut model, &sketch, &place, shares, false).await?,
        _ => {
            let (opened, report) = open(&sketch, &place).await?;
            fill(&mut model, opened, report, false).await?
        }
    };
    let (about, origin) = model.into_parts();
    let options = DeviceOptions { device: placed.device.clone(), ..place.options };
    let again = origin.map(|origin| Again::new(origin, options));
    Ok(Loaded { about, sketch, placed, again })
}

/// Moves a model to the device that suits it best. What a GPU cannot hold the processor takes.
async fn load_auto(
    model: &mut ModelInput,
    sketch: &Sketch,
    place: &Place,
) -> Result<LoadedModel, Error> {
    let (opened, report) = auto::open(sketch, place).await?;
    let gpu = GpuApi::ALL.into_iter().find(|api| api.name() == opened.backend);
    let failed = match (fill(model, opened, report.clone(), gpu.is_some()).await, gpu) {
        (Err(error), Some(gpu)) if is_of_device(&error) => (error, gpu),
        (placed, _) => return placed,
    };
    let (error, gpu) = failed;
    if error.code() == ErrorCode::OutOfMemory {
        model.rewind().await?;
        let shares = [(Device::Cpu, 0), (Device::Gpu(gpu), 0)];
        match split::load(model, sketch, place, &shares, true).await {
            Ok(placed) => return Ok(placed),
            Err(failed)
                if is_of_device(&failed) || failed.code() == ErrorCode::BackendUnavailable => {}
            Err(failed) => return Err(failed),
        }
    }
    model.rewind().await?;
    let opened = open_cpu(sketch, place)?;
    let report = report.fallen_back(error.to_string(), &opened.level);
    fill(model, opened, report, false).await
}

/// What [`load_onto`] would choose, without the weights.
pub(crate) async fn probe(sketch: &Sketch, options: DeviceOptions) -> Result<DeviceReport, Error> {
    let sketch = sketch.clone().with_head(options.head);
    open(&sketch, &Place::new(&sketch, options)).await.map(|(_, report)| report)
}

/// Whether an error tells of a device, and not of the model.
pub(super) fn is_of_device(error: &Error) -> bool {
    matches!(error.code(), ErrorCode::OutOfMemory | ErrorCode::DeviceLost)
}

/// Opens the device that the options name, or chooses one.
async fn open(sketch: &Sketch, place: &Place) -> Result<(Opened, DeviceReport), Error> {
    match &place.options.device {
        Device::Auto => auto::open(sketch, place).await,
        Device::Each(_) | Device::Split(_) => {
            let (found, expected) = (place.options.device.to_string(), "one device".into());
            Err(EngineError::BadOption { option: "device", found, expected }.into())
        }
        _ => {
            let opened = open_named(sketch, place).await?;
            let report = DeviceReport::named(opened.backend, &opened.level);
            Ok((opened, report))
        }
    }
}

/// Opens the device that the options name: a GPU, a level of the processor, or the definitions.
/// Boxed, so that its code is there once.
pub(super) fn open_named<'a>(
    sketch: &'a Sketch,
    place: &'a Place,
) -> LocalBoxFuture<'a, Result<Opened, Error>> {
    let Device::Gpu(api) = place.options.device else {
        return ready(open_cpu(sketch, place)).boxed_local();
    };
    #[cfg(not(feature = "gpu"))]
    return ready(Err(unavailable(api.name(), "this build has no GPU".into()))).boxed_local();
    #[cfg(feature = "gpu")]
    async move {
        let wanted = gpu::Wanted { software: true, timed: false };
        let opened = gpu::open(api, sketch, &place.on_gpu(), wanted).await;
        opened.map_err(|refusal| refusal.into_error(api))
    }
    .boxed_local()
}

/// Opens a level of the processor, or the definitions.
pub(super) fn open_cpu(sketch: &Sketch, place: &Place) -> Result<Opened, Error> {
    let Some(level) = level(&place.options.device) else {
        return opened(ScalarBackend, (SCALAR, 1), sketch, place);
    };
    let backend = cpu(level, place)?;
    let threads = backend.threads();
    opened(backend, (level.name(), threads), sketch, place)
}

/// A level of the processor.
pub(super) fn cpu(level: Level, place: &Place) -> Result<CpuBackend, Error> {
    CpuBackend::new(CpuOptions { level: Some(level), threads: place.options.threads })
        .map_err(|error| unavailable(level.name(), error.to_string()))
}

fn opened<B>(
    backend: B,
    (level, threads): (&str, usize),
    sketch: &Sketch,
    place: &Place,
) -> Result<Opened, Error>
where
    B: Backend + MaybeSend + 'static,
    B::Weight: MaybeSend,
    B::Prepared: MaybeSend,
    B::Cache: MaybeSend,
{
    let taker = Taker::new(backend, sketch, place, place.head == HeadType::Screened)?;
    let (level, head) = (level.to_owned(), place.head);
    let device = match &place.options.device {
        Device::Auto => Device::Cpu,
        device => device.clone(),
    };
    Ok(Opened { device, backend: "cpu", level, threads, head, layer: None, taker, settled: None })
}

/// Moves the weights of a model, which are in memory or come from where it is read. Boxed, so that
/// its code is there once.
pub(super) fn fill(
    model: &mut ModelInput,
    opened: Opened,
    report: DeviceReport,
    keep: bool,
) -> LocalBoxFuture<'_, Result<LoadedModel, Error>> {
    let Opened { device, backend, level, threads, head, taker, settled, .. } = opened;
    let moving = async move {
        let Some(mut receiver) = taker.model() else {
            return Err(Error::Unfinished { model: level });
        };
        model.weights(keep, |id, weight| receiver.take(id, weight)).await?;
        let (model, weight_bytes) = receiver.finish()?;
        if let Some(settled) = settled {
            settled().await.map_err(ModelError::from)?;
        }
        Ok(LoadedModel { model, device, backend, level, threads, head, weight_bytes, report })
    };
    moving.boxed_local()
}

/// What is decided before the weights move.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) options: DeviceOptions,
    /// How the head is kept on this device.
    pub(super) head: HeadType,
    /// The layers that it takes; none where it takes all.
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "layers stay together"))]
    pub(super) part: Option<LayerRange>,
}

impl Place {
    pub(super) fn new(sketch: &Sketch, options: DeviceOptions) -> Self {
        let head = head_type(&sketch.layout, &sketch.kinds, &options);
        Self { options, head, part: None }
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
    pub(super) fn int8_head(&self, sketch: &Sketch) -> Option<WeightId> {
        (self.options.head == HeadType::Int8).then_some(sketch.layout.head)
    }

    pub(super) fn cache(&self, sketch: &Sketch) -> CacheSpec {
        CacheSpec {
            layers: sketch.config.layers,
            kv_heads: sketch.config.kv_heads,
            head_dim: sketch.config.head_dim,
            block_positions: BLOCK_POSITIONS,
            element: self.options.cache.into(),
        }
    }
}

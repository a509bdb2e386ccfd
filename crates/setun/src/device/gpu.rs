//! GPUs, by the interface that reaches them.

use futures::future::{FutureExt, LocalBoxFuture};
use setun_engine::{DeviceReport, DeviceVerdict, Error as EngineError, Verdict};
#[cfg(feature = "cuda")]
use setun_gpu::Cuda;
#[cfg(not(target_family = "wasm"))]
use setun_gpu::Limits;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
use setun_gpu::{Adapter, Api};
use setun_gpu::{Executor, GpuBackend, GpuError, PRECOMPILED_ROWS, SelfTestError, kernel::Table};
use setun_model::{
    MaybeSendBackend, ModelError,
    layout::Layout,
    plan::{HeadOutput, model_plan},
    sample,
};
use setun_ops::{
    CacheSpec, OpsError, RecurrentSpec, WeightId, comparison::Disagreement, op::ArgmaxCapacity,
};

#[cfg(not(target_family = "wasm"))]
use super::DeviceInfo;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
use super::opened::Settled;
use super::{
    Device, DeviceKind, GpuApi, HeadType,
    measure::layer_time,
    opened::{OpenedDevice, Receiver},
    placement::Placement,
    unavailable,
};
use crate::{error::Error, header::ModelHeader};

/// The place of the device among those of CUDA.
#[cfg(feature = "cuda")]
const FIRST: usize = 0;

/// Bytes that a software adapter copies at once, whose memory is the host's.
#[cfg(all(
    not(target_family = "wasm"),
    any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu")
))]
const SOFTWARE_COPY_BYTES: u64 = 1 << 26;

/// What is wanted of a device beside that it computes as it should.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Whether a software adapter will do.
    #[cfg_attr(
        not(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu")),
        allow(dead_code, reason = "CUDA has no software")
    )]
    pub(super) software: bool,
    /// Whether to time a layer.
    pub(super) timed: bool,
}

/// Why a device is not used.
pub(super) enum Refusal {
    /// There is none.
    Absent(GpuError),
    /// It is a processor: its name.
    #[cfg_attr(
        not(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu")),
        allow(dead_code, reason = "CUDA has no software")
    )]
    Software(String),
    /// It is there, and computes something else or gives no device: its name and how.
    Failed(String, String),
    /// It is there, and could not do what it was asked: its name and why.
    Device(String, OpsError),
    /// It is not its fault.
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Refusal {
    /// As an error, for who asked for the device by name.
    pub(super) fn into_error(self, api: GpuApi) -> Error {
        match self {
            Self::Absent(error) => unavailable(api.name(), error.to_string()),
            Self::Software(level) => unavailable(api.name(), format!("{level} is software")),
            Self::Failed(level, how) => unavailable(api.name(), format!("{level} {how}")),
            Self::Device(
                _,
                error @ (OpsError::OutOfMemory { .. } | OpsError::BeyondLimit { .. }),
            ) => ModelError::from(error).into(),
            Self::Device(level, error) => unavailable(api.name(), format!("{level}: {error}")),
            Self::Error(error) => error,
        }
    }

    /// As a line of a report, for who asked for any device.
    pub(super) fn into_verdict(self, api: GpuApi) -> Result<DeviceVerdict, Error> {
        let (level, verdict, reason) = match self {
            Self::Absent(error) => (String::new(), Verdict::Absent, error.to_string()),
            Self::Software(level) => (level, Verdict::Software, "a software adapter".to_owned()),
            Self::Failed(level, how) => (level, Verdict::Failed, how),
            Self::Device(level, error) => (level, Verdict::Failed, error.to_string()),
            Self::Error(error) => return Err(error),
        };
        let layer_microseconds = None;
        Ok(DeviceVerdict {
            device: DeviceKind::Gpu(api),
            level,
            verdict,
            reason,
            layer_microseconds,
        })
    }
}

/// All GPUs of each interface of this build.
#[cfg(not(target_family = "wasm"))]
pub(super) fn devices() -> Vec<DeviceInfo> {
    GpuApi::ALL.into_iter().flat_map(devices_of).collect()
}

#[cfg(not(target_family = "wasm"))]
fn devices_of(api: GpuApi) -> Vec<DeviceInfo> {
    let info = |level: String, is_best: bool, is_software: bool| {
        let note = match (is_best, is_software) {
            (false, _) => "not used: its API has a better one",
            (true, true) => "software, only by name",
            (true, false) => "chosen by auto if it is faster",
        };
        let kind = DeviceKind::Gpu(api);
        let select = is_best.then_some(Device::Gpu(api));
        DeviceInfo { select, device: kind, level, chosen: false, note }
    };
    #[cfg(feature = "cuda")]
    if api == GpuApi::Cuda {
        let names = Cuda::names().into_iter().enumerate();
        return names.map(|(ordinal, name)| info(name, ordinal == FIRST, false)).collect();
    }
    #[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
    if let Some(by) = by_wgpu(api) {
        let mut adapters = pollster::block_on(Adapter::list(by)).unwrap_or_default();
        adapters.sort_by_key(|adapter| !adapter.is_best);
        let adapters = adapters.into_iter();
        return adapters.map(|found| info(found.name, found.is_best, found.is_software)).collect();
    }
    vec![]
}

/// Measures the best GPU that an interface reaches: how fast it copies, and how fast it multiplies
/// integers. It takes 2 GiB of its memory, where it has them; a software adapter's copies are 64
/// MiB each.
///
/// # Errors
///
/// If this build or machine has none, or it cannot do what it is asked.
#[cfg(not(target_family = "wasm"))]
pub fn gpu_limits(api: GpuApi) -> Result<Limits, Error> {
    let found = limits_of(api);
    found.map_err(|refusal| refusal.into_error(api))
}

#[cfg(not(target_family = "wasm"))]
fn limits_of(api: GpuApi) -> Result<Limits, Refusal> {
    #[cfg(feature = "cuda")]
    if api == GpuApi::Cuda {
        let mut device = Cuda::new(FIRST).map_err(Refusal::Absent)?;
        let level = device.adapter().to_owned();
        let measured = pollster::block_on(Limits::measure(&mut device, setun_gpu::MAX_COPY_BYTES));
        return measured.map_err(|error| Refusal::Device(level, error));
    }
    #[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
    if let Some(by) = by_wgpu(api) {
        let adapter = pollster::block_on(Adapter::find(by)).map_err(Refusal::Absent)?;
        let bytes =
            if adapter.is_software() { SOFTWARE_COPY_BYTES } else { setun_gpu::MAX_COPY_BYTES };
        let level = adapter.name().to_owned();
        let opened = pollster::block_on(adapter.open());
        let mut device = opened.map_err(|error| Refusal::Failed(level, error.to_string()))?;
        let level = device.adapter().to_owned();
        let measured = pollster::block_on(Limits::measure(&mut device, bytes));
        return measured.map_err(|error| Refusal::Device(level, error));
    }
    Err(Refusal::Absent(GpuError::NotBuilt { wanted: api.name() }))
}

/// The interface as `wgpu` knows it; none of CUDA, and of those that this build lacks.
#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
fn by_wgpu(api: GpuApi) -> Option<Api> {
    match api {
        #[cfg(feature = "vulkan")]
        GpuApi::Vulkan => Some(Api::Vulkan),
        #[cfg(feature = "metal")]
        GpuApi::Metal => Some(Api::Metal),
        #[cfg(feature = "dx12")]
        GpuApi::Dx12 => Some(Api::Dx12),
        #[cfg(feature = "webgpu")]
        GpuApi::WebGpu => Some(Api::WebGpu),
        _ => None,
    }
}

/// Opens a GPU that computes as it should. Boxed: every caller would have its own copy of the code.
pub(super) fn open<'a>(
    api: GpuApi,
    header: &'a ModelHeader,
    placement: &'a Placement,
    wanted: Wanted,
) -> LocalBoxFuture<'a, Result<OpenedDevice, Refusal>> {
    open_by(api, header, placement, wanted).boxed_local()
}

async fn open_by(
    api: GpuApi,
    header: &ModelHeader,
    placement: &Placement,
    wanted: Wanted,
) -> Result<OpenedDevice, Refusal> {
    if placement.head == HeadType::Screened {
        let bad = EngineError::BadOption {
            option: "head",
            found: placement.head.name().into(),
            expected: "auto, stored or int8 on a GPU, which reads the whole table".into(),
        };
        return Err(Refusal::Error(bad.into()));
    }
    #[cfg(feature = "cuda")]
    if api == GpuApi::Cuda {
        let device = Cuda::new(FIRST).map_err(Refusal::Absent)?;
        let level = device.adapter().to_owned();
        return start(device, (api, level), header, placement, wanted.timed).await;
    }
    #[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
    if let Some(by) = by_wgpu(api) {
        return open_by_wgpu(by, api, header, placement, wanted).await;
    }
    Err(Refusal::Absent(GpuError::NotBuilt { wanted: api.name() }))
}

#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
async fn open_by_wgpu(
    by: Api,
    api: GpuApi,
    header: &ModelHeader,
    placement: &Placement,
    wanted: Wanted,
) -> Result<OpenedDevice, Refusal> {
    let adapter = Adapter::find(by).await.map_err(Refusal::Absent)?;
    if adapter.is_software() && !wanted.software {
        return Err(Refusal::Software(adapter.name().to_owned()));
    }
    let name = adapter.name().to_owned();
    let device = adapter.open().await;
    let device = device.map_err(|error| Refusal::Failed(name, error.to_string()))?;
    let (level, watch) = (device.adapter().to_owned(), device.health());
    let settled: Settled = Box::new(move || Box::pin(async move { watch.settled().await }));
    let opened = start(device, (api, level), header, placement, wanted.timed).await?;
    Ok(OpenedDevice { settled: Some(settled), ..opened })
}

/// Tests a device on a small model of the kind, and makes it ready to take the model.
async fn start<E>(
    device: E,
    (api, level): (GpuApi, String),
    header: &ModelHeader,
    placement: &Placement,
    timed: bool,
) -> Result<OpenedDevice, Refusal>
where
    E: Executor + 'static,
    GpuBackend<E>: MaybeSendBackend,
{
    let refused = |error: OpsError| Refusal::Device(level.clone(), error);
    let mut backend = GpuBackend::new(device).map_err(refused)?;
    // Boxed, so that their code is there once.
    test(&mut backend, &level, header, placement).boxed_local().await?;
    let mut layer = None;
    if timed {
        let time = layer_time(&mut backend, header, placement.cache(header)).boxed_local().await;
        layer = Some(time.map_err(refused)?);
    }
    precompile(&mut backend, header, placement).map_err(refused)?;
    let receiver = Receiver::new(backend, header, placement, true)?;
    let (device, backend, head) = (Device::Gpu(api), DeviceKind::Gpu(api), placement.head);
    let report = DeviceReport::named(backend, &level);
    Ok(OpenedDevice {
        device,
        backend,
        level,
        threads: 1,
        head,
        layer_time: layer,
        report,
        receiver,
        settled: None,
    })
}

/// Begins to compile what steps will need while the weights are on their way.
fn precompile<E: Executor>(
    backend: &mut GpuBackend<E>,
    header: &ModelHeader,
    placement: &Placement,
) -> Result<(), OpsError> {
    let mut layout = header.layout.clone();
    let cache = one_layer_of_each(&mut layout, placement.cache(header));
    let table = |id: WeightId| Table::of_kind(header.kinds[id.0 as usize]);
    for rows in PRECOMPILED_ROWS {
        for head in [BEST, CHOOSE] {
            let activation = header.config.activation;
            let plan = model_plan(&layout, activation, cache, rows, head, false)?.plan;
            backend.precompile(&plan, table)?;
        }
    }
    Ok(())
}

/// Leaves one layer of each kind, as the others have the same kernels.
fn one_layer_of_each(layout: &mut Layout, cache: CacheSpec) -> CacheSpec {
    let mut seen = vec![];
    layout.layers.retain(|layer| {
        let kind = std::mem::discriminant(&layer.mixer);
        let is_new = !seen.contains(&kind);
        seen.push(kind);
        is_new
    });
    let recurrent = cache.recurrent.map(|spec| RecurrentSpec { layers: 1, ..spec });
    CacheSpec { layers: 1, recurrent, ..cache }
}

/// Heads of steps that need no logits on the host, whatever their capacity.
const BEST: HeadOutput = HeadOutput::TopLogits { capacity: 16 };
const CHOOSE: HeadOutput = HeadOutput::Argmax { room: ArgmaxCapacity { touched: 16, biases: 0 } };

/// Compares a device with the definitions.
async fn test<E: Executor>(
    backend: &mut GpuBackend<E>,
    level: &str,
    header: &ModelHeader,
    placement: &Placement,
) -> Result<(), Refusal> {
    let ModelHeader { config, layout, kinds, .. } = header;
    let cases = sample::cases(layout, kinds, config.activation, placement.cache(header));
    let cases = cases.map_err(|error| Refusal::Error(ModelError::from(error).into()))?;
    let failed = |error| match error {
        SelfTestError::Ops(error) | SelfTestError::Disagreement(Disagreement::Refused(error)) => {
            Refusal::Device(level.to_owned(), error)
        }
        wrong => Refusal::Failed(level.to_owned(), format!("failed its self-test: {wrong}")),
    };
    for case in &cases {
        backend.self_test(case).await.map_err(failed)?;
    }
    backend.self_test_rows(&cases).await.map_err(failed)?;
    let choosing = sample::choosing(layout, kinds, config.activation, placement.cache(header));
    let choosing = choosing.map_err(|error| Refusal::Error(ModelError::from(error).into()))?;
    backend.self_test(&choosing).await.map_err(failed)?;
    Ok(())
}

//! GPUs, by the interface that reaches them.

#[cfg(feature = "cuda")]
use setun_gpu::Cuda;
#[cfg(any(feature = "vulkan", all(feature = "webgpu", target_family = "wasm")))]
use setun_gpu::{Adapter, Api};
use setun_gpu::{Executor, GpuBackend, GpuError, SelfTestError};
use setun_model::{MaybeSend, Model as Forward, Transformer, TransformerBuilder, sample};
use setun_ops::parity::Disagreement;

use super::{
    DeviceVerdict, GpuApi, HeadType, Verdict,
    load::Place,
    measure::layer_time,
    open::{Opened, Receiver, Settled},
    unavailable,
};
use crate::{error::Error, reader::Sketch};

/// The place of the device among those of CUDA.
#[cfg(feature = "cuda")]
const FIRST: usize = 0;

/// What is wanted of a device beside that it computes as it should.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Whether a processor that plays a GPU will do.
    pub(super) software: bool,
    /// Whether to time a layer.
    pub(super) timed: bool,
}

/// Why a device is not used.
pub(super) enum Refusal {
    /// There is none.
    Absent(GpuError),
    /// It is a processor: its name.
    Software(String),
    /// It is there, and failed: its name and how.
    Failed(String, String),
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
            Self::Error(error) => error,
        }
    }

    /// As a line of a report, for who asked for any device.
    pub(super) fn into_verdict(self, api: GpuApi) -> Result<DeviceVerdict, Error> {
        let (level, verdict, reason) = match self {
            Self::Absent(error) => (String::new(), Verdict::Absent, error.to_string()),
            Self::Software(level) => {
                (level, Verdict::Software, "a processor that plays a GPU".to_owned())
            }
            Self::Failed(level, how) => (level, Verdict::Failed, how),
            Self::Error(error) => return Err(error),
        };
        let layer_microseconds = None;
        Ok(DeviceVerdict { device: api.name(), level, verdict, reason, layer_microseconds })
    }
}

/// The best GPU of each interface of this build that has one.
#[cfg(not(target_family = "wasm"))]
pub(super) fn devices() -> Vec<super::DeviceInfo> {
    let info = |api: GpuApi| {
        let (level, is_software) = find(api).ok()?;
        let note = if is_software { "software, only by name" } else { "" };
        Some(super::DeviceInfo { device: api.name(), level, chosen: false, note })
    };
    GpuApi::ALL.into_iter().filter_map(info).collect()
}

/// The name of an interface's best GPU, and whether it is software.
#[cfg(not(target_family = "wasm"))]
fn find(api: GpuApi) -> Result<(String, bool), GpuError> {
    match api {
        #[cfg(feature = "cuda")]
        GpuApi::Cuda => Ok((Cuda::new(FIRST)?.adapter().to_owned(), false)),
        #[cfg(feature = "vulkan")]
        GpuApi::Vulkan => {
            let adapter = pollster::block_on(Adapter::find(Api::Vulkan))?;
            Ok((adapter.name().to_owned(), adapter.is_software()))
        }
        _ => Err(GpuError::NotBuilt { wanted: api.name() }),
    }
}

/// Opens a GPU that computes as it should.
pub(super) async fn open(
    api: GpuApi,
    sketch: &Sketch,
    place: Place,
    wanted: Wanted,
) -> Result<Opened, Refusal> {
    if place.head == HeadType::Screened {
        return Err(Refusal::Error(Error::BadOption {
            option: "head",
            found: place.head.name().into(),
            expected: "auto, stored or int8 on a GPU, which reads the whole table".into(),
        }));
    }
    match api {
        #[cfg(feature = "cuda")]
        GpuApi::Cuda => {
            let device = Cuda::new(FIRST).map_err(Refusal::Absent)?;
            let level = device.adapter().to_owned();
            start(device, (api, level), sketch, place, wanted.timed).await
        }
        #[cfg(feature = "vulkan")]
        GpuApi::Vulkan => open_by_wgpu(Api::Vulkan, api, sketch, place, wanted).await,
        #[cfg(all(feature = "webgpu", target_family = "wasm"))]
        GpuApi::WebGpu => open_by_wgpu(Api::WebGpu, api, sketch, place, wanted).await,
        _ => Err(Refusal::Absent(GpuError::NotBuilt { wanted: api.name() })),
    }
}

#[cfg(any(feature = "vulkan", all(feature = "webgpu", target_family = "wasm")))]
async fn open_by_wgpu(
    by: Api,
    api: GpuApi,
    sketch: &Sketch,
    place: Place,
    wanted: Wanted,
) -> Result<Opened, Refusal> {
    let adapter = Adapter::find(by).await.map_err(Refusal::Absent)?;
    if adapter.is_software() && !wanted.software {
        return Err(Refusal::Software(adapter.name().to_owned()));
    }
    let name = adapter.name().to_owned();
    let device = adapter.open().await;
    let device = device.map_err(|error| Refusal::Failed(name, error.to_string()))?;
    let (level, watch) = (device.adapter().to_owned(), device.watch());
    let settled: Settled = Box::new(move || Box::pin(async move { watch.settled().await }));
    let opened = start(device, (api, level), sketch, place, wanted.timed).await?;
    Ok(Opened { settled: Some(settled), ..opened })
}

/// Tests a device on a small model of the kind, and makes it ready to take the model.
async fn start<E>(
    device: E,
    (api, level): (GpuApi, String),
    sketch: &Sketch,
    place: Place,
    timed: bool,
) -> Result<Opened, Refusal>
where
    E: Executor + 'static,
    GpuBackend<E>: MaybeSend,
    TransformerBuilder<GpuBackend<E>>: MaybeSend,
    Transformer<GpuBackend<E>>: Forward,
{
    let failed = |how: String| Refusal::Failed(level.clone(), how);
    let mut backend = GpuBackend::new(device).map_err(|error| failed(error.to_string()))?;
    test(&mut backend, sketch, place).await.map_err(failed)?;
    let mut layer = None;
    if timed {
        let time = layer_time(&mut backend, sketch, place.cache(sketch)).await;
        layer = Some(time.map_err(|error| failed(error.to_string()))?);
    }
    let receiver = Box::new(Receiver::new(backend, sketch, &place, true)?);
    Ok(Opened { backend: api.name(), level, threads: 1, layer, receiver, settled: None })
}

/// Compares a device with the definitions; says how they differ.
async fn test<E: Executor>(
    backend: &mut GpuBackend<E>,
    sketch: &Sketch,
    place: Place,
) -> Result<(), String> {
    let Sketch { config, layout, kinds } = sketch;
    let cases = sample::cases(layout, kinds, config.activation, place.cache(sketch));
    for case in cases.map_err(|error| error.to_string())? {
        backend.self_test(&case).await.map_err(|error| match error {
            SelfTestError::Ops(error)
            | SelfTestError::Disagreement(Disagreement::Refused(error)) => error.to_string(),
            wrong => format!("failed its self-test: {wrong}"),
        })?;
    }
    Ok(())
}

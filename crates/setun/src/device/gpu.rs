//! GPUs, by the interface that reaches them.

#[cfg(feature = "cuda")]
use setun_gpu::Cuda;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
use setun_gpu::{Adapter, Api};
use setun_gpu::{Executor, GpuBackend, GpuError, SelfTestError};
use setun_model::{
    Model as Forward, ModelError, Transformer, sample, transformer::BLOCK_POSITIONS,
};
use setun_ops::{CacheSpec, parity::Disagreement};

use super::{
    GpuApi, HeadType,
    load::{LoadedModel, Place},
    unavailable,
};
use crate::{error::Error, model::Model};

/// The place of the device among those of CUDA.
#[cfg(feature = "cuda")]
const FIRST: usize = 0;

/// The best GPU of each interface of this build that has one.
#[cfg(not(target_family = "wasm"))]
pub(super) fn devices() -> Vec<super::DeviceInfo> {
    let info = |api: GpuApi| {
        let level = name(api).ok()?;
        Some(super::DeviceInfo { device: api.name(), level, chosen: false })
    };
    GpuApi::ALL.into_iter().filter_map(info).collect()
}

#[cfg(not(target_family = "wasm"))]
fn name(api: GpuApi) -> Result<String, GpuError> {
    match api {
        #[cfg(feature = "cuda")]
        GpuApi::Cuda => Ok(Cuda::new(FIRST)?.adapter().to_owned()),
        #[cfg(feature = "vulkan")]
        GpuApi::Vulkan => name_by_wgpu(Api::Vulkan),
        #[cfg(feature = "metal")]
        GpuApi::Metal => name_by_wgpu(Api::Metal),
        #[cfg(feature = "dx12")]
        GpuApi::Dx12 => name_by_wgpu(Api::Dx12),
        #[cfg(feature = "webgpu")]
        GpuApi::WebGpu => name_by_wgpu(Api::WebGpu),
        #[cfg_attr(
            all(
                feature = "cuda",
                feature = "vulkan",
                feature = "metal",
                feature = "dx12",
                feature = "webgpu"
            ),
            expect(unreachable_patterns, reason = "this build has all")
        )]
        _ => Err(GpuError::NotBuilt { wanted: api.name() }),
    }
}

#[cfg(all(
    not(target_family = "wasm"),
    any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu")
))]
fn name_by_wgpu(by: Api) -> Result<String, GpuError> {
    Ok(pollster::block_on(Adapter::find(by))?.name().to_owned())
}

/// Moves a model's weights to a GPU that computes as it should.
pub(super) async fn load(model: Model, api: GpuApi, place: Place) -> Result<LoadedModel, Error> {
    if place.head == HeadType::Screened {
        return Err(Error::BadOption {
            option: "head",
            found: place.head.name().into(),
            expected: "auto, stored or int8 on a GPU, which reads the whole table".into(),
        });
    }
    match api {
        #[cfg(feature = "cuda")]
        GpuApi::Cuda => {
            let device = Cuda::new(FIRST).map_err(|error| refused(api, &error))?;
            let level = device.adapter().to_owned();
            start(model, device, (api, level), place).await
        }
        #[cfg(feature = "vulkan")]
        GpuApi::Vulkan => load_by_wgpu(model, Api::Vulkan, api, place).await,
        #[cfg(feature = "metal")]
        GpuApi::Metal => load_by_wgpu(model, Api::Metal, api, place).await,
        #[cfg(feature = "dx12")]
        GpuApi::Dx12 => load_by_wgpu(model, Api::Dx12, api, place).await,
        #[cfg(feature = "webgpu")]
        GpuApi::WebGpu => load_by_wgpu(model, Api::WebGpu, api, place).await,
        #[cfg_attr(
            all(
                feature = "cuda",
                feature = "vulkan",
                feature = "metal",
                feature = "dx12",
                feature = "webgpu"
            ),
            expect(unreachable_patterns, reason = "this build has all")
        )]
        _ => Err(refused(api, &GpuError::NotBuilt { wanted: api.name() })),
    }
}

#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
async fn load_by_wgpu(
    model: Model,
    by: Api,
    api: GpuApi,
    place: Place,
) -> Result<LoadedModel, Error> {
    let adapter = Adapter::find(by).await.map_err(|error| refused(api, &error))?;
    let device = adapter.open().await.map_err(|error| refused(api, &error))?;
    let (level, watch) = (device.adapter().to_owned(), device.watch());
    let loaded = start(model, device, (api, level), place).await?;
    watch.settled().await.map_err(ModelError::from)?;
    Ok(loaded)
}

fn refused(api: GpuApi, error: &GpuError) -> Error {
    unavailable(api.name(), error.to_string())
}

/// Tests a device on a small model of the kind, then moves the model to it.
async fn start<E>(
    model: Model,
    device: E,
    (api, level): (GpuApi, String),
    place: Place,
) -> Result<LoadedModel, Error>
where
    E: Executor + 'static,
    Transformer<GpuBackend<E>>: Forward,
{
    let mut backend = GpuBackend::new(device).map_err(ModelError::from)?;
    let cache = CacheSpec {
        layers: model.config.layers,
        kv_heads: model.config.kv_heads,
        head_dim: model.config.head_dim,
        block_positions: BLOCK_POSITIONS,
        element: place.options.cache.into(),
    };
    let cases = sample::cases(&model.weights, model.config.activation, cache);
    let cases = cases.map_err(ModelError::from)?;
    let failed = |error| match error {
        SelfTestError::Ops(error) | SelfTestError::Disagreement(Disagreement::Refused(error)) => {
            Error::from(ModelError::from(error))
        }
        wrong => unavailable(api.name(), format!("{level} failed its self-test: {wrong}")),
    };
    for case in &cases {
        backend.self_test(case).await.map_err(failed)?;
    }
    backend.self_test_rows(&cases).await.map_err(failed)?;
    place.load(model, backend, (api.name(), level), 1)
}

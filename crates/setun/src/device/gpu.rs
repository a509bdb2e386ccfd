//! GPUs, by the interface that reaches them.

#[cfg(feature = "cuda")]
use setun_gpu::Cuda;
use setun_gpu::{Adapter, Executor, GpuBackend, GpuError};
use setun_model::{
    Model as Forward, ModelError, Transformer, sample, transformer::BLOCK_POSITIONS,
};
use setun_ops::CacheSpec;

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
        _ => Ok(pollster::block_on(find(api))?.name().to_owned()),
    }
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
    let refused = |error: GpuError| unavailable(api.name(), error.to_string());
    match api {
        #[cfg(feature = "cuda")]
        GpuApi::Cuda => {
            let device = Cuda::new(FIRST).map_err(refused)?;
            let level = device.adapter().to_owned();
            start(model, device, (api, level), place).await
        }
        _ => {
            let device = find(api).await.map_err(refused)?.open().await.map_err(refused)?;
            let (level, watch) = (device.adapter().to_owned(), device.watch());
            let loaded = start(model, device, (api, level), place).await?;
            watch.settled().await.map_err(ModelError::from)?;
            Ok(loaded)
        }
    }
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
    for case in cases.map_err(ModelError::from)? {
        backend.self_test(&case).await.map_err(|error| {
            unavailable(api.name(), format!("{level} failed its self-test: {error}"))
        })?;
    }
    place.load(model, backend, (api.name(), level), 1)
}

async fn find(api: GpuApi) -> Result<Adapter, GpuError> {
    match api {
        #[cfg(feature = "vulkan")]
        GpuApi::Vulkan => Adapter::find(setun_gpu::Api::Vulkan).await,
        #[cfg(all(feature = "webgpu", target_family = "wasm"))]
        GpuApi::WebGpu => Adapter::find(setun_gpu::Api::WebGpu).await,
        #[cfg(not(all(feature = "vulkan", feature = "webgpu", target_family = "wasm")))]
        _ => Err(GpuError::NotBuilt { wanted: api.name() }),
    }
}

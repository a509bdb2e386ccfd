//! GPUs, by the interface that reaches them.

use setun_gpu::{Adapter, GpuBackend, GpuError};
use setun_model::{ModelError, sample, transformer::BLOCK_POSITIONS};
use setun_ops::CacheSpec;

use super::{
    GpuApi, HeadType,
    load::{LoadedModel, Place},
    unavailable,
};
use crate::{error::Error, model::Model};

/// The best GPU of each interface of this build that has one.
#[cfg(not(target_family = "wasm"))]
pub(super) fn devices() -> Vec<super::DeviceInfo> {
    let info = |api: GpuApi| {
        let adapter = pollster::block_on(find(api)).ok()?;
        let level = adapter.name().to_owned();
        Some(super::DeviceInfo { device: api.name(), level, chosen: false })
    };
    GpuApi::ALL.into_iter().filter_map(info).collect()
}

/// Moves a model's weights to a GPU.
pub(super) async fn load(model: Model, api: GpuApi, place: Place) -> Result<LoadedModel, Error> {
    if place.head == HeadType::Screened {
        return Err(Error::BadOption {
            option: "head",
            found: place.head.name().into(),
            expected: "auto, stored or int8 on a GPU, which reads the whole table".into(),
        });
    }
    let refused = |error: GpuError| unavailable(api.name(), error.to_string());
    let device = find(api).await.map_err(refused)?.open().await.map_err(refused)?;
    let level = device.adapter().to_owned();
    let watch = device.watch();
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
    let loaded = place.load(model, backend, (api.name(), level), 1)?;
    watch.settled().await.map_err(ModelError::from)?;
    Ok(loaded)
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

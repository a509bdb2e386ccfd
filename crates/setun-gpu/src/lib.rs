//! The GPU backend of setun.
//!
//! A plan becomes a list of [launches](launch) over a device's memory; an [`Executor`] plays it and
//! knows nothing of models. [`GpuBackend`] is [`setun_ops::Backend`] over any executor.
//!
//! - Integer parts equal the definitions exactly; float parts lie within the class that each
//!   operation states, [`Agreement`](setun_ops::op::Agreement).
//! - What a row becomes does not depend on what else is in its step, on one device.
//! - During a step nothing is created: memory, kernels and bindings are made by `prepare`, or by
//!   the first step over a cache.

mod arena;
mod backend;
mod cache;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod error;
pub mod executor;
mod gpu_step;
pub mod kernel;
pub mod launch;
#[cfg(not(target_family = "wasm"))]
mod limits;
mod lowering;
mod op_by_op;
#[cfg(not(target_family = "wasm"))]
pub mod peak;
#[cfg(any(
    feature = "cuda",
    feature = "vulkan",
    feature = "metal",
    feature = "dx12",
    feature = "webgpu"
))]
mod pipeline_cache;
mod precompile;
#[cfg(feature = "testing")]
mod recorder;
mod recording;
mod self_test;
mod states;
mod step_inputs;
mod times;
mod weight;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
mod wgpu;

pub use backend::GpuBackend;
pub use cache::GpuCache;
#[cfg(feature = "cuda")]
pub use cuda::Cuda;
pub use error::GpuError;
pub use executor::Executor;
pub use gpu_step::GpuStep;
#[cfg(not(target_family = "wasm"))]
pub use limits::{Limits, MAX_COPY_BYTES};
pub use lowering::Fusion;
pub use precompile::{PRECOMPILED_ROWS, kernels_of};
#[cfg(feature = "testing")]
pub use recorder::{RecordedCalls, Recorder};
pub use self_test::SelfTestError;
pub use weight::GpuWeight;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "dx12", feature = "webgpu"))]
pub use wgpu::{Adapter, Api, DeviceHealth, ListedAdapter, Wgpu, WgpuBuffer};

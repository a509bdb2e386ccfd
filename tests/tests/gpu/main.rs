//! Models and the engine on the system's Vulkan device.

mod codes;
mod estimates;
mod families;
mod faults;
mod hybrid;
mod models;
mod self_test;
mod split;
mod steps;
mod texts;

use setun_gpu::{Api, GpuBackend, Wgpu};

/// The system's device.
fn device() -> Wgpu {
    pollster::block_on(Wgpu::open(Api::Vulkan)).expect("a Vulkan device")
}

fn gpu() -> GpuBackend<Wgpu> {
    GpuBackend::new(device()).expect("memory")
}

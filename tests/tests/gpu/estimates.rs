//! Estimates of GPU memory against the buffers that are requested.

use setun::{Device, DeviceOptions, GpuApi, Model, ModelReader, ops::Backend};
use setun_gpu::{GpuBackend, Recorder};
use setun_tests::fixture;

use super::device;

#[test]
fn weights_take_the_buffers_that_are_estimated() {
    for name in [
        "../../crates/setun/embedded/stories.safetensors",
        "golden/bitnet-h320-f432/packed",
        "golden/llama-rmsnorm-bias/packed",
        "families/qwen3-groups",
        "gguf/i2_s.gguf",
        "gguf/qwen3-q2_0.gguf",
        "setun/v1.setun",
    ] {
        let path = fixture(name);
        let options =
            DeviceOptions { device: Device::Gpu(GpuApi::Vulkan), ..DeviceOptions::default() };
        let reader = ModelReader::open(&path).expect("a model");
        let estimate = reader.header().estimate(options).expect("an estimate");
        let mut backend = GpuBackend::new(Recorder::new(device())).expect("memory");
        let before = backend.executor().taken;
        for weight in &Model::open(&path).expect("a model").weights().data {
            drop(backend.upload(weight.clone(), <_>::default()).expect("memory"));
        }
        assert_eq!(estimate.weights, backend.executor().taken - before, "{name}");
    }
}

//! Engines over several devices, all of them levels of the processor.

use setun::{
    CacheType, Device, DeviceKind, DeviceOptions, Engine, Error, ErrorCode, GenerateOptions,
    GpuApi, Model, ModelReader, Verdict,
};
use setun_tests::{fixture, run::devices};

const MODEL: &str = "golden/real-tinystories-1m";
const PROMPT: &str = "Once upon a time";

fn reader() -> ModelReader {
    ModelReader::open(fixture(MODEL)).expect("the story model")
}

fn layers() -> usize {
    reader().config().layers.len()
}

fn engine(device: Device) -> Result<Engine, Error> {
    Engine::builder(reader()).device(device).cache_type(CacheType::F16).build()
}

fn sampled(seed: u64) -> GenerateOptions {
    GenerateOptions::new().temperature(0.8).top_k(20).seed(seed).max_tokens(24)
}

fn tokens(engine: &Engine, seed: u64) -> Vec<u32> {
    engine.complete(PROMPT, sampled(seed)).expect("a text").tokens
}

#[test]
fn halves_and_thirds_generate_the_text_of_the_whole() {
    let expected = tokens(&engine(Device::Cpu).expect("an engine"), 1);
    let all = layers();
    let levels: Vec<_> = devices().into_iter().filter(|device| *device != Device::Cpu).collect();
    for (index, level) in levels.iter().enumerate() {
        let other = &levels[(index + 1) % levels.len()];
        for shares in [
            vec![(level.clone(), all / 2), (other.clone(), all - all / 2)],
            vec![(level.clone(), 1), (other.clone(), all - 2), (level.clone(), 1)],
            vec![(level.clone(), 1), (other.clone(), 0)],
            vec![(level.clone(), all)],
        ] {
            let device = Device::Split(shares);
            assert_eq!(device.to_string().parse::<Device>().expect("its name"), device);
            let engine = engine(device.clone()).expect("an engine");
            assert_eq!(engine.backend(), DeviceKind::Split);
            assert_eq!(tokens(&engine, 1), expected, "{device}");
            let report = &engine.device_report().devices;
            assert!(report.iter().all(|found| found.verdict == Verdict::Chosen), "{report:?}");
        }
    }
}

#[test]
fn layers_that_do_not_add_up_are_an_error() {
    let all = layers();
    for shares in [
        vec![],
        vec![(Device::Cpu, all - 1)],
        vec![(Device::Cpu, all), (Device::Scalar, 1)],
        vec![(Device::Cpu, all + 1), (Device::Scalar, 0)],
        vec![(Device::Cpu, usize::MAX), (Device::Scalar, 2)],
        vec![(Device::Auto, all)],
        vec![(Device::Each(vec![Device::Cpu]), all)],
    ] {
        let error = engine(Device::Split(shares)).expect_err("they are too many or too few");
        assert_eq!(error.code(), ErrorCode::BadOption, "{error}");
    }
    let none = engine(Device::Each(vec![])).expect_err("no device");
    assert_eq!(none.code(), ErrorCode::BadOption);
    assert!(
        "split:cpu=two".parse::<Device>().is_err() && "each:cpu,gpu".parse::<Device>().is_err()
    );
}

/// In builds with CUDA and without.
#[test]
fn a_hybrid_model_does_not_run_by_cuda() {
    const LACKING: &str = "cuda does not compute recurrent layers yet";
    let reader = || ModelReader::open(fixture("families/qwen35-r1/hf")).expect("a hybrid model");
    let [vulkan, cuda] = [GpuApi::Vulkan, GpuApi::Cuda].map(Device::Gpu);
    for device in [
        cuda.clone(),
        Device::Split(vec![(Device::Cpu, 1), (cuda.clone(), 0)]),
        Device::Split(vec![(vulkan.clone(), 1), (cuda.clone(), 0)]),
        Device::Each(vec![Device::Cpu, cuda]),
    ] {
        let refused = Engine::builder(reader()).device(device.clone()).build();
        let refused = refused.expect_err("CUDA lacks its operations");
        assert_eq!(refused.code(), ErrorCode::BackendUnavailable, "{device}: {refused}");
        assert!(refused.to_string().contains(LACKING), "{device}: {refused}");
        let options = DeviceOptions { device, ..DeviceOptions::default() };
        let estimate = reader().header().estimate(options.clone());
        let is_each = matches!(options.device, Device::Each(_));
        assert!(is_each || estimate.is_err(), "{}", options.device);
    }
    let options = DeviceOptions { device: vulkan, ..DeviceOptions::default() };
    let estimate = reader().header().estimate(options).expect("an estimate");
    assert!(estimate.state > 0 && estimate.total() > estimate.weights + estimate.state);
    let engine = Engine::builder(reader()).device(Device::Auto).build().expect("an engine");
    assert_eq!(engine.device_report().warnings().count(), 0);
    let tested = pollster::block_on(engine.self_test()).expect("a test");
    assert!(tested.passed, "{}", tested.reason);
    assert_eq!(engine.complete(vec![1, 2, 3], sampled(1)).expect("a text").tokens.len(), 24);
}

#[test]
fn replicas_share_the_generations_and_give_the_same_texts() {
    let one = engine(Device::Cpu).expect("an engine");
    let expected: Vec<_> = (0..6).map(|seed| tokens(&one, seed)).collect();
    let each: Device = "each:cpu,cpu,scalar".parse().expect("devices");
    for several in [
        engine(each.clone()).expect("an engine"),
        Engine::builder(Model::open(fixture(MODEL)).expect("the story model"))
            .device(each)
            .build()
            .expect("an engine"),
    ] {
        assert_eq!(several.backend(), DeviceKind::Each);
        assert_eq!(several.device_report().devices.len(), 3);
        let streams: Vec<_> =
            (0..6).map(|seed| several.generate(PROMPT, sampled(seed)).expect("a stream")).collect();
        let found: Vec<_> = streams.into_iter().map(|s| s.wait().expect("a text")).collect();
        let levels: Vec<_> = found.iter().map(|text| text.done.level.clone()).collect();
        assert!(levels.iter().filter(|level| *level == "scalar").count() >= 1, "{levels:?}");
        assert!(levels.iter().any(|level| level != "scalar"), "{levels:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.tokens, *expected);
        }
        let memory = pollster::block_on(several.memory()).expect("an engine").weights();
        assert_eq!(memory, several.weight_bytes());
        assert!(memory > 2 * one.weight_bytes());
        let tested = pollster::block_on(several.self_test()).expect("a test");
        assert!(tested.passed, "{}", tested.reason);
    }
}

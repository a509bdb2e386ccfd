//! Engines on the system's Vulkan device: chosen or named, read as it goes, lost and made anew.
//!
//! One test runs at a time: a test takes away the device that was opened last.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    Device, DeviceKind, DeviceOptions, Engine, Error, ErrorCode, Event, GenerateOptions, GpuApi,
    HeadType, ModelBytes, ModelFolder, ModelReader, ModelSource, ReadRequest, Source, Verdict,
};
use setun_gpu::Wgpu;
use setun_tests::fixture;

const MODEL: &str = "golden/real-tinystories-1m";
const PROMPT: &str = "Once upon a time";
const VULKAN: Device = Device::Gpu(GpuApi::Vulkan);

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reader() -> ModelReader {
    ModelReader::open(fixture(MODEL)).expect("the story model")
}

fn greedy(tokens: usize) -> GenerateOptions {
    GenerateOptions::new().temperature(0.0).max_tokens(tokens)
}

/// A model's files, with a count of how often they are read from the beginning; later times fail
/// where they may not.
struct Counted {
    files: ModelFolder,
    begun: Arc<AtomicUsize>,
    most: usize,
}

impl Counted {
    async fn reader(most: usize) -> (ModelReader, Arc<AtomicUsize>) {
        let begun = Arc::new(AtomicUsize::new(0));
        let files = ModelFolder::new(fixture(MODEL));
        let bytes = Self { files, begun: Arc::clone(&begun), most };
        let reader = ModelReader::new(ModelSource::new(Source::Folder, "counted", bytes)).await;
        (reader.expect("the story model"), begun)
    }
}

impl ModelBytes for Counted {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        if self.begun.load(Ordering::Relaxed) > self.most {
            bytes.clear();
            return ready(Ok(false)).boxed_local();
        }
        ModelBytes::read(&mut self.files, want, bytes)
    }

    fn rewind(&mut self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn software_is_chosen_by_name_only() {
    let _alone = alone();
    let engine = Engine::builder(reader()).build().expect("an engine");
    let report = engine.device_report();
    assert_eq!(
        (report.devices[0].device, report.devices[0].verdict),
        (DeviceKind::Cpu, Verdict::Chosen)
    );
    let vulkan = report
        .devices
        .iter()
        .find(|found| found.device == DeviceKind::Gpu(GpuApi::Vulkan))
        .expect("it is here");
    assert_eq!(vulkan.verdict, Verdict::Software);
    assert!(!vulkan.level.is_empty() && vulkan.layer_microseconds.is_none());
    assert_eq!(report.warnings().count(), 0);

    let engine = Engine::builder(reader()).device(VULKAN).build().expect("an engine");
    assert_eq!(engine.backend(), DeviceKind::Gpu(GpuApi::Vulkan));
    assert_eq!(engine.device_report().devices.len(), 1);
}

#[test]
fn the_fastest_device_is_chosen_by_measuring() {
    let _alone = alone();
    let engine = Engine::builder(reader()).software(true).build().expect("an engine");
    let devices = &engine.device_report().devices;
    let time = |index: usize| devices[index].layer_microseconds.expect("it was timed");
    assert_eq!(devices.len(), 2, "{devices:?}");
    assert_eq!(
        devices.iter().map(|found| found.verdict).collect::<Vec<_>>(),
        [Verdict::Chosen, Verdict::Slower]
    );
    assert!(time(0) <= time(1), "{devices:?}");
    assert_eq!(engine.backend(), devices[0].device);
}

#[test]
fn devices_pass_their_self_test_while_they_run() {
    let _alone = alone();
    for device in [Device::Cpu, VULKAN] {
        let engine = Engine::builder(reader()).device(device.clone()).build().expect("an engine");
        let stream = engine.generate(PROMPT, greedy(8)).expect("a stream");
        let tested = pollster::block_on(engine.self_test()).expect("a test");
        assert!(tested.passed, "{device}: {}", tested.reason);
        assert_eq!(tested.device, engine.backend());
        assert_eq!(stream.wait().expect("a text").tokens.len(), 8);
    }
}

/// The device goes away between two tokens: the model is read again, and the text is that of a
/// device that stayed.
#[test]
fn a_generation_outlives_its_device() {
    let _alone = alone();
    let expected = Engine::builder(reader()).device(VULKAN).build().expect("an engine");
    let expected = expected.complete(PROMPT, greedy(24)).expect("a text");
    let (reader, begun) = pollster::block_on(Counted::reader(usize::MAX));
    let engine = Engine::builder(reader).device(VULKAN).build().expect("an engine");
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    let mut tokens = vec![];
    for event in engine.generate(PROMPT, greedy(24)).expect("a stream").blocking() {
        if let Event::Text(delta) = event.expect("a token") {
            tokens.push(delta.token);
        }
        if tokens.len() == 5 {
            Wgpu::latest().expect("a device").destroy();
        }
    }
    assert_eq!(tokens, expected.tokens);
    assert_eq!(begun.load(Ordering::Relaxed), 2, "it was read once more");
    assert_eq!(engine.complete(PROMPT, greedy(24)).expect("a text").tokens, expected.tokens);
}

#[test]
fn a_model_that_cannot_be_read_again_ends_with_a_typed_error() {
    let _alone = alone();
    let (reader, _) = pollster::block_on(Counted::reader(1));
    let engine = Engine::builder(reader).device(VULKAN).build().expect("an engine");
    engine.complete(PROMPT, greedy(2)).expect("a text");
    Wgpu::latest().expect("a device").destroy();
    let error = engine.complete(PROMPT, greedy(2)).expect_err("its bytes are gone");
    assert_eq!(error.code(), ErrorCode::NotFound, "{error}");
}

/// What only one kind of device can do is no error where any may run.
#[test]
fn the_head_says_where_it_can_be() {
    let _alone = alone();
    let screened = Engine::builder(reader()).software(true).head_type(HeadType::Screened);
    let screened = screened.build().expect("the processor can");
    assert_eq!((screened.backend(), screened.head_type()), (DeviceKind::Cpu, HeadType::Screened));

    let int8 = |device| Engine::builder(reader()).device(device).head_type(HeadType::Int8).build();
    let [cpu, gpu] = [Device::Cpu, VULKAN].map(|device| int8(device).expect("an engine"));
    let reported = [&cpu, &gpu].map(|engine| engine.complete(PROMPT, greedy(8)).expect("a text"));
    assert_eq!(reported[0].tokens, reported[1].tokens);
    for engine in [cpu, gpu] {
        assert!(pollster::block_on(engine.self_test()).expect("a test").passed);
    }
}

#[test]
fn the_plan_is_shown_without_the_weights() {
    let _alone = alone();
    let reader = reader();
    let options = DeviceOptions { software: true, ..DeviceOptions::default() };
    let report = pollster::block_on(reader.probe(options)).expect("a report");
    assert_eq!(report.devices.len(), 2);
    assert_eq!(report.devices[0].verdict, Verdict::Chosen);
}

/// The processor and the GPU each have some layers; what the GPU cannot hold the processor takes.
#[test]
fn layers_are_shared_with_the_processor() {
    let _alone = alone();
    let layers = reader().config().layers.len();
    let engine = |device| Engine::builder(reader()).device(device).build().expect("an engine");
    let expected = engine(Device::Cpu).complete(PROMPT, greedy(8)).expect("a text");
    for shares in [
        vec![(Device::Cpu, layers / 2), (VULKAN, layers - layers / 2)],
        vec![(VULKAN, 1), (Device::Cpu, layers - 1)],
        vec![(Device::Cpu, 0), (VULKAN, 0)],
    ] {
        let device = Device::Split(shares);
        let engine = engine(device.clone());
        let found = engine.complete(PROMPT, greedy(8)).expect("a text");
        assert_eq!(found.tokens, expected.tokens, "{device}");
    }
}

#[test]
fn what_the_gpu_cannot_hold_the_processor_takes() {
    let _alone = alone();
    let layers = reader().config().layers.len();
    let shared = |limit| {
        Wgpu::limit_memory(limit);
        let device = Device::Split(vec![(Device::Cpu, 0), (VULKAN, 0)]);
        let engine = Engine::builder(reader()).device(device).build();
        Wgpu::limit_memory(u64::MAX);
        let engine = engine.expect("an engine");
        let found = engine.complete(PROMPT, greedy(8)).expect("a text").tokens;
        let reasons = engine.device_report().devices.iter().map(|found| found.reason.clone());
        (reasons.collect::<Vec<_>>(), found)
    };
    let engine = Engine::builder(reader()).device(VULKAN).build().expect("an engine");
    let (needed, weights) = (Wgpu::latest_bytes(), engine.weight_bytes() as u64);
    let (all, expected) = shared(u64::MAX);
    assert_eq!(all, [format!("{layers} of {layers} layers")]);
    let mut cuts = vec![];
    for share in 1..6 {
        let (parts, found) = shared(needed - weights * share / 8);
        assert_eq!(found, expected, "{parts:?}");
        cuts.push(parts.len());
    }
    assert!(cuts.contains(&2), "{cuts:?}");
    let (none, _) = shared(weights / 64);
    assert_eq!(none, [format!("{layers} of {layers} layers")], "the processor has them");
}

#[test]
fn a_device_requested_by_name_reports_that_its_memory_is_too_small() {
    let _alone = alone();
    Wgpu::limit_memory(100_000);
    let engine = Engine::builder(reader()).device(VULKAN).build();
    Wgpu::limit_memory(u64::MAX);
    assert_eq!(engine.expect_err("too little").code(), ErrorCode::OutOfMemory);
}

/// Texts of a hybrid model are the same beside others, after others with a prefix in common, and from a session that
/// was saved; its layers may be shared with the processor.
#[test]
fn a_hybrid_model_keeps_its_states_on_the_device() {
    let _alone = alone();
    let reader = || ModelReader::open(fixture("families/qwen35-r1/hf")).expect("a hybrid model");
    let engine = || Engine::builder(reader()).device(VULKAN).build().expect("an engine");
    let prompts = ["ab cd".repeat(30), "ab cd".repeat(29) + "the", "a dog".to_owned()];
    let how = || greedy(20).min_tokens(20);
    let tokens = |engine: &Engine, prompt: &String| {
        engine.complete(prompt.as_str(), how()).expect("a text").tokens
    };
    let expected: Vec<_> = prompts.iter().map(|prompt| tokens(&engine(), prompt)).collect();
    let shared = engine();
    for _ in 0..2 {
        let streams: Vec<_> = prompts
            .iter()
            .map(|prompt| shared.generate(prompt.as_str(), how()).expect("a stream"))
            .collect();
        let found = streams.into_iter().map(|stream| stream.wait().expect("a text").tokens);
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
    let metrics = pollster::block_on(shared.metrics()).expect("an engine");
    assert!(metrics.prefix_hits > 0, "{metrics:?}");
    assert!(pollster::block_on(shared.self_test()).expect("a test").passed);

    let drafted = shared.complete(prompts[0].as_str(), how().lookahead(5)).expect("a text");
    assert_eq!(drafted.tokens, expected[0]);

    let mut session = shared.session();
    session.push(prompts[0].as_str()).expect("tokens");
    let bytes = pollster::block_on(session.save()).expect("a session");
    let restored = pollster::block_on(engine().restore(bytes)).expect("a session");
    let text = restored.generate(how()).expect("a stream").wait().expect("a text");
    assert_eq!(text.tokens, expected[0]);

    let split = Device::Split(vec![(VULKAN, 1), (Device::Cpu, 0)]);
    let split = Engine::builder(reader()).device(split).build().expect("an engine");
    assert_eq!(tokens(&split, &prompts[0]).len(), 20);
}

//! Estimates of memory against what models take: a program of its own, as it counts the bytes that
//! are held.

#![expect(clippy::print_stdout, reason = "a test says that it passed")]

#[path = "../support/memory.rs"]
mod memory;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use futures::{
    FutureExt,
    future::{LocalBoxFuture, ready},
};
use memory::live;
use setun::{
    Device, DeviceOptions, Error, HeadType, MemoryEstimate, Model, ModelBytes, ModelFolder,
    ModelHeader, ModelReader, ModelSource, ReadRequest,
    forward::{Batch, Outputs, PagedCache, RequestedOutput},
    locate,
    ops::top_logits::TopLogitsRequest,
};
use setun_tests::fixture;

const STORIES: &str = "../../crates/setun/embedded/stories.safetensors";

fn main() {
    for device in [Device::Cpu, Device::Scalar] {
        for head in [HeadType::Auto, HeadType::Stored, HeadType::Int8] {
            let options = DeviceOptions {
                device: device.clone(),
                head,
                threads: Some(1),
                ..DeviceOptions::default()
            };
            weights_are_as_estimated(&options);
        }
    }
    a_full_context_is_as_estimated();
    headers_say_what_the_first_layer_would();
    println!("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

fn estimate(path: &Path, options: &DeviceOptions) -> MemoryEstimate {
    let reader = ModelReader::open(path).expect("a model");
    reader.header().estimate(options.clone()).expect("an estimate")
}

fn weights_are_as_estimated(options: &DeviceOptions) {
    let path = fixture(STORIES);
    let expected = estimate(&path, options);
    let before = live();
    let loaded = Model::open(&path).expect("a model").load_onto(options.clone()).expect("memory");
    let held = live() - before;
    let case = format!("{options:?}, head {:?}", loaded.head);
    assert_near(expected.weights, held, 0.05, &case);
}

/// The cache and the buffers of steps of all sizes, once texts have filled a context.
fn a_full_context_is_as_estimated() {
    let options = DeviceOptions { threads: Some(1), ..DeviceOptions::default() };
    let expected = estimate(&fixture(STORIES), &options);
    let context = usize::try_from(expected.context).expect("a small context");
    let model = Model::open(fixture(STORIES)).expect("a model");
    let mut model = model.load_onto(options).expect("memory").model;
    let before = live();
    let mut cache = PagedCache::new(model.block_positions(), context / model.block_positions());
    let (text, mut outputs) = (cache.create(), Outputs::default());
    let halves = (0..).map(|halvings| context >> halvings).take_while(|&rows| rows > 0);
    for rows in halves {
        cache.truncate(text, 0).expect("the text");
        cache.extend(text, rows).expect("room");
        let mut batch = Batch::default();
        let request = TopLogitsRequest { k: 1, ..<_>::default() };
        batch.push_run(text, 0, &vec![20; rows], RequestedOutput::TopLogits(request));
        let step = model.forward(&batch, &mut cache, &mut outputs).now_or_never();
        step.expect("a processor does not wait").expect("a step");
    }
    let held = live() - before;
    assert_near(expected.cache + expected.steps, held, 0.1, "cache and steps");
}

/// Counts the bytes of files that are read.
struct Files(ModelFolder, Arc<AtomicUsize>);

impl ModelBytes for Files {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        let found = self.0.read(want, bytes);
        self.1.fetch_add(bytes.len(), Relaxed);
        ready(found).boxed_local()
    }
}

/// Of any kind of checkpoint headers are enough, and give about the same as its data.
fn headers_say_what_the_first_layer_would() {
    for name in [
        STORIES,
        "golden/bitnet-h320-f432/packed",
        "families/qwen3-groups",
        "families/trilm-shards",
        "gguf/i2_s.gguf",
        "gguf/tq2_0.gguf",
        "gguf/qwen3-q2_0.gguf",
        "gguf/split-00001-of-00003.gguf",
        "setun/v1.setun",
    ] {
        let (folder, source) = locate(&fixture(name)).expect("a model");
        let read = Arc::new(AtomicUsize::new(0));
        let files = Files(ModelFolder::new(folder), Arc::clone(&read));
        let source = ModelSource::new(source, name, files);
        let header = ModelHeader::read(source).now_or_never().expect("no waiting");
        let found = header.expect("headers").estimate(DeviceOptions::default()).expect("a model");
        let expected = estimate(&fixture(name), &DeviceOptions::default());
        let near = expected.weights.abs_diff(found.weights) * 10 <= expected.weights;
        assert!(near, "{name}: {found:?}, {expected:?}");
    }
}

#[track_caller]
fn assert_near(expected: u64, held: usize, most: f64, case: &str) {
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let ratio = held as f64 / expected as f64;
    assert!((ratio - 1.0).abs() <= most, "{expected} estimated, {held} held: {case}");
}

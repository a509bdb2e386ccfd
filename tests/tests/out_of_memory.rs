//! Memory that runs out: each allocation of weights, plans, cache and logits fails once.
//!
//! An allocation whose size follows from a model or a request is a typed error, and an engine that
//! exists goes on. Small allocations of a fixed size end the process, as everywhere in Rust. The
//! model is of a shape in which the former are larger than [`LARGE`], the latter smaller.

#![expect(unsafe_code, reason = "a global allocator can only be written so")]

#[expect(dead_code, unreachable_pub, reason = "a fuzz target shares them, and needs more")]
#[path = "../../fuzz/src/subjects"]
mod subjects {
    pub(crate) mod input;
    pub(crate) mod random_model;
}

use std::{
    alloc::{GlobalAlloc, Layout, System},
    collections::BTreeMap,
    ptr::null_mut,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use setun::{
    Device, Engine, Error, ErrorCode, GenerateOptions, HeadType, Model, ModelReader, Source,
};
use subjects::random_model::{Shape, files};

/// Bytes from which an allocation is one of a model or a request.
const LARGE: usize = 16 << 10;

/// The system's allocator, in which one large allocation fails.
struct Failing;

/// Held by a test, because what fails is counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Large allocations until the one that fails; 0 where none does.
static LEFT: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Failing = Failing;

impl Failing {
    fn fails(layout: Layout) -> bool {
        let count_down = |left: usize| left.checked_sub(1);
        layout.size() >= LARGE && LEFT.fetch_update(SeqCst, SeqCst, count_down) == Ok(1)
    }
}

// SAFETY: calls go to the system's allocator unchanged, or give the null pointer of a failure.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout) {
            return null_mut();
        }
        // SAFETY: the caller's promises are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout) {
            return null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `work`, whose large allocation of this number fails. False if there were fewer.
fn failing<T>(number: usize, work: impl FnOnce() -> T) -> (T, bool) {
    LEFT.store(number, SeqCst);
    let result = work();
    (result, LEFT.swap(0, SeqCst) == 0)
}

/// Files of a model whose matrices, blocks of the cache and rows of logits are large.
fn model() -> BTreeMap<&'static str, Vec<u8>> {
    let shape = Shape {
        hidden: 256,
        ffn: 512,
        heads: 4,
        kv_heads: 4,
        head: 64,
        layers: 1,
        vocabulary: 5000,
        tied: true,
        activation: "relu2",
    };
    files(&shape, 7)
}

fn load(files: &BTreeMap<&str, Vec<u8>>, head: HeadType) -> Result<Engine, Error> {
    let files = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let model = Model::from_files(Source::Folder, "large", &files)?;
    Engine::builder(model).device(Device::Cpu).threads(1).head_type(head).build()
}

fn generate(engine: &Engine) -> Result<Vec<u32>, Error> {
    let options = GenerateOptions::new().temperature(0.0).max_tokens(3).logprobs(true);
    let prompt: Vec<u32> = (3..40).collect();
    Ok(engine.complete(prompt, options)?.tokens)
}

#[test]
fn every_large_allocation_that_fails_is_a_typed_error() {
    let _alone = ALONE.lock().expect("the other test has passed");
    let files = model();
    for head in [HeadType::Stored, HeadType::Screened, HeadType::Int8] {
        let expected = generate(&load(&files, head).expect("memory")).expect("memory");
        let mut number = 1;
        loop {
            let (engine, has_failed) = failing(number, || load(&files, head));
            match engine {
                Ok(engine) if !has_failed => break drop(engine),
                Ok(engine) => assert_eq!(generate(&engine).expect("memory"), expected),
                Err(error) => assert_eq!(error.code(), ErrorCode::OutOfMemory, "{number}: {error}"),
            }
            number += 1;
        }
        assert!(number > 10, "{number} large allocations of loading with {head:?}");
        steps(&files, head, &expected);
    }
}

/// The same of weights that are written to an image, and mapped from it.
#[test]
fn every_large_allocation_of_an_image_that_fails_is_a_typed_error() {
    let _alone = ALONE.lock().expect("the other test has passed");
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in model() {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let image = folder.path().join("weights.image");
    let load = || {
        let builder = Engine::builder(ModelReader::open(folder.path())?).device(Device::Cpu);
        let image = image.to_str().expect("a name").to_owned();
        builder.threads(1).head_type(HeadType::Screened).weight_image(image).build()
    };
    let expected = generate(&load().expect("memory")).expect("memory");
    for is_mapped in [true, false] {
        let mut number = 1;
        loop {
            if !is_mapped {
                std::fs::remove_file(&image).expect("an image");
            }
            let (engine, has_failed) = failing(number, load);
            match engine {
                Ok(engine) if !has_failed => break drop(engine),
                Ok(engine) => assert_eq!(generate(&engine).expect("memory"), expected),
                Err(error) => assert_eq!(error.code(), ErrorCode::OutOfMemory, "{number}: {error}"),
            }
            load().expect("memory, and an image");
            number += 1;
        }
        assert!(number > 3, "{number} large allocations, mapped: {is_mapped}");
    }
}

/// The same of generations, each in a new engine, which then answers as if nothing had been.
fn steps(files: &BTreeMap<&str, Vec<u8>>, head: HeadType, expected: &[u32]) {
    let mut number = 1;
    loop {
        let engine = load(files, head).expect("memory");
        let (tokens, has_failed) = failing(number, || generate(&engine));
        match tokens {
            Ok(tokens) => assert_eq!(tokens, expected, "{number}"),
            Err(error) => assert_eq!(error.code(), ErrorCode::OutOfMemory, "{number}: {error}"),
        }
        assert_eq!(generate(&engine).expect("memory again"), expected, "{number}");
        if !has_failed {
            break;
        }
        number += 1;
    }
    assert!(number > 3, "{number} large allocations of a generation with {head:?}");
}

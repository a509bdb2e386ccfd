//! A model that is opened twice is one.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Barrier},
    thread,
};

use setun::{CacheType, Device, DeviceOptions, Engine, GenerateOptions, open_shared};

/// A copy of a small model, which only its test opens.
fn model() -> (tempfile::TempDir, PathBuf) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let from = from.join("../../tests/fixtures/golden/bitnet-h64/packed");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

fn options() -> DeviceOptions {
    DeviceOptions {
        device: "cpu".parse::<Device>().unwrap(),
        threads: Some(1),
        ..DeviceOptions::default()
    }
}

fn open(path: &Path) -> Engine {
    open_shared(path, options()).unwrap()
}

fn text(engine: &Engine) -> Vec<u32> {
    let mut tokens = vec![];
    for event in
        engine.generate(vec![1, 2, 3], GenerateOptions::new().max_tokens(4)).unwrap().blocking()
    {
        if let setun::Event::Text(delta) = event.unwrap() {
            tokens.push(delta.token);
        }
    }
    tokens
}

#[test]
fn the_same_files_with_the_same_options_are_one_engine() {
    let (_keep, path) = model();
    let first = open(&path);
    let roundabout = path.join("..").join(path.file_name().unwrap());
    let second = open(&roundabout);
    assert!(first.is_same(&second));
    let file = open(&path.join("model.safetensors"));
    assert!(!first.is_same(&file), "a file is another way to open it");
    let other = DeviceOptions { cache: CacheType::F32, ..options() };
    assert!(!first.is_same(&open_shared(&path, other).unwrap()));
    let expected = text(&first);
    drop(first);
    assert_eq!(text(&second), expected, "the other handle goes on");
    assert!(second.is_same(&open(&path)));
}

#[test]
fn a_file_that_was_replaced_is_another_model() {
    let (_keep, path) = model();
    let first = open(&path);
    let beside = path.join("new.tmp");
    fs::copy(path.join("model.safetensors"), &beside).unwrap();
    fs::rename(&beside, path.join("model.safetensors")).unwrap();
    let second = open(&path);
    assert!(!first.is_same(&second));
    fs::write(path.join("notes.txt"), "of no concern").unwrap();
    assert!(second.is_same(&open(&path)));
}

#[test]
fn threads_that_open_it_at_once_load_it_once() {
    let (_keep, path) = model();
    let start = Arc::new(Barrier::new(4));
    let opening: Vec<_> = (0..4)
        .map(|_| {
            let (path, start) = (path.clone(), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                open(&path)
            })
        })
        .collect();
    let engines: Vec<_> = opening.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(engines.iter().all(|engine| engine.is_same(&engines[0])));
}

#[test]
fn an_engine_that_failed_to_start_is_tried_again() {
    let (_keep, path) = model();
    let weights = path.join("model.safetensors");
    let bytes = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes[..100]).unwrap();
    assert!(open_shared(&path, options()).is_err());
    fs::write(&weights, &bytes).unwrap();
    assert!(!text(&open(&path)).is_empty());
    assert!(open_shared(path.join("nothing"), options()).is_err());
}

/// The last handle waits for its owner; another one still works before.
#[test]
fn the_last_handle_closes_the_engine() {
    let (_keep, path) = model();
    let engine = open(&path);
    let other = engine.clone();
    engine.close();
    let expected = text(&other);
    let begun = other.generate(vec![1, 2, 3], GenerateOptions::new().max_tokens(4)).unwrap();
    let reading = thread::spawn(move || begun.blocking().collect::<Result<Vec<_>, _>>());
    other.close();
    assert!(reading.join().unwrap().is_ok(), "a generation under way comes to its end");
    assert_eq!(text(&open(&path)), expected);
}

//! Models for tests, answers of the engine itself, and a library that changes the time of day.

use std::{env, fs};

use setun::{Engine, GenerateOptions, Message, Model};

/// The text with which the embedded model continues a prompt.
pub(crate) fn continued(prompt: &str, options: GenerateOptions) -> String {
    let engine = engine(Model::embedded().expect("it is compiled in"));
    engine.complete(prompt, options).expect("a text").text
}

/// The answer of a model to a user.
pub(crate) fn answer(folder: &str, content: &str, options: GenerateOptions) -> String {
    let engine = engine(Model::open(folder).expect("a model"));
    let answer = engine.chat([Message::user(content)], options).expect("a stream").wait();
    answer.expect("an answer").text
}

fn engine(model: Model) -> Engine {
    Engine::builder(model).build().expect("an engine")
}

/// The story model with another number of positions.
#[cfg(feature = "cluster")]
pub(crate) fn with_positions(positions: usize) -> (tempfile::TempDir, String) {
    use crate::support::{STORIES, copy_without, model};
    let (keep, folder) = copy_without(STORIES, &["config.json"]);
    let config = fs::read(std::path::Path::new(&model(STORIES)).join("config.json"));
    let mut config: serde_json::Value =
        serde_json::from_slice(&config.expect("a file")).expect("JSON");
    config["max_position_embeddings"] = positions.into();
    fs::write(folder.join("config.json"), config.to_string()).expect("a file");
    (keep, folder.to_string_lossy().into_owned())
}

/// A library that changes the time of day of processes, and leaves clocks alone that
/// measure time: Debian's package `libfaketime`, which the stage `sql` installs.
pub(crate) fn other_time() -> Option<String> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let found = libraries.into_iter().find(|library| library.exists());
    assert!(found.is_some() || env::var_os("CI").is_none(), "libfaketime is not installed");
    found?.to_str().map(str::to_owned)
}

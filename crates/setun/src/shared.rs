//! A model that is opened twice is one: its weights are in memory once.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use setun_engine::{Engine, WeakEngine};

use crate::{
    config::EngineConfig,
    device::DeviceOptions,
    error::Error,
    reader::ModelReader,
    source::{FileIdentity, find_model},
};

/// Ends of the names of files that a model may be read from.
const READ: [&str; 8] =
    ["json", "jinja", "safetensors", "gguf", "setun", "onnx", "onnx_data", "data"];

/// Engines of this process that may still run.
static OPEN: Mutex<Vec<(Key, Arc<Slot>)>> = Mutex::new(vec![]);

/// Locked while the engine is started, so that other callers for the same engine wait.
type Slot = Mutex<Option<WeakEngine>>;

/// What makes two engines the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    path: PathBuf,
    /// Of each file that the model may be read from.
    files: Vec<(OsString, FileIdentity)>,
    options: DeviceOptions,
}

/// Opens the model at a path or of a name, or gives another handle to the engine that this process has
/// opened from it with the same options: a model that is opened twice has its weights in
/// memory once. A caller for one that is being loaded waits for it.
///
/// A file that has been written or replaced since is another model. An engine of which only
/// streams are left is not found any more.
///
/// # Errors
///
/// As [`Model::open`](crate::Model::open), and if the device is not here or has not enough
/// memory.
pub fn open_shared(model: impl AsRef<Path>, options: DeviceOptions) -> Result<Engine, Error> {
    let model = model.as_ref();
    let slot = slot(Key::of(&find_model(model)?.path, options.clone())?);
    let mut engine = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = engine.as_ref().and_then(WeakEngine::upgrade) {
        return Ok(engine);
    }
    let opened = start(ModelReader::open(model)?, options)?;
    *engine = Some(opened.downgrade());
    Ok(opened)
}

fn start(model: ModelReader, options: DeviceOptions) -> Result<Engine, Error> {
    let DeviceOptions { device, threads, cache, head, activation_group, software, weight_image } =
        options;
    let mut config = EngineConfig::default();
    (config.device.threads, config.device.weight_image) = (threads, weight_image);
    config.device.activation_group = activation_group;
    let builder = Engine::builder(model).config(config).device(device).software(software);
    builder.cache_type(cache).head_type(head).build()
}

/// The place of an engine, without those that are no longer used or waited for.
fn slot(key: Key) -> Arc<Slot> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|(_, slot)| {
        let waited_for = Arc::strong_count(slot) > 1;
        let runs =
            || slot.lock().is_ok_and(|engine| engine.as_ref().is_some_and(WeakEngine::is_alive));
        waited_for || runs()
    });
    if let Some((_, slot)) = open.iter().find(|(known, _)| *known == key) {
        return Arc::clone(slot);
    }
    let slot = Arc::default();
    open.push((key, Arc::clone(&slot)));
    slot
}

impl Key {
    fn of(path: &Path, options: DeviceOptions) -> Result<Self, Error> {
        let failed = |source| Error::Io { path: path.into(), source };
        let path = path.canonicalize().map_err(failed)?;
        let (folder, file) = if path.is_dir() {
            (path.as_path(), None)
        } else {
            (path.parent().unwrap_or(Path::new("")), path.file_name())
        };
        let mut files = vec![];
        for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
            let name = entry.file_name();
            // Of a lone file's neighbours only those that say how to read it.
            if Some(name.as_os_str()) == file || is_read(&name, file.is_none()) {
                // Behind a link lies what is read.
                if let Ok(metadata) = fs::metadata(entry.path()) {
                    files.push((name, FileIdentity::of(&metadata)));
                }
            }
        }
        files.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Self { path, files, options })
    }
}

fn is_read(name: &OsString, weights: bool) -> bool {
    let end = Path::new(name).extension().and_then(|end| end.to_str()).unwrap_or_default();
    let kinds = if weights { &READ[..] } else { &READ[..2] };
    kinds.contains(&end)
}

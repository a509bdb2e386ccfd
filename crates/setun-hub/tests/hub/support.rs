//! Fixtures shared by the tests of pulls.

use std::{sync::Mutex, time::Duration};

use setun_hub::{Digest, Error, ModelStore, PullEvent, PullOptions, StoreSettings, StoredModel};

use crate::server::Server;

/// Bytes of a chunk in these tests.
pub(crate) const CHUNK: u64 = PIECE as u64;

/// The same, for lengths in memory.
pub(crate) const PIECE: usize = 64 << 10;

/// The time that a server has for each byte, on any machine.
const PATIENCE: Duration = Duration::from_mins(5);

/// A commit's name.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Bytes that do not repeat, so that a chunk in a wrong place is seen.
pub(crate) fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A store in a folder of its own, and the events of its pulls.
pub(crate) struct TestStore {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: ModelStore,
    pub(crate) options: PullOptions,
    events: Mutex<Vec<PullEvent>>,
}

impl TestStore {
    pub(crate) fn new(server: &Server) -> Self {
        Self::with(|settings| settings.endpoint = server.at(""))
    }

    pub(crate) fn with(set: impl FnOnce(&mut StoreSettings)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = StoreSettings::new(folder.path());
        set(&mut settings);
        let store = ModelStore::open(settings);
        let options = PullOptions {
            chunk_bytes: CHUNK,
            backoff: Duration::from_millis(2),
            read_timeout: PATIENCE,
            ..PullOptions::default()
        };
        Self { folder, store, options, events: Mutex::default() }
    }

    pub(crate) fn pull(&self, name: &str) -> Result<StoredModel, Error> {
        self.store
            .pull(name, &self.options, &|event| self.events.lock().expect("events").push(event))
    }

    pub(crate) fn remove(&self, name: &str) -> Result<u64, Error> {
        self.store
            .remove(name, &self.options, &|event| self.events.lock().expect("events").push(event))
    }

    /// Events so far, which are forgotten.
    pub(crate) fn events(&self) -> Vec<PullEvent> {
        std::mem::take(&mut *self.events.lock().expect("events"))
    }

    /// Bytes of a file of the one model that is here.
    #[track_caller]
    pub(crate) fn read(&self, name: &str, file: &str) -> Vec<u8> {
        let model = self.store.get(name).expect("the model");
        std::fs::read(model.folder.join(file)).expect("the file")
    }

    /// Names of all files that are not locks.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names = vec![];
        walk(&self.folder.path().join("models"), &mut names);
        names.sort();
        names
    }

    /// Nothing that is not whole is to be seen.
    #[track_caller]
    pub(crate) fn assert_nothing_listed(&self, name: &str) {
        assert!(self.store.list().expect("a list").is_empty());
        let resolved = self.store.resolve(name);
        let is_refused = matches!(resolved, Err(Error::NotFound { .. } | Error::Damaged { .. }));
        assert!(is_refused, "{resolved:?}");
    }
}

fn walk(folder: &std::path::Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            walk(&entry.path(), names);
        } else {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
}

/// Puts a repository on a server: its list and its files, of which those that end in `.gguf` or
/// `.safetensors` have hashes.
pub(crate) fn put_hub(server: &Server, model: &str, files: &[(&str, &[u8])]) {
    let entries: Vec<_> = files
        .iter()
        .map(|(name, bytes)| {
            let (size, sha256) = (bytes.len(), Digest::of(bytes));
            let large = [".gguf", ".safetensors"].iter().any(|end| name.ends_with(end));
            let lfs = if large {
                format!(",\"lfs\":{{\"sha256\":\"{sha256}\",\"size\":{size},\"pointerSize\":130}}")
            } else {
                String::new()
            };
            server.put(&hub_path(model, name), *bytes, "\"first\"");
            format!("{{\"rfilename\":\"{name}\",\"size\":{size}{lfs}}}")
        })
        .collect();
    let list = format!(
        "{{\"sha\":\"{COMMIT}\",\"siblings\":[{}],\"cardData\":{{\"license\":\"mit\"}}}}",
        entries.join(",")
    );
    for revision in ["main", COMMIT] {
        server.put(&list_path(model, revision), list.clone(), "\"list\"");
    }
}

/// Where a hub has the list of a repository's files.
pub(crate) fn list_path(model: &str, revision: &str) -> String {
    format!("/api/models/{model}/revision/{revision}?blobs=true")
}

/// Where a hub has a file.
pub(crate) fn hub_path(model: &str, file: &str) -> String {
    format!("/{model}/resolve/{COMMIT}/{file}")
}

//! A pull, separated by bytes of zero: what is pulled, the journal of an earlier pull, and what each
//! connection says.

use std::{collections::BTreeSet, fs, time::Duration};

use crate::{
    MemoryBound,
    hub::{ModelStore, PullOptions, StoreSettings, StoredModel, testing::with_answers},
    run_bounded,
    subjects::scratch::Folder,
};

/// A connection's buffers, a piece of a file, and a hub's list as values of JSON.
const MEMORY: MemoryBound = MemoryBound { fixed: 16 << 20, each: 256 };

/// Most connections that say something.
const MAX_ANSWERS: usize = 32;

/// Where an earlier pull has left a file of the corpus' repository.
const UNFINISHED: &str = "models/h/o/n/0123456789abcdef0123456789abcdef01234567/model.gguf";

/// Bytes of it.
const UNFINISHED_BYTES: usize = 10_000;

/// Pulls a model.
///
/// # Panics
///
/// If that exceeds its bounds, writes outside of the store's folders, or leaves a model that is
/// listed and is not what the answers say.
pub fn run(bytes: &[u8]) {
    let folder = Folder::create();
    run_bounded(bytes.len(), MEMORY, || {
        let mut parts = bytes.splitn(2 + MAX_ANSWERS, |byte| *byte == 0);
        let mut next = || parts.next().unwrap_or_default();
        let (name, journal) = (String::from_utf8_lossy(next()), next());
        if !journal.is_empty() {
            folder.write(&format!("{UNFINISHED}.chunks"), journal);
            folder.write(&format!("{UNFINISHED}.part"), &[0; UNFINISHED_BYTES]);
        }
        let mut settings = StoreSettings::new(folder.path());
        settings.endpoint = "http://h".into();
        let store = ModelStore::open(settings);
        let pull = || store.pull(&name, &options(), &|_| ());
        let pulled = with_answers(parts.map(<[u8]>::to_vec), pull);
        // Whoever can write a journal can write a model.
        if journal.is_empty() {
            check_models(&store, pulled.as_ref().ok());
        }
        check_folders(&folder);
    });
}

/// One connection at a time, and no waits.
fn options() -> PullOptions {
    PullOptions {
        connections: 1,
        chunk_bytes: 4096,
        attempts: 2,
        backoff: Duration::ZERO,
        max_wait: Duration::ZERO,
        ..PullOptions::default()
    }
}

/// What is listed is whole, and no other than what was pulled.
fn check_models(store: &ModelStore, pulled: Option<&StoredModel>) {
    let listed = store.list().expect("a list of the store");
    let folder_of = |model: &StoredModel| model.folder.clone();
    let found: Vec<_> = listed.iter().map(folder_of).collect();
    assert_eq!(found, Vec::from_iter(pulled.map(folder_of)));
    for model in listed {
        let checks = model.verify(&options(), |_| ()).expect("nobody cancels");
        assert!(checks.iter().all(|check| check.good), "{checks:?}");
    }
}

fn check_folders(folder: &Folder) {
    let known = BTreeSet::from(["locks", "models"].map(String::from));
    let entries = fs::read_dir(folder.path()).expect("the store's folder").flatten();
    let found = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert!(found.collect::<BTreeSet<_>>().is_subset(&known));
}

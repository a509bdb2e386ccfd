//! The small files of a store, separated by bytes of zero: a model's manifest, its references and
//! the aliases. Empty ones are absent.

use crate::{
    MemoryBound,
    hub::{ModelStore, PullOptions, StoreSettings},
    run_bounded,
    subjects::scratch::Folder,
};

/// A value of JSON takes more than its text; files are read in pieces of 1 MiB.
const MEMORY: MemoryBound = MemoryBound { fixed: 8 << 20, each: 256 };

/// Where the files lie.
const FILES: [&str; 3] =
    ["models/h/o/n/main/manifest.json", "models/h/o/n/refs.json", "aliases.json"];

/// The file that manifests of the corpus name.
const CONTENT: (&str, usize) = ("models/h/o/n/main/model.gguf", 10_000);

/// Asks a store of these files for what it has, and changes it.
///
/// # Panics
///
/// If that exceeds its bounds, or a model is listed and cannot be removed.
pub fn run(bytes: &[u8]) {
    let folder = Folder::create();
    run_bounded(bytes.len(), MEMORY, || {
        let contents = bytes.splitn(FILES.len(), |byte| *byte == 0);
        for (name, contents) in FILES.into_iter().zip(contents).filter(|(_, c)| !c.is_empty()) {
            folder.write(name, contents);
        }
        folder.write(CONTENT.0, &[0; CONTENT.1]);
        let mut settings = StoreSettings::new(folder.path());
        settings.endpoint = "http://h".into();
        ask(&ModelStore::open(settings));
    });
}

fn ask(store: &ModelStore) {
    let options = PullOptions::default();
    for name in ["h/o/n", "o/n@main", "o/n:model.gguf", "alias"] {
        let _ = store.resolve(name);
    }
    let _ = (store.disk_usage(), store.aliases(), store.alias("alias", Some("o/n")));
    let Ok(survey) = store.survey() else { return };
    for model in survey.models {
        let name = model.id.to_string();
        let checks = model.verify(&options, |_| ()).expect("nobody cancels");
        assert!(checks.iter().all(|check| check.good || check.problem.is_some()));
        store.remove(&name, &options, &|_| ()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

//! The option table and the catalog of models against what is written from them: TypeScript,
//! documents and test cases.
//!
//! With `SETUN_UPDATE_OPTIONS` in its environment the first test writes the files anew, which is
//! what `cargo xtask options` does.

mod cases;
mod catalog;
mod markdown;
mod toml_files;
mod typescript;

use std::{fs, path::PathBuf};

/// Set to write the files instead of comparing them.
const UPDATE: &str = "SETUN_UPDATE_OPTIONS";

#[test]
fn files_made_from_the_table_are_current() {
    let configuration = read("docs/configuration.md");
    let (hub, models) = (read("docs/hub.md"), read("crates/setun-hub/catalog.json"));
    for (file, made) in [
        ("npm/src/generate-options.ts", typescript::generate_options()),
        ("npm/src/sampling-options.ts", typescript::sampling_options()),
        ("npm/src/penalty-options.ts", typescript::penalty_options()),
        ("npm/src/generate-rules.ts", typescript::generate_rules()),
        ("npm/src/beam-options.ts", typescript::beam_options()),
        ("npm/src/engine-limits.ts", typescript::engine_limits()),
        ("crates/setun/tests/options/cases.json", cases::json()),
        ("docs/configuration.md", markdown::with_tables(&configuration)),
        ("npm/src/catalog-entries.ts", catalog::typescript(&models)),
        ("docs/hub.md", catalog::with_table(&hub, &models)),
    ] {
        if std::env::var_os(UPDATE).is_some() {
            fs::write(path(file), made).expect(file);
        } else {
            assert!(read(file) == made, "{file} is stale: run `cargo xtask options`");
        }
    }
}

/// A file of the repository; empty if there is none yet.
fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_default()
}

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

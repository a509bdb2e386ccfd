//! The catalog: sizes and memory of each entry, and a pull from a mirror under its short name.

mod commands;
mod files;
mod gguf;
mod hybrid;
mod mirror;
#[cfg(unix)]
mod offer;
mod repository;
mod sizes;
mod templates;
mod tensors;
mod vocabulary;

use serde_json::Value;
use setun::hub::CatalogEntry;

/// The configuration of an entry's repository.
fn configuration(entry: &CatalogEntry) -> Value {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/catalog/configurations.json");
    let text = std::fs::read_to_string(path).expect("the configurations");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let found = &all[&entry.name];
    match found.as_str() {
        Some(same) => all[same].clone(),
        None => found.clone(),
    }
}

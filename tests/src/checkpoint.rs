//! Checkpoints read without an engine, tensor by tensor.

use std::{collections::BTreeMap, fs, path::Path};

use setun::{
    Source,
    checkpoint::{Answer, ModelConfig, Reader},
    forward::{Weights, WeightsBuilder},
};

/// Reads a folder tensor by tensor. `go_on` is called after each, and may end it.
///
/// # Panics
///
/// If there is no model that can be read.
pub fn read(
    folder: &Path,
    mut go_on: impl FnMut(&mut WeightsBuilder) -> bool,
) -> (ModelConfig, WeightsBuilder) {
    let mut reader = Reader::new(Source::Folder);
    let mut files: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
    let mut weights = None;
    while let Some(want) = reader.next_read() {
        let read = || fs::read(folder.join(&want.file)).ok();
        let bytes = files.entry(want.file.clone()).or_insert_with(read).as_deref();
        let range = |bytes: &'_ [u8]| match &want.range {
            None => 0..bytes.len(),
            Some(range) => {
                let end = |place| usize::try_from(place).expect("a small file").min(bytes.len());
                end(range.start)..end(range.end)
            }
        };
        let answer = bytes.map_or(Answer::Missing, |bytes| Answer::Bytes(&bytes[range(bytes)]));
        reader.give(answer).expect("a sound checkpoint");
        if let (Some(config), Some(tensors)) = (reader.config(), reader.tensors()) {
            let new = || WeightsBuilder::new(config, tensors, config.context_length);
            let weights = weights.get_or_insert_with(|| new().expect("a known family"));
            if let Some(tensor) = reader.take() {
                weights.add(tensor).expect("a sound tensor");
                if !go_on(weights) {
                    break;
                }
            }
        }
    }
    (reader.config().expect("a configuration").clone(), weights.expect("headers"))
}

/// Configuration and weights of a model.
///
/// # Panics
///
/// If there is no model that can be read.
#[must_use]
pub fn weights(folder: &Path) -> (ModelConfig, Weights) {
    let (config, weights) = read(folder, |_| true);
    (config, weights.finish().expect("all weights"))
}

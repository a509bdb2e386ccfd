//! `config.json` and `generation_config.json`, both from the same bytes.

#![no_main]

use setun_checkpoint::{GenerationDefaults, ModelConfig};
use setun_fuzz::{READER_MEMORY, run_bounded};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    run_bounded(bytes.len(), READER_MEMORY, || {
        let generation = GenerationDefaults::parse(bytes).unwrap_or_default();
        ModelConfig::parse(bytes, &generation).ok()
    });
});

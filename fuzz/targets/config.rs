//! `config.json` and `generation_config.json`, both from the same bytes.

#![no_main]

use setun_checkpoint::{GenerationDefaults, ModelConfig};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    setun_fuzz::bounded(bytes.len(), || {
        let generation = GenerationDefaults::parse(bytes).unwrap_or_default();
        ModelConfig::parse(bytes, &generation).ok()
    });
});

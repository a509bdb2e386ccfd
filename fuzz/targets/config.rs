//! `config.json` and `generation_config.json`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::readers::config(bytes));

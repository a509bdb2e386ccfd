//! A lone `.gguf` file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::read_file("model.gguf", bytes));

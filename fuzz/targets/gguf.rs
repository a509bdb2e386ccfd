//! A lone `.gguf` file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::readers::gguf(bytes));

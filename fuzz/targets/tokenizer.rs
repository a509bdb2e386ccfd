//! A `tokenizer.json` and a text.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::tokenizer::run(bytes));

//! A chat template by itself or in a `tokenizer_config.json`, read and rendered.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::chat_template::run(bytes));

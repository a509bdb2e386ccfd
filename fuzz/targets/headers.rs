//! A file of any format up to its tensors' data.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::readers::headers(bytes));

//! A folder in Hugging Face's layout, its files separated by bytes of zero.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::readers::folder(bytes));

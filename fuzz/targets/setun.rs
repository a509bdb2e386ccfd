//! A `.setun` file as it is, and with hashes that fit.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::readers::setun(bytes));

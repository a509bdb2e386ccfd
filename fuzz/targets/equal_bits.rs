//! A random small model on two devices.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::equal_bits::run(bytes));

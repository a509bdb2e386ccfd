//! Answers of a hub to a pull.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::hub_answers::run(bytes));

//! A grammar in GBNF, and a text that follows it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::grammar::gbnf(bytes));

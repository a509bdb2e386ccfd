//! A grammar in Lark's notation, and a text that follows it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::grammar::lark(bytes));

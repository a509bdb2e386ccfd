//! Calls of tools in an answer, whole and in pieces.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::tool_calls::run(bytes));

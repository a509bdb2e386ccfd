//! An ONNX file beside configurations.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| setun_fuzz::subjects::readers::onnx(bytes));

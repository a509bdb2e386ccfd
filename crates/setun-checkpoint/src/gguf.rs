//! GGUF, the format of llama.cpp.

pub mod tokenizer;

//! Tokenizers of GGUF files against llama.cpp's cases and against the files they came from.

mod cases;
mod errors;
mod from_files;
mod search;
mod support;

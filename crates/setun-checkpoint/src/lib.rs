//! Reads ternary checkpoints: bytes in, named tensors and one configuration out.
//!
//! Never does any IO: a reader says which bytes it wants next and is handed them.

pub mod config;

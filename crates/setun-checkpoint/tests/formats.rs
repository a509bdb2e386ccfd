//! Checkpoints of every format: read, written, damaged.

mod container;
mod container_groups;
mod container_hostile;
mod container_sizes;
mod gguf;
mod golden;
mod hostile;
mod hybrid;
#[cfg(feature = "onnx")]
mod onnx;
#[cfg(feature = "onnx")]
mod onnx_tables;
mod sources;
mod support;

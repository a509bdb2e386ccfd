//! Models from checkpoints of every format, good and bad.

mod activation_groups;
mod bad_checkpoints;
mod bonsai;
mod containers;
mod families;
mod gguf;
mod hybrid;
mod hybrid_gguf;
mod hybrid_states;
mod inferencer;
mod model_bytes;
mod mutations;
mod onnx;
mod weight_by_weight;

//! Random models of real shapes, as files whose bytes are made where they are read.
//!
//! Any byte of a checkpoint is a pure function of configuration, seed and place, so a model of many
//! gigabytes can be written with little memory, or loaded without ever being written.

mod checkpoint;
mod content;
mod noise;
mod original;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use checkpoint::Synthetic;
pub(crate) use noise::{noise, share};
pub(crate) use original::{Change, Original, ROTATION};
pub(crate) use shape::ShapeName;

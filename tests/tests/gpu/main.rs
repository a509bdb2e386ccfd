//! Models and the engine on the system's Vulkan device.

mod estimates;
mod families;
mod faults;
mod models;
mod self_test;
mod split;
mod steps;
mod texts;

//! Subjects of the fuzz targets, a file for each kind of input.
//!
//! Each has one function, which runs an input within its bounds and panics where a promise is
//! broken.

#[cfg(feature = "hub")]
pub mod hub_answers;
#[cfg(feature = "hub")]
pub mod manifest;
#[cfg(feature = "hub")]
pub mod scratch;

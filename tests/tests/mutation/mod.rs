//! Parts of the test of damaged files.

pub(crate) mod change;
pub(crate) mod random;
pub(crate) mod subject;

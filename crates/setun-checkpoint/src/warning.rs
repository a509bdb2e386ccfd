//! Warnings: repairs and assumptions made while a checkpoint was read.

use std::fmt;

/// Something that a user should know of a checkpoint that can be read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Name of the file.
    pub file: String,
    /// What is wrong, and what was done.
    pub what: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.what)
    }
}

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

/// Most names in a warning.
const SHOWN: usize = 5;

/// Names in a warning: the first of them, and how many there are besides.
#[must_use]
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let shown = names.iter().take(SHOWN).map(|name| format!("`{}`", name.as_ref()));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The warning that a file has these and nothing reads them; none without any.
pub(crate) fn unknown<'a>(
    file: &str,
    what: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<Warning> {
    let names: Vec<_> = names.collect();
    let may = "that are not known may change the result, and are not applied";
    let what = format!("{what} {may}: {}", listed(&names));
    (!names.is_empty()).then(|| Warning { file: file.to_owned(), what })
}

//! A model in several files: `NAME-00001-of-00003.gguf`.

use super::{header::Header, metadata::Metadata};
use crate::error::CheckpointError;

const SUFFIX: &str = ".gguf";
const DIGITS: usize = 5;
const LIMIT: usize = 99_999;

/// Which part a file's name says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    stem: String,
    /// How many there are.
    pub(super) count: usize,
}

impl Parts {
    /// The parts of a name; the file alone where it is not the name of a part.
    pub(super) fn of(name: &str) -> Option<Self> {
        let rest = name.strip_suffix(SUFFIX)?;
        let (rest, count) = number(rest)?;
        let rest = rest.strip_suffix("-of-")?;
        let (rest, part) = number(rest)?;
        let stem = rest.strip_suffix('-')?;
        let fits = (1..=count).contains(&part);
        fits.then(|| Self { stem: stem.to_owned(), count })
    }

    /// The name of a part, from 0.
    pub(super) fn name(&self, part: usize) -> String {
        format!("{}-{:05}-of-{:05}{SUFFIX}", self.stem, part + 1, self.count)
    }
}

/// Five digits at the end of a text, and what is before them.
fn number(text: &str) -> Option<(&str, usize)> {
    let (rest, digits) = text.split_at_checked(text.len().checked_sub(DIGITS)?)?;
    let digits_only = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits_only.then(|| digits.parse().ok()).flatten().map(|number| (rest, number))
}

/// Whether a file is the part of this many that its name says.
pub(super) fn check(metadata: &Metadata, part: usize, count: usize) -> Result<(), CheckpointError> {
    let expect = |key: &str, expected: usize| match metadata.size(key, LIMIT)? {
        Some(found) if found == expected => Ok(()),
        None if count == 1 => Ok(()),
        found => {
            let found = found.map_or("absent".to_owned(), |found| found.to_string());
            let what = format!("`{key}` is {found}, expected {expected}");
            Err(CheckpointError::Part { file: metadata.file.clone(), what })
        }
    };
    if count == 1 && metadata.size("split.count", LIMIT)? == Some(0) {
        return Ok(());
    }
    expect("split.count", count)?;
    expect("split.no", part)
}

/// Whether all parts together have as many tensors as the first says.
pub(super) fn check_tensors(headers: &[Header]) -> Result<(), CheckpointError> {
    const KEY: &str = "split.tensors.count";
    let found: usize = headers.iter().map(|header| header.tensors.len()).sum();
    for header in headers {
        match header.metadata.size(KEY, usize::MAX)? {
            Some(expected) if expected != found => {
                let file = header.metadata.file.clone();
                let what = format!("`{KEY}` is {expected}, but the parts have {found}");
                return Err(CheckpointError::Part { file, what });
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        let parts = Parts::of("folder/m-00002-of-00003.gguf").unwrap();
        assert_eq!((parts.count, &*parts.name(0)), (3, "folder/m-00001-of-00003.gguf"));
        for name in [
            "m.gguf",
            "m-00004-of-00003.gguf",
            "m-00000-of-00003.gguf",
            "m-0001-of-00003.gguf",
            "m-00001-of-00003.bin",
            "00001-of-00003.gguf",
            "é-of-00003.gguf",
        ] {
            assert_eq!(Parts::of(name), None, "{name}");
        }
    }
}

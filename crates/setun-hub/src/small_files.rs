//! Small JSON files of the store.
//!
//! A damaged one counts as absent, as in a browser: what it said can be found out again. One of a
//! later version is an error, as another program still needs it.

use std::{fs, io::ErrorKind, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    atomic_files::{remove_any, write_atomically},
    error::Error,
    json,
};

/// The version that is written, and the latest that is read.
pub(crate) const FORMAT: u32 = 1;

/// Most bytes of a file. The manifest of a terabyte in chunks of 8 MiB has 9 MB.
pub(crate) const MAX_BYTES: u64 = 32 << 20;

/// What there is at the place of a small file.
#[derive(Debug)]
pub(crate) enum SmallFile<T> {
    Absent,
    /// Something that is not the file, and why.
    Damaged(String),
    Found(T),
}

/// Why bytes are not the file that they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Damaged(String),
    /// Its format is a later one.
    Later(String),
}

impl<T> SmallFile<T> {
    /// What was found, if it is the file.
    pub(crate) fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Absent | Self::Damaged(_) => None,
        }
    }
}

/// Reads a file, of which `parse` makes what it says.
///
/// # Errors
///
/// If its format is a later one, or the system refuses to read it.
pub(crate) fn read_small<T>(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, Unusable>,
) -> Result<SmallFile<T>, Error> {
    let read = fs::metadata(path).and_then(|metadata| match metadata.len() {
        _ if !metadata.is_file() => Ok(Err(Unusable::Damaged("it is no file".into()))),
        bytes if bytes > MAX_BYTES => {
            let reason = format!("it has {bytes} bytes, expected at most {MAX_BYTES}");
            Ok(Err(Unusable::Damaged(reason)))
        }
        _ => fs::read(path).map(|bytes| parse(&bytes)),
    });
    match read {
        Ok(Ok(found)) => Ok(SmallFile::Found(found)),
        Ok(Err(Unusable::Damaged(reason))) => Ok(SmallFile::Damaged(reason)),
        Ok(Err(Unusable::Later(reason))) => {
            Err(Error::InvalidManifest { path: path.to_owned(), reason })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(SmallFile::Absent),
        Err(error) => Err(Error::io("read", path, 0, error)),
    }
}

/// A value whose JSON has the version of the format.
pub(crate) fn parse_format<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unusable> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
    let Version { format } = json::read(bytes).map_err(damaged)?;
    let reason = format!("it has format {format}, expected {FORMAT}");
    match format {
        FORMAT => json::read(bytes).map_err(damaged),
        0 => Err(Unusable::Damaged(reason)),
        _ => Err(Unusable::Later(reason)),
    }
}

/// Writes a file, in place of what was there.
pub(crate) fn write_small(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| Error::InvalidManifest {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    text.push(b'\n');
    if path.is_dir() {
        remove_any(path)?; // no file takes its place
    }
    write_atomically(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Result<SmallFile<serde_json::Value>, Error> {
        read_small(path, parse_format)
    }

    #[test]
    fn a_damaged_file_is_none_and_a_later_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        assert!(matches!(read(&path), Ok(SmallFile::Absent)));
        for text in ["", "{", "[]", "{\"format\":0}", "{\"format\":-1}"] {
            fs::write(&path, text).unwrap();
            assert!(matches!(read(&path), Ok(SmallFile::Damaged(_))), "{text}");
        }
        fs::write(&path, "{\"format\":2}").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("it has format 2, expected 1"), "{error}");
        fs::write(&path, "{\"format\":1}").unwrap();
        assert!(matches!(read(&path), Ok(SmallFile::Found(_))));
    }

    #[test]
    fn a_folder_and_a_file_of_a_terabyte_are_damaged_files() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(read(folder.path()), Ok(SmallFile::Damaged(_))));
        let path = folder.path().join("x.json");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let Ok(SmallFile::Damaged(reason)) = read(&path) else { panic!("it is damaged") };
        assert_eq!(reason, "it has 1099511627776 bytes, expected at most 33554432");
    }
}

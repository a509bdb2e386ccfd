//! Regular files: what is none is refused by its type, what is too long by its size.

use std::{
    fs::{File, Metadata},
    io::{self, ErrorKind, Read},
    path::Path,
    time::SystemTime,
};

use crate::error::Error;

/// What a path has that is no regular file, in words; none where it has one. To read a pipe would
/// wait forever, and a device may have no end.
#[must_use]
pub fn other_than_file(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return None;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("a pipe");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Some("a device");
        }
    }
    Some(if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else {
        "no file"
    })
}

/// What changes when a file is written or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) bytes: u64,
    pub(crate) written: Option<SystemTime>,
    /// Device and number of the file, where the system has such.
    pub(crate) number: (u64, u64),
}

impl FileIdentity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let number = (0, 0);
        Self { bytes: metadata.len(), written: metadata.modified().ok(), number }
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
///
/// If it is not there, is no regular file or is longer, which is known before it is read, or cannot
/// be read.
pub fn read_file(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    let read = || {
        let file = open_file(path)?;
        check_size(&file, limit)?;
        let mut bytes = vec![];
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// Opens a regular file to read. The type is looked at first, because to open a pipe waits.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    check_type(&path.metadata()?)?;
    let file = File::open(path)?;
    check_type(&file.metadata()?)?;
    Ok(file)
}

/// Refuses a file of more than `limit` bytes.
pub(crate) fn check_size(file: &File, limit: u64) -> io::Result<()> {
    let found = file.metadata()?.len();
    if found <= limit {
        return Ok(());
    }
    Err(invalid(format!("it has {found} bytes, at most {limit} are read")))
}

fn check_type(metadata: &Metadata) -> io::Result<()> {
    match other_than_file(metadata) {
        Some(found) => Err(invalid(format!("it is {found}, expected a file"))),
        None => Ok(()),
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::net::UnixListener};

    use super::*;

    #[test]
    fn a_file_is_read_and_what_is_none_is_refused_by_its_type() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "text").expect("a file");
        assert_eq!(read_file(&file, 4).expect("the text"), b"text");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        let cases = [
            (pipe.as_path(), "it is a pipe, expected a file"),
            (socket.as_path(), "it is a socket, expected a file"),
            (Path::new("/dev/zero"), "it is a device, expected a file"),
            (folder.path(), "it is a folder, expected a file"),
        ];
        for (path, reason) in cases {
            let error = read_file(path, 100).expect_err("no file").to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_by_its_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sparse");
        let file = File::create(&path).expect("a file");
        file.set_len(1 << 40).expect("a hole");
        let error = read_file(&path, 100).expect_err("too long").to_string();
        assert!(error.contains("it has 1099511627776 bytes, at most 100 are read"), "{error}");
    }
}

//! Lock of a destination, and the note of what its holder writes.
//!
//! The lock is a hidden file beside the destination. The system releases it with its process,
//! however that ends; what a killed process had written is known from the note in the file. Where
//! a file system has no locks, the file itself is the lock, and one that is there is another's.

#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind, Read, Seek, Write},
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    note::{Note, ending},
    recovery, write_error,
};
use crate::error::CliError;

/// Times that a lock is taken that its holder removes at the same moment.
const ATTEMPTS: usize = 1000;

/// Most bytes of a note that are read.
const MAX_NOTE: u64 = 1 << 20;

/// How a system locks an open file.
type TryLock = fn(&File) -> Result<(), TryLockError>;

/// Held until the process ends, or the value is dropped.
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    id: String,
    /// Names that are given just now, or that a killed process was about to give.
    unfinished: Vec<String>,
}

impl Lock {
    /// Takes the lock of this name in a folder, and removes the parts of a process that was
    /// killed with it. `destination` is what errors name.
    pub(super) fn take(folder: &Path, name: &str, destination: &Path) -> Result<Self, CliError> {
        Self::take_with(File::try_lock, folder, name, destination)
    }

    pub(super) fn take_with(
        try_lock: TryLock,
        folder: &Path,
        name: &str,
        destination: &Path,
    ) -> Result<Self, CliError> {
        let path = folder.join(name);
        let locked = || CliError::Locked { path: destination.to_owned() };
        for _ in 0..ATTEMPTS {
            let Some((file, is_new)) = open(&path, destination)? else { continue };
            match try_lock(&file) {
                Ok(()) if is_at(&file, &path) => {}
                Ok(()) => continue, // its holder has removed it
                Err(TryLockError::WouldBlock) => return Err(locked()),
                Err(TryLockError::Error(error)) if has_no_locks(&error) && is_new => {}
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                    return Err(CliError::LockFile { path: destination.to_owned(), lock: path });
                }
                Err(TryLockError::Error(error)) => {
                    discard(&path, is_new);
                    return Err(write_error(&path)(error));
                }
            }
            let mut lock = Self { file, path, id: new_id(), unfinished: vec![] };
            if let Err(error) = lock.recover(folder, destination).and_then(|()| lock.write()) {
                discard(&lock.path, is_new);
                return Err(error);
            }
            return Ok(lock);
        }
        Err(locked())
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// End of the names of parts.
    pub(super) fn ending(&self) -> String {
        ending(&self.id)
    }

    /// Whether a killed process was about to give this name.
    pub(super) fn was_unfinished(&self, name: &str) -> bool {
        self.unfinished.iter().any(|unfinished| unfinished == name)
    }

    /// Whether the note has to stay, because files are left of a killed process.
    pub(super) fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// All names are given.
    pub(super) fn finish(&mut self) {
        self.unfinished.clear();
    }

    /// Whether a file is the lock, or of a process that was killed.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.path.file_name().is_some_and(|own| own == name) || self.was_unfinished(name)
    }

    /// Notes the names that are given from now on, the most important last. Returns what the note
    /// had before.
    pub(super) fn note(&mut self, names: &[String]) -> Result<Vec<String>, CliError> {
        let before = self.unfinished.clone();
        self.unfinished.retain(|name| !names.contains(name));
        self.unfinished.extend_from_slice(names);
        let noted =
            self.write().and_then(|()| self.file.sync_all().map_err(write_error(&self.path)));
        if let Err(error) = noted {
            self.restore(before);
            return Err(error);
        }
        Ok(before)
    }

    /// Takes a note back: no name was given.
    pub(super) fn restore(&mut self, before: Vec<String>) {
        self.unfinished = before;
        let _ = self.write(); // what it says of names that are not there does no harm
    }

    /// Writes the note over the last one, and then cuts off the rest of that: a process that is
    /// killed between leaves one that can be read.
    fn write(&mut self) -> Result<(), CliError> {
        let text = Note { id: self.id.clone(), names: self.unfinished.clone() }.text();
        let file = &mut self.file;
        let written = file
            .rewind()
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64));
        written.map_err(write_error(&self.path))
    }

    /// Reads the note of a process that was killed, and ends what it says.
    fn recover(&mut self, folder: &Path, destination: &Path) -> Result<(), CliError> {
        let mut text = vec![];
        let read = (&self.file).take(MAX_NOTE).read_to_end(&mut text);
        read.map_err(write_error(&self.path))?;
        let note = Note::parse(&text).filter(recovery::is_plain);
        let Some(note) = note else {
            let (path, lock) = (destination.to_owned(), self.path.clone());
            return Err(CliError::NoLock { path, lock });
        };
        self.unfinished = recovery::recover(folder, &note)?;
        Ok(())
    }
}

/// Opens the file of a lock, and says whether it was made here; none where its holder removes it
/// just now. A link is not followed: whoever may write into a folder could else have any file of
/// its user overwritten.
fn open(path: &Path, destination: &Path) -> Result<Option<(File, bool)>, CliError> {
    let mut options = File::options();
    options.read(true).write(true);
    #[cfg(unix)]
    options.custom_flags(libc::O_NOFOLLOW);
    match options.clone().create_new(true).open(path) {
        Ok(file) => return Ok(Some((file, true))),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(write_error(destination)(error)),
    }
    let Ok(found) = path.symlink_metadata() else { return Ok(None) };
    if let Some(found) = setun::other_than_file(&found) {
        return Err(CliError::NotAFile { path: path.to_owned(), found });
    }
    match options.open(path) {
        Ok(file) => Ok(Some((file, false))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(write_error(path)(error)),
    }
}

/// Removes a lock that was made and cannot be held.
fn discard(path: &Path, is_new: bool) {
    if is_new {
        let _ = fs::remove_file(path);
    }
}

/// Whether an error says that a file system has no locks, as some of networks.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ENOLCK) {
        return true;
    }
    error.kind() == ErrorKind::Unsupported
}

/// Differs between processes, and between the times of one process.
fn new_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", process::id(), now.as_nanos())
}

/// Whether an open file still has its path.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use super::identity::Identity;
        let open = file.metadata().ok().map(|found| Identity::of_metadata(&found));
        open.is_some() && open == Identity::of(path)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As on a file system that has none: who makes the file has the lock.
    #[test]
    fn the_file_is_the_lock_where_there_are_no_others() {
        let unsupported: TryLock = |_| Err(TryLockError::Error(ErrorKind::Unsupported.into()));
        #[cfg(unix)]
        let unsupported_too: TryLock =
            |_| Err(TryLockError::Error(io::Error::from_raw_os_error(libc::ENOLCK)));
        #[cfg(not(unix))]
        let unsupported_too = unsupported;
        let keep = tempfile::tempdir().expect("a folder");
        let (folder, place) = (keep.path(), keep.path().join("m.setun"));
        let take = |try_lock| Lock::take_with(try_lock, folder, ".m.setun.lock", &place);
        let first = take(unsupported).expect("it is free");
        let part = folder.join(format!("m.setun{}", first.ending()));
        fs::write(&part, "half").expect("a part");
        let error = take(unsupported_too).map(|_| ()).expect_err("it is held").to_string();
        assert!(error.contains("[busy]") && error.contains(".m.setun.lock"), "{error}");
        assert!(part.exists(), "a part of one that may live is nobody else's to remove");
        fs::remove_file(first.path()).expect("its holder ends");
        take(unsupported_too).map(|_| ()).expect("it is free again");
    }

    #[test]
    fn a_lock_that_cannot_be_held_leaves_no_file() {
        let keep = tempfile::tempdir().expect("a folder");
        let failing: TryLock = |_| Err(TryLockError::Error(ErrorKind::PermissionDenied.into()));
        let taken = Lock::take_with(failing, keep.path(), ".m.lock", &keep.path().join("m"));
        assert!(matches!(taken.map(|_| ()), Err(CliError::Write { .. })));
        assert_eq!(fs::read_dir(keep.path()).expect("the folder").count(), 0);
    }
}

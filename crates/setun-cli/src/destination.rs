//! Destination of a command that writes: files that appear whole, or not at all.
//!
//! Each file is written beside its place, as `NAME.ID.part`, and gets its name by a rename once all
//! files of the command are on the disk. Until then the destination is locked, so that two
//! processes never mix their files. An error or a signal removes the parts; those of a process
//! that was killed are removed by the next one with the same destination.

mod export;
mod identity;
mod lock;
mod moves;
mod note;
mod publish;
mod recovery;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::{error::CliError, interrupt};
pub use export::{check_export, export};
pub(crate) use identity::Identity;
use lock::Lock;

/// Files of one folder that are written together.
pub(crate) struct Destination {
    folder: PathBuf,
    force: bool,
    /// Files that are read meanwhile.
    sources: Vec<Identity>,
    parts: BTreeMap<String, File>,
    lock: Lock,
    /// Whether the folder was made here.
    made: bool,
    /// Whether nothing is to be removed any more: the lock may be another's by now.
    cleaned: bool,
}

impl Destination {
    /// One file, and its name in its folder. With `force` it may take the place of another.
    ///
    /// # Errors
    ///
    /// If its folder is not there, or another process writes it.
    pub(crate) fn file(path: &Path, force: bool) -> Result<(Self, String), CliError> {
        let place = resolve(path)?;
        let folder = match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let Some(name) = place.file_name() else {
            return Err(CliError::NotAFile { path: path.to_owned(), found: "a folder" });
        };
        let Some(name) = name.to_str().map(str::to_owned) else {
            let found = path.display();
            let reason = format!("the name of the file to write, `{found}`, is not UTF-8");
            return Err(CliError::Usage(reason));
        };
        match folder.metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(CliError::NotAFolder { path: folder }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CliError::NoFolder { path: path.to_owned(), folder });
            }
            Err(error) => return Err(write_error(path)(error)),
        }
        // No signal ends the process between a file and the note that it is to be removed.
        let mut unfinished = interrupt::unfinished();
        let lock = Lock::take(&folder, &format!(".{name}.lock"), path)?;
        Ok((Self::new(folder, force, lock, false, &mut unfinished), name))
    }

    /// A folder, which is made where it is not there. Without `force` it has to be empty, but for
    /// what a killed process has left there.
    ///
    /// # Errors
    ///
    /// If the folder above it is not there, it has other files, or another process writes it.
    pub(crate) fn folder(path: &Path, force: bool) -> Result<Self, CliError> {
        let mut unfinished = interrupt::unfinished();
        let made = make_folder(path)?;
        let lock = Lock::take(path, ".setun.lock", path);
        if made && lock.is_err() {
            let _ = fs::remove_dir(path); // not where another process has begun to write
        }
        let destination = Self::new(path.to_owned(), force, lock?, made, &mut unfinished);
        drop(unfinished); // it is taken once more where the destination is dropped
        if !force {
            destination.check_empty()?;
        }
        Ok(destination)
    }

    fn new(
        folder: PathBuf,
        force: bool,
        lock: Lock,
        made: bool,
        unfinished: &mut Vec<PathBuf>,
    ) -> Self {
        if made {
            unfinished.push(folder.clone());
        }
        if !lock.has_unfinished() {
            unfinished.push(lock.path().to_owned());
        }
        Self { folder, force, sources: vec![], parts: BTreeMap::new(), lock, made, cleaned: false }
    }

    /// Files that are read, and therefore not to be written.
    pub(crate) fn protect(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.sources.extend(files.into_iter().filter_map(|path| Identity::of(&path)));
    }

    /// Whether a file of this name may be written.
    ///
    /// # Errors
    ///
    /// If it is there and may not be replaced, or is one that is read.
    pub(crate) fn check(&self, name: &str) -> Result<(), CliError> {
        let path = self.folder.join(name);
        let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
        if Identity::of(&path).is_some_and(|found| self.sources.contains(&found)) {
            return Err(CliError::IsSource { path });
        }
        match setun::other_than_file(&metadata) {
            Some(found) => Err(CliError::NotAFile { path, found }),
            None if self.force || self.lock.was_unfinished(name) => Ok(()),
            None => Err(CliError::Exists { path }),
        }
    }

    /// Writes a part of a file.
    pub(crate) fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), CliError> {
        let failed = write_error(&self.folder.join(name));
        let mut file = self.part(name)?;
        file.seek(SeekFrom::Start(offset)).map_err(&failed)?;
        file.write_all(bytes).map_err(failed)
    }

    /// The file that is to get this name.
    fn part(&mut self, name: &str) -> Result<&File, CliError> {
        if !self.parts.contains_key(name) {
            self.check(name)?;
            let path = self.part_path(name);
            // The signal handler has this lock until the process ends: nothing is made after it.
            let mut unfinished = interrupt::unfinished();
            let made = File::options().write(true).create_new(true).open(&path);
            let file = made.map_err(write_error(&path))?;
            unfinished.push(path);
            self.parts.insert(name.to_owned(), file);
        }
        Ok(&self.parts[name])
    }

    /// Refuses a folder with files that are not of a process which was killed.
    fn check_empty(&self) -> Result<(), CliError> {
        let failed = |source| setun::Error::Io { path: self.folder.clone(), source };
        let mut found = vec![];
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if !self.lock.is_own(&name) {
                found.push(name);
            }
        }
        found.sort();
        match found.into_iter().next() {
            Some(first) => Err(CliError::NotEmpty { path: self.folder.clone(), first }),
            None => Ok(()),
        }
    }

    /// Where a file is that is to get this name.
    pub(crate) fn part_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{}", self.lock.ending()))
    }

    /// Removes what is not published, and the lock. The first error is reported, not that of a
    /// removal.
    fn clean(&mut self, unfinished: &mut Vec<PathBuf>) {
        if std::mem::replace(&mut self.cleaned, true) {
            return;
        }
        let mut paths: Vec<PathBuf> = self.parts.keys().map(|name| self.part_path(name)).collect();
        self.parts.clear();
        if !self.lock.has_unfinished() {
            paths.push(self.lock.path().to_owned());
        }
        if self.made {
            paths.push(self.folder.clone());
        }
        for path in &paths {
            interrupt::remove(path);
        }
        unfinished.retain(|path| !paths.contains(path) && *path != self.folder);
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        self.clean(&mut interrupt::unfinished());
    }
}

/// What a link leads to; another path as it is.
fn resolve(path: &Path) -> Result<PathBuf, CliError> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => path.canonicalize().map_err(|_| CliError::NotAFile {
            path: path.to_owned(),
            found: "a link that leads nowhere",
        }),
        _ => Ok(path.to_owned()),
    }
}

/// Makes a folder in one that is there; false where it is there itself.
fn make_folder(path: &Path) -> Result<bool, CliError> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(_) if path.is_dir() => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            Err(CliError::NoFolder { path: path.to_owned(), folder })
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(CliError::NotAFolder { path: path.to_owned() })
        }
        Err(source) => Err(CliError::Write { path: path.to_owned(), source }),
    }
}

fn write_error(path: &Path) -> impl Fn(io::Error) -> CliError + use<> {
    let path = path.to_owned();
    move |source| CliError::Write { path: path.clone(), source }
}

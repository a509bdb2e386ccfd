//! Images of weights: files that hold the weights of a model as a processor keeps them, to be
//! mapped instead of read.
//!
//! A mapped image is opened in the time that its index takes, and its memory is the system's, which
//! all processes share. It is a file of its own, written when a model is first opened with it, or the
//! end of a `.setun` file.

mod container;
mod index;
mod map;

use std::{
    fs::{self, File, FileTimes, OpenOptions, TryLockError},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use setun_ops::{
    aligned::LINE,
    image::{MappedWeight, WeightBytes},
};

use self::{
    index::{FileHead, Found, HEAD_BYTES},
    map::map,
};
use crate::{error::Error, source::open_file};

pub(crate) use self::container::ImageRoom;
pub use self::container::check_weight_image;

/// In the names of new files, so that those of one process have names of their own.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// End of the names of files that are not complete.
const PARTIAL: &str = ".partial";

/// How old the file of a writer is that may have ended: a new one is locked long before.
const ABANDONED: Duration = Duration::from_mins(1);

/// Where the image of a model is, or is to be.
#[derive(Clone, Debug)]
pub(crate) struct WeightImageFile {
    path: PathBuf,
    /// What the weights depend on, in words: the files, the configuration, the options.
    identity: String,
    /// Its bytes in a `.setun` file; none where the file is the image.
    range: Option<Range<u64>>,
}

impl WeightImageFile {
    pub(crate) fn new(path: impl Into<PathBuf>, identity: String) -> Self {
        Self { path: path.into(), identity, range: None }
    }

    /// The weights, mapped; none where there is no image, or it is of another model or version, or
    /// has been written to since.
    ///
    /// # Errors
    ///
    /// If the file is there and is no image, or cannot be read.
    pub(crate) fn open(&self) -> Result<Option<Vec<MappedWeight>>, Error> {
        let failed = |source| Error::Io { path: self.path.clone(), source };
        let mut file = match open_file(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let range = self.range.clone().unwrap_or(0..u64::MAX);
        file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
        let head = match FileHead::find(&read_up_to(&mut file, HEAD_BYTES).map_err(failed)?) {
            Found::Head(head) => head,
            Found::OtherVersion => return Ok(None),
            Found::Nothing => return Err(Error::NotAnImage { path: self.path.clone() }),
        };
        let metadata = file.metadata().map_err(failed)?;
        // A `.setun` file is as long as its manifest says, and is copied as it likes.
        let is_current = if self.range.is_some() {
            head.bytes == range.end - range.start && metadata.len() == range.end
        } else {
            let written = metadata.modified().ok().and_then(seconds);
            head.bytes == metadata.len() && written == Some(head.written)
        };
        if !is_current {
            return Ok(None);
        }
        // Nothing is mapped, or read where it cannot be, before it is known to be of use.
        let Some(index_bytes) = head.index_bytes() else { return Ok(None) };
        let index = read_up_to(&mut file, index_bytes).map_err(failed)?;
        let Some(weights) = index::read(&index, &self.identity) else { return Ok(None) };
        let bytes = map(&file, range.start..range.start + head.bytes).map_err(failed)?;
        let shared = |part: Range<usize>| bytes.slice(part);
        Ok(weights.into_iter().map(|weight| weight.try_map(shared)).collect())
    }

    /// Begins a new image beside the place where it will be.
    ///
    /// # Errors
    ///
    /// If nothing can be written there.
    pub(crate) fn create(self) -> Result<NewImage, Error> {
        self.remove_abandoned();
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}{PARTIAL}", process::id()));
        let partial = self.path.with_file_name(name);
        let created = OpenOptions::new().write(true).create_new(true).open(&partial);
        match created {
            Ok(file) => {
                // Where there are no locks nothing of another writer is removed, either.
                let _unlocked = file.try_lock();
                Ok(NewImage { target: self, partial: Some(partial), file })
            }
            Err(source) => Err(Error::Unwritable { path: self.path, source }),
        }
    }

    /// Removes what writers have left that ended before their images were complete. What cannot be
    /// removed stays.
    fn remove_abandoned(&self) {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return;
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let prefix = format!("{}.", name.to_string_lossy());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let found = entry.file_name();
            let found = found.to_string_lossy();
            let is_part = found.starts_with(&prefix) && found.ends_with(PARTIAL);
            if is_part && is_abandoned(&entry.path()).unwrap_or(false) {
                let _stays = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether nobody writes to a file, and nobody has for a while.
fn is_abandoned(path: &Path) -> io::Result<bool> {
    let file = open_file(path)?;
    let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
    match file.try_lock_shared() {
        Ok(()) => Ok(age >= ABANDONED),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The next bytes of a file, fewer at its end.
fn read_up_to(file: &mut File, bytes: usize) -> io::Result<Vec<u8>> {
    let mut read = vec![];
    file.take(bytes as u64).read_to_end(&mut read)?;
    Ok(read)
}

/// An image that is being written; nothing is left of one that is not complete.
#[derive(Debug)]
pub(crate) struct NewImage {
    target: WeightImageFile,
    /// The file while it is not complete; none where it is written into a `.setun` file.
    partial: Option<PathBuf>,
    file: File,
}

impl NewImage {
    /// Writes the weights of a model, then puts the image in its place.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(self, weights: &[WeightBytes<'_>]) -> Result<(), Error> {
        let written = self.write_all(weights).and_then(|()| match &self.partial {
            Some(partial) => fs::rename(partial, self.path()),
            None => Ok(()),
        });
        written.map_err(|source| Error::Unwritable { path: self.path().into(), source })
    }

    fn path(&self) -> &Path {
        &self.target.path
    }

    fn write_all(&self, weights: &[WeightBytes<'_>]) -> io::Result<()> {
        // An even second, which every file system keeps, and hardly any other write falls on.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // Within a `.setun` file nobody compares it, and the same model gives the same bytes.
        let now = if self.partial.is_some() { now / 2 * 2 } else { 0 };
        let (head, starts) = index::write(&self.target.identity, weights, now);
        let start = self.target.range.as_ref().map_or(0, |range| range.start);
        let mut out = BufWriter::new(&self.file);
        out.seek(SeekFrom::Start(start))?;
        out.write_all(&head)?;
        let mut at = head.len() as u64;
        let parts = weights.iter().flat_map(|weight| &weight.parts);
        for (part, start) in parts.zip(starts) {
            let padding = usize::try_from(start - at).unwrap_or(LINE);
            out.write_all(&[0; LINE][..padding])?;
            out.write_all(part)?;
            at = start + part.len() as u64;
        }
        out.flush()?;
        drop(out);
        if self.partial.is_some() {
            self.close(now)?;
        }
        self.file.sync_all()
    }

    /// Gives a file of its own what says that nobody has written to it since.
    fn close(&self, now: u64) -> io::Result<()> {
        #[cfg(unix)]
        {
            let mut permissions = self.file.metadata()?.permissions();
            permissions.set_readonly(true);
            self.file.set_permissions(permissions)?;
        }
        self.file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(now)))
    }
}

impl Drop for NewImage {
    fn drop(&mut self) {
        // After it was put in its place there is nothing of this name.
        if let Some(partial) = &self.partial {
            let _absent = fs::remove_file(partial);
        }
    }
}

/// Seconds since 1970; none where there is a part of one.
fn seconds(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    (since.subsec_nanos() == 0).then_some(since.as_secs())
}

#[cfg(test)]
mod tests;

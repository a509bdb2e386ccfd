//! Images of weights: files that hold the weights of a model as a processor keeps them, to be
//! mapped instead of read.
//!
//! A mapped image is opened in the time that its index takes, and its memory is the system's, which
//! all processes share. It is written once, when a model is first opened with it.

mod index;
mod map;

use std::{
    fs::{self, File, FileTimes, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use setun_ops::image::{MappedWeight, WeightBytes};

use self::{
    index::{Head, LINE, Place},
    map::map,
};
use crate::{error::Error, source::open_file};

/// Numbers of new files, so that those of one process have names of their own.
static NEW: AtomicU64 = AtomicU64::new(0);

/// Where the image of a model is, or is to be.
#[derive(Clone, Debug)]
pub(crate) struct WeightImageFile {
    path: PathBuf,
    /// What the weights depend on, in words: the files, the configuration, the options.
    identity: String,
}

impl WeightImageFile {
    pub(crate) fn new(path: impl Into<PathBuf>, identity: String) -> Self {
        Self { path: path.into(), identity }
    }

    /// The weights, mapped; none where there is no image, or it is of another model or version, or
    /// has been written to since.
    ///
    /// # Errors
    ///
    /// If the file is there and is no image, or cannot be read.
    pub(crate) fn open(&self) -> Result<Option<Vec<MappedWeight>>, Error> {
        let failed = |source| Error::Io { path: self.path.clone(), source };
        let file = match open_file(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(failed)?;
        let bytes = map(&file, metadata.len()).map_err(failed)?;
        let Some(head) = Head::read(&bytes) else {
            return Err(Error::NotAnImage { path: self.path.clone() });
        };
        let written = metadata.modified().ok().and_then(seconds);
        if head.bytes != metadata.len() || written != Some(head.written) {
            return Ok(None);
        }
        Ok(head.weights(&bytes, &self.identity))
    }

    /// Begins a new image beside the place where it will be.
    ///
    /// # Errors
    ///
    /// If nothing can be written there.
    pub(crate) fn create(self) -> Result<NewImage, Error> {
        let number = NEW.fetch_add(1, Ordering::Relaxed);
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}.partial", process::id()));
        let partial = self.path.with_file_name(name);
        let created = OpenOptions::new().write(true).create_new(true).open(&partial);
        match created {
            Ok(file) => Ok(NewImage { target: self, partial, file }),
            Err(source) => Err(Error::Unwritable { path: self.path, source }),
        }
    }
}

/// An image that is being written; nothing is left of one that is not complete.
#[derive(Debug)]
pub(crate) struct NewImage {
    target: WeightImageFile,
    partial: PathBuf,
    file: File,
}

impl NewImage {
    /// Writes the weights of a model, then puts the image in its place.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(self, weights: &[WeightBytes<'_>]) -> Result<(), Error> {
        let written = self.write_all(weights).and_then(|()| fs::rename(&self.partial, self.path()));
        written.map_err(|source| Error::Unwritable { path: self.path().into(), source })
    }

    fn path(&self) -> &Path {
        &self.target.path
    }

    fn write_all(&self, weights: &[WeightBytes<'_>]) -> io::Result<()> {
        // A whole second, which hardly any other write falls on.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (head, places) = index::write(&self.target.identity, weights, now);
        let mut out = BufWriter::with_capacity(1 << 20, &self.file);
        out.write_all(&head)?;
        let mut at = head.len() as u64;
        let parts = weights.iter().flat_map(|weight| &weight.parts);
        for (part, Place { start, .. }) in parts.zip(places) {
            let padding = usize::try_from(start - at).unwrap_or(LINE);
            out.write_all(&[0; LINE][..padding])?;
            out.write_all(part)?;
            at = start + part.len() as u64;
        }
        out.flush()?;
        drop(out);
        #[cfg(unix)]
        {
            let mut permissions = self.file.metadata()?.permissions();
            permissions.set_readonly(true);
            self.file.set_permissions(permissions)?;
        }
        self.file
            .set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(now)))?;
        self.file.sync_all()
    }
}

impl Drop for NewImage {
    fn drop(&mut self) {
        // After it was put in its place there is nothing of this name.
        let _absent = fs::remove_file(&self.partial);
    }
}

/// Seconds since 1970; none where there is a part of one.
fn seconds(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    (since.subsec_nanos() == 0).then_some(since.as_secs())
}

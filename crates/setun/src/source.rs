//! Places that a model's bytes are read from.

#[cfg(not(target_family = "wasm"))]
mod find;
mod folder;
#[cfg(not(target_family = "wasm"))]
mod local_file;
#[cfg(not(target_family = "wasm"))]
mod locate;
#[cfg(not(target_family = "wasm"))]
mod readahead;
#[cfg(unix)]
mod shared_read;

#[cfg(not(target_family = "wasm"))]
use std::path::Path;
use std::{ops::Range, sync::Arc};

use futures::{
    future::{FutureExt, LocalBoxFuture, ready},
    lock::{Mutex, MutexGuard},
};
use setun_checkpoint::{Options, ReadRequest, Source};
use setun_model::MaybeSend;

use crate::error::Error;

#[cfg(not(target_family = "wasm"))]
pub use find::{FoundModel, find_model};
pub use folder::ModelFolder;
#[cfg(not(target_family = "wasm"))]
pub(crate) use local_file::{FileIdentity, open_file};
#[cfg(not(target_family = "wasm"))]
pub use local_file::{other_than_file, read_file};
#[cfg(not(target_family = "wasm"))]
pub use locate::locate;

/// The story model that comes with this crate, as one file.
#[cfg(feature = "embedded-model")]
pub const EMBEDDED_MODEL: &[u8] = include_bytes!("../embedded/stories.safetensors");

/// Name of the embedded model.
pub const EMBEDDED_NAME: &str = "setun-stories";

/// Where a model's bytes are: a folder, a file, several files, memory, or a host's
/// [`ModelBytes`]. It can be read again where a device was lost. Clones share the bytes.
#[derive(Clone)]
pub struct ModelSource {
    pub(crate) layout: Source,
    pub(crate) options: Options,
    pub(crate) name: String,
    bytes: Arc<Mutex<Box<dyn ModelBytes>>>,
}

impl ModelSource {
    /// Files that are laid out as `layout` says. `name` is what the model is reported by.
    pub fn new(layout: Source, name: impl Into<String>, bytes: impl ModelBytes + 'static) -> Self {
        let (options, name) = (Options::default(), name.into());
        Self { layout, options, name, bytes: Arc::new(Mutex::new(Box::new(bytes))) }
    }

    /// The model at a path, which is a folder in Hugging Face's layout or a `.safetensors`, `.gguf`,
    /// `.onnx` or `.setun` file, or of a name ([`find_model`]). Nothing is read yet.
    ///
    /// # Errors
    ///
    /// If there is no model.
    #[cfg(not(target_family = "wasm"))]
    pub fn open(model: impl AsRef<Path>) -> Result<Self, Error> {
        let FoundModel { path, name, .. } = find_model(model)?;
        let (folder, layout) = locate(&path)?;
        Ok(Self::new(layout, name, ModelFolder::new(folder)))
    }

    /// The story model that comes with this crate.
    #[cfg(feature = "embedded-model")]
    #[must_use]
    pub fn embedded() -> Self {
        Self::new(Source::File(EMBEDDED_NAME.into()), EMBEDDED_NAME, StaticFile(EMBEDDED_MODEL))
    }

    /// The same with what its files do not say of themselves.
    #[must_use]
    pub fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The bytes, for as long as they are read.
    pub(crate) async fn bytes(&self) -> MutexGuard<'_, Box<dyn ModelBytes>> {
        self.bytes.lock().await
    }
}

/// A model's bytes, to be read once, and again where a device was lost.
pub trait ModelBytes: MaybeSend {
    /// Replaces `bytes` by what is requested, or by as much of it as there is. False where there is
    /// no such file.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read.
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>>;

    /// Size of a file; none where it is not known without reading it.
    fn file_bytes(&mut self, _file: &str) -> Option<u64> {
        None
    }

    /// A text that changes when a file is written or replaced; none where that is not known.
    #[cfg(not(target_family = "wasm"))]
    fn file_version(&mut self, _file: &str) -> Option<String> {
        None
    }

    /// Says that about this many bytes may be read before they are requested, 0 for none. Whoever
    /// reads in another way need not heed it.
    fn prefetch(&mut self, _bytes: usize) {}

    /// Called before all is read from its beginning: at first, and where it is read once more.
    fn rewind(&mut self) {}

    /// Called once all is read, or reading has failed: what is open can be closed, until the next
    /// [`read`](Self::read).
    fn close(&mut self) {}
}

impl ModelBytes for ModelFolder {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        ready(Self::read(self, want, bytes)).boxed_local()
    }

    fn file_bytes(&mut self, file: &str) -> Option<u64> {
        Self::file_bytes(self, file)
    }

    #[cfg(not(target_family = "wasm"))]
    fn file_version(&mut self, file: &str) -> Option<String> {
        Self::file_version(self, file)
    }

    fn prefetch(&mut self, bytes: usize) {
        Self::prefetch(self, bytes);
    }

    fn close(&mut self) {
        Self::close(self);
    }
}

/// One file that is part of the program.
#[cfg(feature = "embedded-model")]
struct StaticFile(&'static [u8]);

#[cfg(feature = "embedded-model")]
impl ModelBytes for StaticFile {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        bytes.clear();
        bytes.extend_from_slice(slice(self.0, want.range.clone()));
        ready(Ok(true)).boxed_local()
    }
}

/// A part of a file in memory, or as much of it as there is.
pub(crate) fn slice(bytes: &[u8], range: Option<Range<u64>>) -> &[u8] {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    range.map_or(bytes, |range| &bytes[at(range.start)..at(range.end)])
}

//! Where a model's bytes are.

use std::sync::Arc;

use futures::{
    future::{FutureExt, LocalBoxFuture, ready},
    lock::{Mutex, MutexGuard},
};
use setun_checkpoint::{Options, ReadRequest, Source};
use setun_model::MaybeSend;

use crate::{error::Error, files::Files};

/// Where a model's bytes are, to be read once, and again where a device was lost.
pub trait ModelBytes: MaybeSend {
    /// Replaces `bytes` by what is wanted, or by as much of it as there is. False where there is
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

    /// Says that about so many bytes may be read before they are wanted, 0 for none. Whoever reads
    /// in another way need not heed it.
    fn prefetch(&mut self, _bytes: usize) {}

    /// Called before all is read from its beginning: at first, and where it is read once more.
    fn rewind(&mut self) {}

    /// Called once all is read, or reading has failed: what is open can be closed, until the next
    /// [`read`](Self::read).
    fn close(&mut self) {}
}

impl ModelBytes for Files {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        ready(Self::read(self, want, bytes)).boxed_local()
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
pub(crate) struct Embedded(pub(crate) &'static [u8]);

#[cfg(feature = "embedded-model")]
impl ModelBytes for Embedded {
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
pub(crate) fn slice(bytes: &[u8], range: Option<std::ops::Range<u64>>) -> &[u8] {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    range.map_or(bytes, |range| &bytes[at(range.start)..at(range.end)])
}

/// What it takes to read a model from its beginning. Clones share the bytes.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) source: Source,
    pub(crate) options: Options,
    pub(crate) name: String,
    bytes: Arc<Mutex<Box<dyn ModelBytes>>>,
}

impl Origin {
    pub(crate) fn new(source: Source, name: String, bytes: impl ModelBytes + 'static) -> Self {
        let options = Options::default();
        Self { source, options, name, bytes: Arc::new(Mutex::new(Box::new(bytes))) }
    }

    /// The bytes, for as long as they are read.
    pub(crate) async fn bytes(&self) -> MutexGuard<'_, Box<dyn ModelBytes>> {
        self.bytes.lock().await
    }
}

//! An executor with less memory than another has.

use setun_ops::OpsError;

use crate::{
    executor::{Bound, Executor},
    kernel::{Kernel, Tiles},
};

/// Has this many bytes of another's memory, and gives none back.
#[derive(Debug)]
pub struct Limited<E> {
    executor: E,
    limit: u64,
    taken: u64,
}

impl<E> Limited<E> {
    /// Limits this one.
    pub fn new(executor: E, limit: u64) -> Self {
        Self { executor, limit, taken: 0 }
    }

    /// Changes how much there is.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Bytes that were asked for and given.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

impl<E: Executor> Executor for Limited<E> {
    type Buffer = E::Buffer;
    type List = E::List;

    fn tiles(&self) -> Tiles {
        self.executor.tiles()
    }

    fn create_buffer(&mut self, what: &'static str, bytes: u64) -> Result<E::Buffer, OpsError> {
        if self.taken.saturating_add(bytes) > self.limit {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            return Err(OpsError::OutOfMemory { what, bytes });
        }
        let buffer = self.executor.create_buffer(what, bytes)?;
        self.taken += bytes;
        Ok(buffer)
    }

    fn max_buffer_bytes(&self) -> u64 {
        self.executor.max_buffer_bytes()
    }

    fn write(&mut self, buffer: &E::Buffer, offset: u64, data: &[u8]) -> Result<(), OpsError> {
        self.executor.write(buffer, offset, data)
    }

    fn copy(
        &mut self,
        from: (&E::Buffer, u64),
        to: (&E::Buffer, u64),
        bytes: u64,
    ) -> Result<(), OpsError> {
        self.executor.copy(from, to, bytes)
    }

    fn compile(&mut self, kernels: &[Kernel]) -> Result<(), OpsError> {
        self.executor.compile(kernels)
    }

    fn record(&mut self, launches: &[Bound<'_, E::Buffer>]) -> Result<E::List, OpsError> {
        self.executor.record(launches)
    }

    fn play(&mut self, list: &E::List, chunks: u32) -> Result<(), OpsError> {
        self.executor.play(list, chunks)
    }

    fn play_times(&mut self, list: &E::List, chunks: u32, times: usize) -> Result<(), OpsError> {
        self.executor.play_times(list, chunks, times)
    }

    async fn read(
        &mut self,
        buffer: &E::Buffer,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        self.executor.read(buffer, offset, out).await
    }
}

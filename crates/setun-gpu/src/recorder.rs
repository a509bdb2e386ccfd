//! An executor for tests, which records the calls to another and can make them fail.

use std::{collections::HashSet, time::Duration};

use setun_ops::OpsError;

use crate::{
    executor::{Bound, Executor},
    kernel::{Kernel, Tiles},
    launch::When,
};

/// A call to an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedCalls {
    /// Memory and lists that were made.
    pub created: usize,
    /// Kernels, each counted once.
    pub kernels: usize,
    /// Bytes written to the device.
    pub written: usize,
    /// Times that lists were played: submissions.
    pub played: usize,
    /// Launches that took part.
    pub launches: usize,
    /// Bytes read back.
    pub read: usize,
}

/// Plays what another plays, and records it.
#[derive(Debug)]
pub struct Recorder<E> {
    executor: E,
    kernels: HashSet<Kernel>,
    /// All so far.
    pub calls: RecordedCalls,
    /// Bytes of memory that were given; none counts as given back.
    pub taken: u64,
    /// Most bytes that it gives.
    pub limit: u64,
    /// A shader whose last group of workgroups is left out, as a driver may that miscounts; with
    /// steps, only in the launches of these.
    pub spoiled: Option<(&'static str, Option<When>)>,
}

impl<E> Recorder<E> {
    /// Records the calls to this one.
    pub fn new(executor: E) -> Self {
        let (kernels, calls) = (HashSet::new(), RecordedCalls::default());
        Self { executor, kernels, calls, taken: 0, limit: u64::MAX, spoiled: None }
    }

    /// Gives no more than these bytes of memory.
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    fn is_spoiled<B>(&self, launch: &Bound<'_, B>) -> bool {
        self.spoiled.is_some_and(|(shader, when)| {
            launch.kernel.shader().name == shader && when.is_none_or(|when| when == launch.when)
        })
    }

    fn record_kernels(&mut self, kernels: impl Iterator<Item = Kernel>) {
        self.kernels.extend(kernels);
        self.calls.kernels = self.kernels.len();
    }
}

/// A list, and for each of its launches when it takes part and its layers.
pub struct RecordedList<L> {
    list: L,
    launches: Vec<(When, u32)>,
}

impl<L> RecordedList<L> {
    /// Launches that take part in a step.
    fn taking_part(&self, chunks: u32) -> usize {
        let layers = self.launches.iter().map(|(when, layers)| when.layers(*layers, chunks));
        layers.filter(|&layers| layers > 0).count()
    }
}

impl<E: Executor> Executor for Recorder<E> {
    type Buffer = E::Buffer;
    type List = RecordedList<E::List>;

    fn tiles(&self) -> Tiles {
        self.executor.tiles()
    }

    fn runs_hybrid(&self) -> bool {
        self.executor.runs_hybrid()
    }

    fn create_buffer(&mut self, what: &'static str, bytes: u64) -> Result<E::Buffer, OpsError> {
        if self.taken.saturating_add(bytes) > self.limit {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            return Err(OpsError::OutOfMemory { what, bytes });
        }
        let buffer = self.executor.create_buffer(what, bytes)?;
        self.calls.created += 1;
        self.taken += bytes;
        Ok(buffer)
    }

    fn max_buffer_bytes(&self) -> u64 {
        self.executor.max_buffer_bytes()
    }

    fn write(&mut self, buffer: &E::Buffer, offset: u64, data: &[u8]) -> Result<(), OpsError> {
        self.calls.written += data.len();
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
        self.record_kernels(kernels.iter().copied());
        self.executor.compile(kernels)
    }

    fn record(
        &mut self,
        launches: &[Bound<'_, E::Buffer>],
    ) -> Result<RecordedList<E::List>, OpsError> {
        self.calls.created += 1;
        self.record_kernels(launches.iter().map(|launch| launch.kernel));
        let bound = launches.iter().map(|launch| {
            let (mut grid, buffers) = (launch.grid, launch.buffers.clone());
            grid[0] -= u32::from(self.is_spoiled(launch));
            Bound { buffers, grid, ..*launch }
        });
        let bound: Vec<_> = bound.collect();
        let list = self.executor.record(&bound)?;
        let launches = launches.iter().map(|launch| (launch.when, launch.grid[2])).collect();
        Ok(RecordedList { list, launches })
    }

    fn play(&mut self, list: &RecordedList<E::List>, chunks: u32) -> Result<(), OpsError> {
        self.calls.played += 1;
        self.calls.launches += list.taking_part(chunks);
        self.executor.play(&list.list, chunks)
    }

    fn play_times(
        &mut self,
        list: &RecordedList<E::List>,
        chunks: u32,
        times: usize,
    ) -> Result<(), OpsError> {
        self.calls.played += 1;
        self.calls.launches += times * list.taking_part(chunks);
        self.executor.play_times(&list.list, chunks, times)
    }

    fn can_time(&self) -> bool {
        self.executor.can_time()
    }

    fn play_timed(
        &mut self,
        list: &mut RecordedList<E::List>,
        chunks: u32,
        times: &mut Vec<Duration>,
    ) -> Result<(), OpsError> {
        self.executor.play_timed(&mut list.list, chunks, times)
    }

    async fn read(
        &mut self,
        buffer: &E::Buffer,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        self.calls.read += out.len();
        self.executor.read(buffer, offset, out).await
    }
}

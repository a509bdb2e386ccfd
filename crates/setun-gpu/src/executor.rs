//! The executor trait: a device's memory, its compiled kernels and its queue.

use std::{future::Future, time::Duration};

use setun_ops::OpsError;

use crate::{
    kernel::{Kernel, PeakProducts, Tiles},
    launch::When,
};

/// A device. It knows buffers of bytes and compiled kernels, and nothing of models.
pub trait Executor {
    /// Memory of the device; clones share it.
    type Buffer: Clone;
    /// Launches made ready to be played again and again.
    type List;

    /// What its kernels take together.
    fn tiles(&self) -> Tiles {
        Tiles::default()
    }

    /// Whether it has the kernels of hybrid models.
    fn runs_hybrid(&self) -> bool {
        false
    }

    /// Its fastest products.
    fn peak_products(&self) -> PeakProducts {
        PeakProducts::Dots
    }

    /// Memory of this many bytes, all zero.
    ///
    /// # Errors
    ///
    /// If it exceeds what the device allows or has.
    fn create_buffer(&mut self, what: &'static str, bytes: u64) -> Result<Self::Buffer, OpsError>;

    /// Most bytes of a buffer.
    fn max_buffer_bytes(&self) -> u64;

    /// Queues a copy of `data`, whose length and place are multiples of 4 bytes.
    ///
    /// # Errors
    ///
    /// If the device is lost.
    fn write(&mut self, buffer: &Self::Buffer, offset: u64, data: &[u8]) -> Result<(), OpsError>;

    /// Queues a copy of bytes between buffers, or within one, without overlap.
    ///
    /// # Errors
    ///
    /// If the device is lost, or has no memory for a copy within a buffer.
    fn copy(
        &mut self,
        from: (&Self::Buffer, u64),
        to: (&Self::Buffer, u64),
        bytes: u64,
    ) -> Result<(), OpsError>;

    /// Queues the same copy between two buffers, from their beginnings, this many times.
    ///
    /// # Errors
    ///
    /// If the device is lost.
    fn copy_times(
        &mut self,
        from: &Self::Buffer,
        to: &Self::Buffer,
        bytes: u64,
        times: u32,
    ) -> Result<(), OpsError> {
        (0..times).try_for_each(|_| self.copy((from, 0), (to, 0), bytes))
    }

    /// Compiles kernels ahead of their use, beside other work where the device can. One that is
    /// refused is an error of what is requested next, or of whoever [records](Self::record) it.
    ///
    /// # Errors
    ///
    /// If the device is lost.
    fn compile(&mut self, kernels: &[Kernel]) -> Result<(), OpsError>;

    /// Compiles what is not compiled yet, and binds arguments.
    ///
    /// # Errors
    ///
    /// If the device refuses a kernel.
    fn record(&mut self, launches: &[Bound<'_, Self::Buffer>]) -> Result<Self::List, OpsError>;

    /// Queues the launches of a list that take part in a step of this many
    /// [chunks](crate::launch::CHUNK_POSITIONS) of positions.
    ///
    /// # Errors
    ///
    /// If the device is lost.
    fn play(&mut self, list: &Self::List, chunks: u32) -> Result<(), OpsError>;

    /// Queues them this many times, one after the other: what one writes, the next reads.
    ///
    /// # Errors
    ///
    /// If the device is lost.
    fn play_times(&mut self, list: &Self::List, chunks: u32, times: usize) -> Result<(), OpsError> {
        (0..times).try_for_each(|_| self.play(list, chunks))
    }

    /// Whether it reports the times of launches.
    fn can_time(&self) -> bool {
        false
    }

    /// Plays a list, waits, and puts what each launch took in `times`, nothing of those that take
    /// no part, where it [can](Self::can_time).
    ///
    /// # Errors
    ///
    /// If the device is lost.
    fn play_timed(
        &mut self,
        list: &mut Self::List,
        chunks: u32,
        _times: &mut Vec<Duration>,
    ) -> Result<(), OpsError> {
        self.play(list, chunks)
    }

    /// Waits for what is queued and copies bytes to the host. Lengths and places are multiples
    /// of 4 bytes.
    fn read(
        &mut self,
        buffer: &Self::Buffer,
        offset: u64,
        out: &mut [u8],
    ) -> impl Future<Output = Result<(), OpsError>>;
}

/// A launch whose arguments are memory.
#[derive(Debug)]
pub struct Bound<'a, B> {
    /// What runs.
    pub kernel: Kernel,
    /// The words of its shape.
    pub shape: &'a [u32],
    /// The step's inputs, then the kernel's arguments.
    pub buffers: Vec<B>,
    /// Workgroups.
    pub grid: [u32; 3],
    /// In which steps it takes part.
    pub when: When,
}

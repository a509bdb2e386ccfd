//! Launches, ready to be played: as a graph, or one by one by the device's clock.

use std::{ffi::c_void, time::Duration};

use cudarc::driver::{
    CudaEvent, CudaFunction, CudaGraph, CudaStream, DriverError, result, sys::CUevent_flags,
};

use super::CudaBuffer;
use crate::executor::Bound;

/// Launches of a step.
pub struct CudaList {
    pub(super) launches: Vec<RecordedLaunch>,
    pub(super) graph: Option<CudaGraph>,
    /// Made when times are first requested: before the first launch and after each.
    clock: Vec<CudaEvent>,
}

// SAFETY: a graph belongs to no thread; it is launched through an exclusive reference to its
// executor, so by one thread at a time.
unsafe impl Send for CudaList {}

/// A launch with its function and its memory, which it keeps alive.
pub(super) struct RecordedLaunch {
    function: CudaFunction,
    threads: u32,
    shape: Vec<u32>,
    memory: Vec<CudaBuffer>,
    grid: [u32; 3],
}

impl CudaList {
    pub(super) fn new(launches: Vec<RecordedLaunch>, graph: Option<CudaGraph>) -> Self {
        Self { launches, graph, clock: vec![] }
    }

    /// Plays all launches one by one, waits, and says what each took.
    pub(super) fn play_with_clock(
        &mut self,
        stream: &CudaStream,
        times: &mut Vec<Duration>,
    ) -> Result<(), DriverError> {
        let context = stream.context();
        context.bind_to_thread()?;
        while self.clock.len() <= self.launches.len() {
            self.clock.push(context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?);
        }
        self.clock[0].record(stream)?;
        for (launch, after) in self.launches.iter().zip(&self.clock[1..]) {
            launch.queue(stream)?;
            after.record(stream)?;
        }
        stream.synchronize()?;
        times.clear();
        for pair in self.clock.windows(2) {
            let milliseconds = pair[0].elapsed_ms(&pair[1])?;
            times.push(Duration::from_secs_f32(milliseconds.max(0.0) / 1000.0));
        }
        Ok(())
    }
}

impl RecordedLaunch {
    pub(super) fn new(
        bound: &Bound<'_, CudaBuffer>,
        (function, threads): (CudaFunction, u32),
    ) -> Self {
        let (shape, memory, grid) = (bound.shape.to_vec(), bound.buffers.clone(), bound.grid);
        Self { function, threads, shape, memory, grid }
    }

    /// Queues it, or adds it to the graph that is being made.
    pub(super) fn queue(&self, stream: &CudaStream) -> Result<(), DriverError> {
        let addresses: Vec<_> = self.memory.iter().map(|buffer| buffer.0.address).collect();
        let shape = self.shape.as_ptr().cast::<c_void>().cast_mut();
        let places = addresses.iter().map(|address| (&raw const *address).cast_mut().cast());
        let mut arguments: Vec<*mut c_void> = std::iter::once(shape).chain(places).collect();
        let [x, y, z] = self.grid;
        // SAFETY: the function takes its shape by value, whose words are all there, then the
        // addresses of its arguments, which `self` keeps alive; the driver copies both.
        unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                (x, y, z),
                (self.threads, 1, 1),
                0,
                stream.cu_stream(),
                &mut arguments,
            )
        }
    }
}

//! The executor over CUDA: a list is a graph that the device plays by itself.
#![expect(unsafe_code, reason = "the driver is called with addresses and arguments")]

mod compile;
mod list;
mod memory;
#[cfg(feature = "testing")]
mod testing;

use std::{collections::HashMap, sync::Arc, time::Duration};

pub use compile::{Target, compile};
use cudarc::{
    driver::{
        CudaContext, CudaEvent, CudaFunction, CudaStream, DriverError, result,
        sys::{self, CUevent_flags, CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode},
    },
    nvrtc::Ptx,
};
pub use list::CudaList;
use list::RecordedLaunch;
use memory::{Allocation, STAGED, Staging};
use setun_ops::OpsError;

use crate::{
    error::GpuError,
    executor::{Bound, Executor},
    kernel::{CUDA_TILES, CudaSource, Kernel, PeakProducts, Tiles},
    pipeline_cache::PipelineCache,
};

/// The first architecture with products of four bytes.
const MIN_ARCHITECTURE: u32 = 61;

/// And the first with products of tiles of this size.
const TILES_ARCHITECTURE: u32 = 80;

/// A CUDA device.
#[derive(Debug)]
pub struct Cuda {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    adapter: String,
    architecture: u32,
    total_bytes: u64,
    kernels: HashMap<Kernel, (CudaFunction, u32)>, // with the threads of a block
    code: PipelineCache<Result<Vec<u8>, String>>,
    staging: Staging,
    /// Where written bytes wait for the device, until the event of the last of them.
    sending: (Staging, CudaEvent),
    failure: Option<String>,
}

/// Memory of a [`Cuda`].
#[derive(Clone, Debug)]
pub struct CudaBuffer(Arc<Allocation>);

impl Cuda {
    /// The device of this number.
    ///
    /// # Errors
    ///
    /// If there is no driver or no such device, it is too old, or the compiler is missing.
    pub fn new(ordinal: usize) -> Result<Self, GpuError> {
        let absent = |reason: String| GpuError::NoAdapter { wanted: "cuda", reason };
        // SAFETY: loading the library runs its initialisers and nothing else.
        if !unsafe { sys::is_culib_present() } {
            return Err(absent("NVIDIA's driver (libcuda) is not installed".to_owned()));
        }
        check_driver().map_err(absent)?;
        let context = CudaContext::new(ordinal).map_err(|error| absent(message(error)))?;
        let adapter = context.name().map_err(|error| absent(message(error)))?;
        let refused = |reason| GpuError::NoDevice { adapter: adapter.clone(), reason };
        let failed = |error| refused(message(error));
        let (major, minor) = context.compute_capability().map_err(failed)?;
        let architecture = 10 * major.unsigned_abs() + minor.unsigned_abs();
        if architecture < MIN_ARCHITECTURE {
            let expected = format!("{}.{}", MIN_ARCHITECTURE / 10, MIN_ARCHITECTURE % 10);
            let found = format!("{major}.{minor}");
            return Err(refused(format!(
                "its compute capability is {found}, expected {expected} or more"
            )));
        }
        if !compile::is_present() {
            return Err(refused(compile::MISSING.to_owned()));
        }
        let stream = context.new_stream().map_err(failed)?;
        let total_bytes = context.total_mem().map_err(failed)? as u64;
        let staging = Staging::new(&context).map_err(failed)?;
        let sending = (
            Staging::new(&context).map_err(failed)?,
            context.new_event(Some(CUevent_flags::CU_EVENT_DISABLE_TIMING)).map_err(failed)?,
        );
        let (kernels, code, failure) = (HashMap::new(), PipelineCache::default(), None);
        Ok(Self {
            context,
            stream,
            adapter,
            architecture,
            total_bytes,
            kernels,
            code,
            staging,
            sending,
            failure,
        })
    }

    /// The names of all devices, in the order of their numbers; none without a driver.
    #[must_use]
    pub fn names() -> Vec<String> {
        // SAFETY: loading the library runs its initialisers and nothing else.
        if !unsafe { sys::is_culib_present() } || check_driver().is_err() {
            return vec![];
        }
        let count = CudaContext::device_count().ok().and_then(|count| usize::try_from(count).ok());
        let name = |ordinal| CudaContext::new(ordinal).and_then(|context| context.name()).ok();
        (0..count.unwrap_or(0)).filter_map(name).collect()
    }

    /// Name of the device, as the driver gives it.
    #[must_use]
    pub fn adapter(&self) -> &str {
        &self.adapter
    }

    /// Bytes of its memory that nobody uses, in any process.
    ///
    /// # Errors
    ///
    /// If the device is lost.
    pub fn free_bytes(&mut self) -> Result<u64, OpsError> {
        self.check()?;
        let found = self.context.bind_to_thread().and_then(|()| result::mem_get_info());
        found.map(|(free, _)| free as u64).map_err(|error| refused("a count of free memory", error))
    }

    /// The first failure, for the next call: after it the device does nothing more.
    fn check(&mut self) -> Result<(), OpsError> {
        if let Err(error) = self.context.check_err() {
            self.record(Err(error));
        }
        match &self.failure {
            Some(reason) => Err(OpsError::DeviceLost { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    fn record(&mut self, outcome: Result<(), DriverError>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert_with(|| message(error));
        }
    }

    fn kernel(&mut self, kernel: Kernel) -> Result<(CudaFunction, u32), OpsError> {
        if let Some(made) = self.kernels.get(&kernel) {
            return Ok(made.clone());
        }
        let CudaSource { name, threads, .. } = kernel.cuda();
        let lost = |reason| OpsError::DeviceLost { reason: format!("{name}: {reason}") };
        let code = self.code.get(kernel, self.compiler()).map_err(lost)?;
        let module = self.context.load_module(Ptx::from_binary(code)); // PTX too, as text
        let function = module.and_then(|module| module.load_function(name));
        let made = (function.map_err(|error| refused("a kernel", error))?, threads);
        self.kernels.insert(kernel, made.clone());
        Ok(made)
    }

    /// Needs no device, so that it may work beside one.
    fn compiler(&self) -> impl Fn(Kernel) -> Result<Vec<u8>, String> + Send + 'static {
        let target = compile::target_of(self.architecture);
        move |kernel| compile::compile(&kernel.cuda(), target)
    }

    /// Returns with `data` the caller's own again.
    fn send(&mut self, address: u64, data: &[u8]) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        if data.len() > STAGED {
            // SAFETY: the place has this many bytes, as the caller has checked; the data stays where
            // it is until the stream has been waited for.
            unsafe { result::memcpy_htod_async(address, data, self.stream.cu_stream())? };
            return self.stream.synchronize();
        }
        let (staging, sent) = &mut self.sending;
        sent.synchronize()?;
        let staged = &mut staging.bytes()[..data.len()];
        staged.copy_from_slice(data);
        // SAFETY: likewise; what is staged stays until the event that follows.
        unsafe { result::memcpy_htod_async(address, staged, self.stream.cu_stream())? };
        sent.record(&self.stream)
    }

    fn read_piece(&mut self, address: u64, out: &mut [u8]) -> Result<(), DriverError> {
        let staged = &mut self.staging.bytes()[..out.len()];
        // SAFETY: the source has this many bytes, as the caller has checked; the target stays
        // where it is until the stream has been waited for.
        unsafe {
            result::memcpy_dtoh_async(staged, address, self.stream.cu_stream())?;
        }
        self.stream.synchronize()?;
        out.copy_from_slice(&self.staging.bytes()[..out.len()]);
        Ok(())
    }
}

/// The oldest driver that has all that is called here, as 1000 × major + 10 × minor of CUDA.
const MIN_DRIVER: i32 = 12_000;

/// Whether the driver is new enough: what it lacks could not be called.
fn check_driver() -> Result<(), String> {
    let mut version = 0;
    // SAFETY: the library is there, every version has this function, and the number has a place.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(message)?;
    let number = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
    if version < MIN_DRIVER {
        let (found, expected) = (number(version), number(MIN_DRIVER));
        return Err(format!("NVIDIA's driver is for CUDA {found}, expected {expected} or later"));
    }
    Ok(())
}

/// A driver's error in its own words.
fn message(error: DriverError) -> String {
    match (error.error_name(), error.error_string()) {
        (Ok(name), Ok(text)) => format!("{} ({})", text.to_string_lossy(), name.to_string_lossy()),
        _ => format!("{error:?}"),
    }
}

fn beyond(what: &str) -> OpsError {
    OpsError::DeviceLost { reason: format!("{what} beyond the end of a buffer") }
}

impl Executor for Cuda {
    type Buffer = CudaBuffer;
    type List = CudaList;

    fn tiles(&self) -> Tiles {
        let has_tiles = self.architecture >= TILES_ARCHITECTURE;
        Tiles { many: CUDA_TILES.many.filter(|_| has_tiles), ..CUDA_TILES }
    }

    fn peak_products(&self) -> PeakProducts {
        let has_tiles = self.architecture >= TILES_ARCHITECTURE;
        if has_tiles { PeakProducts::Tiles } else { PeakProducts::Dots }
    }

    fn create_buffer(&mut self, what: &'static str, bytes: u64) -> Result<CudaBuffer, OpsError> {
        self.check()?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match Allocation::new(&self.stream, bytes.max(16)) {
            Ok(allocation) => Ok(CudaBuffer(Arc::new(allocation))),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                Err(OpsError::OutOfMemory { what, bytes })
            }
            Err(error) => Err(refused(what, error)),
        }
    }

    fn max_buffer_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn write(&mut self, buffer: &CudaBuffer, offset: u64, data: &[u8]) -> Result<(), OpsError> {
        let Some(address) = buffer.0.at(offset, data.len() as u64) else {
            return Err(beyond("a write"));
        };
        let written = self.send(address, data);
        self.record(written);
        self.check()
    }

    fn copy(
        &mut self,
        from: (&CudaBuffer, u64),
        to: (&CudaBuffer, u64),
        bytes: u64,
    ) -> Result<(), OpsError> {
        let (Some(source), Some(target)) = (from.0.0.at(from.1, bytes), to.0.0.at(to.1, bytes))
        else {
            return Err(beyond("a copy"));
        };
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        let copied = self.context.bind_to_thread().and_then(|()| {
            // SAFETY: both places have this many bytes; freeing memory waits for what is queued.
            unsafe { result::memcpy_dtod_async(target, source, len, self.stream.cu_stream()) }
        });
        self.record(copied);
        self.check()
    }

    fn compile(&mut self, kernels: &[Kernel]) -> Result<(), OpsError> {
        let compiler = self.compiler();
        self.code.start(kernels, compiler);
        self.check()
    }

    fn record(&mut self, launches: &[Bound<'_, CudaBuffer>]) -> Result<CudaList, OpsError> {
        self.check()?;
        let recorded = launches
            .iter()
            .map(|launch| Ok(RecordedLaunch::new(launch, self.kernel(launch.kernel)?)))
            .collect::<Result<Vec<_>, OpsError>>()?;
        let lost = |error| refused("a graph", error);
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode).map_err(lost)?;
        let queued = recorded.iter().try_for_each(|launch| launch.queue(&self.stream));
        // Also after a failure: the stream must not stay as it is.
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0));
        let graph = queued.and(graph).map_err(lost)?;
        if graph.is_none() && !recorded.is_empty() {
            let reason = "it makes no graph of what was recorded".to_owned();
            return Err(OpsError::DeviceLost { reason });
        }
        Ok(CudaList::new(recorded, graph))
    }

    fn play(&mut self, list: &CudaList, _chunks: u32) -> Result<(), OpsError> {
        if let Some(graph) = &list.graph {
            let launched = graph.launch();
            self.record(launched);
        }
        self.check()
    }

    fn can_time(&self) -> bool {
        true
    }

    fn play_timed(
        &mut self,
        list: &mut CudaList,
        _chunks: u32,
        times: &mut Vec<Duration>,
    ) -> Result<(), OpsError> {
        let played = list.play_with_clock(&self.stream, times);
        self.record(played);
        self.check()
    }

    async fn read(
        &mut self,
        buffer: &CudaBuffer,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        let Some(mut address) = buffer.0.at(offset, out.len() as u64) else {
            return Err(beyond("a read"));
        };
        let bound = self.context.bind_to_thread();
        self.record(bound);
        for piece in out.chunks_mut(STAGED) {
            self.check()?;
            let read = self.read_piece(address, piece);
            self.record(read);
            address += piece.len() as u64;
        }
        self.check()
    }
}

/// What the driver refused: memory, or anything else once it has lost the device.
fn refused(what: &'static str, error: DriverError) -> OpsError {
    match error {
        DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => OpsError::OutOfMemory { what, bytes: 0 },
        error => OpsError::DeviceLost { reason: message(error) },
    }
}

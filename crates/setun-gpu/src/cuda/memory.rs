//! Memory of a device, and memory of the host that it reads without help.

use std::{ffi::c_void, sync::Arc};

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys::CUdeviceptr};

/// Memory of a device; freed once nothing that was queued uses it, as the driver waits for that.
#[derive(Debug)]
pub(super) struct Allocation {
    context: Arc<CudaContext>,
    pub(super) address: CUdeviceptr,
    pub(super) bytes: usize,
}

impl Allocation {
    /// Memory that holds zeros for all that is queued later.
    pub(super) fn new(stream: &CudaStream, bytes: usize) -> Result<Self, DriverError> {
        let context = stream.context();
        context.bind_to_thread()?;
        // SAFETY: the context is bound; the memory is filled before anyone can see it.
        let address = unsafe { result::malloc_sync(bytes) }?;
        let allocation = Self { context: Arc::clone(context), address, bytes };
        // SAFETY: the memory has this many bytes.
        unsafe { result::memset_d8_async(address, 0, bytes, stream.cu_stream()) }?;
        Ok(allocation)
    }

    /// The address of a place that has this many bytes; none if it lies beyond.
    pub(super) fn at(&self, offset: u64, bytes: u64) -> Option<CUdeviceptr> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes as u64).then_some(self.address + offset)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: nothing else frees it, and who has its address has a share in it.
        self.context.record_err(unsafe { result::free_sync(self.address) });
    }
}

/// Bytes that are read at once, and most that are written through memory of this kind.
pub(super) const STAGED: usize = 1 << 20;

/// Memory of the host that a device reads and writes by itself.
#[derive(Debug)]
pub(super) struct Staging {
    context: Arc<CudaContext>,
    place: *mut c_void,
}

// SAFETY: the memory belongs to no thread, and is used through exclusive references only.
unsafe impl Send for Staging {}
// SAFETY: a shared reference gives no access to the memory.
unsafe impl Sync for Staging {}

impl Staging {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: the context is bound.
        let place = unsafe { result::malloc_host(STAGED, 0) }?;
        // SAFETY: the memory has this many bytes; it must hold something to be a slice.
        unsafe { place.cast::<u8>().write_bytes(0, STAGED) };
        Ok(Self { context: Arc::clone(context), place })
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory has this many bytes, all written, and `self` alone leads to it.
        unsafe { std::slice::from_raw_parts_mut(self.place.cast(), STAGED) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.context.record_err(self.context.synchronize());
        // SAFETY: nothing else frees it, and the device has done all that it was given.
        self.context.record_err(unsafe { result::free_host(self.place) });
    }
}

//! Losing a device, for tests of what follows.

use cudarc::nvrtc::Ptx;
use setun_ops::OpsError;

use super::{Cuda, compile, list::RecordedLaunch, refused};
use crate::{
    executor::Bound,
    kernel::{CudaSource, Kernel},
    launch::When,
};

/// A kernel that ends as one that reads beyond its memory does.
const LOST: &str =
    "extern \"C\" __global__ void lose(const unsigned word) { asm volatile(\"trap;\"); }";

impl Cuda {
    /// Queues what makes the driver give the device up, for this process and for good.
    ///
    /// # Errors
    ///
    /// If the device is lost already, or refuses.
    pub fn lose(&mut self) -> Result<(), OpsError> {
        self.check()?;
        let lost = |reason| OpsError::DeviceLost { reason };
        let source = CudaSource { name: "lose", text: LOST.to_owned(), threads: 1 };
        let target = compile::target_of(self.architecture);
        let code = compile::compile(&source, target).map_err(lost)?;
        let module = self.context.load_module(Ptx::from_binary(code));
        let function = module.and_then(|module| module.load_function(source.name));
        let function = function.map_err(|error| refused("a kernel", error))?;
        let bound = Bound {
            kernel: Kernel::RmsNorm, // says nothing: its function is given
            shape: &[0],
            buffers: vec![],
            grid: [1, 1, 1],
            when: When::Always,
        };
        let queued = RecordedLaunch::new(&bound, (function, source.threads)).queue(&self.stream);
        queued.map_err(|error| refused("a launch", error))
    }
}
